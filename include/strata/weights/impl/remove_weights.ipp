#pragma once
// strata/weights/impl/remove_weights.ipp - an index, its shards, and the one file in their place.

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include <strata/core/error.hpp>
#include <strata/weights/impl/weight_files.ipp>
#include <strata/weights/remove_weights.hpp>

namespace strata::weights {

namespace detail {

/// "model-00001-of-00003.safetensors" of "model".
inline bool is_shard_of(std::string_view name, const std::string& stem) {
    constexpr std::string_view pattern = "-00000-of-00000.safetensors";
    if (name.size() != stem.size() + pattern.size() || !name.starts_with(stem)) return false;
    name.remove_prefix(stem.size());
    return std::equal(name.begin(), name.end(), pattern.begin(),
                      [](char c, char wanted) { return wanted == '0' ? '0' <= c && c <= '9' : c == wanted; });
}

inline void remove_file(const std::filesystem::path& file) {
    std::error_code failure;
    std::filesystem::remove(file, failure);
    if (failure)
        throw Error{Errc::io_failed, "removing '" + file.string() + "': " + failure.message(),
                    "remove it by hand, or give this user the right to"};
}

}  // namespace detail

STRATA_INLINE bool remove_weights(const std::filesystem::path& path,
                                  core::FunctionRef<bool(const storage::SafetensorsMetadata&)> is_meant) {
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path{"."};
    const std::string stem = detail::stem_of(path);
    const auto goes = [&](const std::filesystem::path& file) {
        storage::SafetensorsMetadata says;
        try {
            says = storage::SafetensorsFile{file}.header().metadata;
        } catch (const Error&) {  // damaged, or none
            return false;
        }
        return is_meant(says);
    };
    std::error_code none;
    std::set<std::string> shards;
    for (const auto& entry : std::filesystem::directory_iterator{folder, none}) {
        const std::string name = entry.path().filename().string();
        if (detail::is_shard_of(name, stem) && goes(entry.path())) shards.insert(name);
    }
    const std::filesystem::path index = detail::index_of(path);
    if (!shards.empty() && std::filesystem::exists(index, none)) {
        const std::set<std::string> named = detail::shards_named_by(path);
        if (std::any_of(named.begin(), named.end(), [&](const std::string& one) { return shards.contains(one); }))
            detail::remove_file(index);
    }
    for (const std::string& shard : shards) detail::remove_file(folder / shard);
    const bool has_file = std::filesystem::exists(path, none) && goes(path);
    if (has_file) detail::remove_file(path);
    return has_file || !shards.empty();
}

}  // namespace strata::weights
