#pragma once
// strata/datasets/sample.hpp - Sample: a captioned picture that can be trained on.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <strata/pictures/conditioning.hpp>
#include <strata/pictures/picture.hpp>
#include <strata/storage/content_hash.hpp>

namespace strata::datasets {

/// A picture that belongs to a sample: the model sees both, framed alike.
struct ConditioningPicture {
    std::size_t set = 0;  ///< index of its data set in config::DatasetList::conditioning
    pictures::ConditioningKind kind = pictures::ConditioningKind::picture;
    std::string key;      ///< in its data set's store
    std::string version;  ///< of the file
    std::uint64_t bytes = 0;
    pictures::PictureSize size;         ///< as it is meant to be seen; need not be the sample's
    storage::ContentHash content = {};  ///< as Sample::content
};

/// A captioned picture that can be trained on. A million of them take about 0.3 GB beside their captions, on each rank.
struct Sample {
    std::string key;      ///< in its data set's store
    std::string version;  ///< of the file; see storage::ObjectInfo
    std::uint64_t bytes = 0;
    pictures::PictureSize size;               ///< as the picture is meant to be seen
    std::string caption;                      ///< as it was found: without instance_prompt in front, not shuffled
    std::vector<std::string> other_captions;  ///< of a table with several columns: as good as `caption`
    storage::ContentHash content = {};        ///< of the whole file; not known until somebody has read all of it
    /// One of each data set that conditioning_data names, in its order; see pair_conditioning().
    std::vector<ConditioningPicture> conditioning = {};
};

}  // namespace strata::datasets
