#pragma once
// tests/unit/config/dataset_lists.hpp - dataset lists that tests load, and what is thrown by those that are wrong.

#include <string>

#include <strata/config/dataset_list.hpp>

#include "temporary_json.hpp"

namespace strata_test {

inline const std::string text_entry = R"({"id":"text","dataset_type":"text_embeds","cache_dir":"cache/text"})";

/// A list of one local picture data set with `more` keys, and one text_embeds entry.
inline std::string list_with(const std::string& more) {
    return R"([{"id":"pictures","instance_data_dir":"data","cache_dir_vae":"cache/vae")" + more + "}," + text_entry +
           "]";
}

/// A list of one picture data set in a bucket with `more` keys, and one text_embeds entry.
inline std::string bucket_with(const std::string& more) {
    return R"([{"id":"pictures","type":"aws","cache_dir_vae":"vae")" + more + "}," + text_entry + "]";
}

inline strata::config::DatasetList load(const std::string& json) {
    return strata::config::load_datasets(TemporaryJson{json}.path());
}

inline Thrown refused(const std::string& json) {
    return thrown_by([&] { (void)load(json); });
}

}  // namespace strata_test
