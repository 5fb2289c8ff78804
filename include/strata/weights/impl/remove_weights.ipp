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

/// A file itself, no link to one.
inline bool is_own_file(const std::filesystem::path& path) {
    std::error_code unknown;
    return std::filesystem::symlink_status(path, unknown).type() == std::filesystem::file_type::regular;
}

}  // namespace detail

STRATA_INLINE std::vector<std::filesystem::path> written_weights(
    const std::filesystem::path& path, core::FunctionRef<bool(const storage::SafetensorsMetadata&)> is_meant) {
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path{"."};
    const std::string stem = detail::stem_of(path);
    const auto goes = [&](const std::filesystem::path& file) {
        if (!detail::is_own_file(file)) return false;
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
    std::filesystem::directory_iterator entry{folder, none};
    for (; !none && entry != std::filesystem::directory_iterator{}; entry.increment(none)) {
        const std::string name = entry->path().filename().string();
        if (detail::is_shard_of(name, stem) && goes(entry->path())) shards.insert(name);
    }
    std::vector<std::filesystem::path> files;
    const std::filesystem::path index = detail::index_of(path);
    const std::set<std::string> named = detail::shards_named_by(path);
    const bool is_foreign =
        !named.empty() && (!detail::is_own_file(index) || std::any_of(named.begin(), named.end(), [&](const auto& one) {
            return !shards.contains(one) && std::filesystem::exists(folder / one, none);
        }));
    if (is_foreign) {
        std::erase_if(shards, [&](const std::string& shard) { return named.contains(shard); });
    } else if (std::any_of(named.begin(), named.end(), [&](const auto& one) { return shards.contains(one); })) {
        files.push_back(index);
    }
    for (const std::string& shard : shards) files.push_back(folder / shard);
    if (goes(path)) files.push_back(path);
    return files;
}

STRATA_INLINE void remove_files(const std::vector<std::filesystem::path>& files) {
    for (const std::filesystem::path& file : files) {
        std::error_code failure;
        std::filesystem::remove(file, failure);
        if (failure)
            throw Error{Errc::io_failed, "removing '" + file.string() + "': " + failure.message(),
                        "remove it by hand, or give this user the right to"};
    }
}

STRATA_INLINE bool remove_weights(const std::filesystem::path& path,
                                  core::FunctionRef<bool(const storage::SafetensorsMetadata&)> is_meant) {
    const std::vector<std::filesystem::path> files = written_weights(path, is_meant);
    remove_files(files);
    return !files.empty();
}

}  // namespace strata::weights
