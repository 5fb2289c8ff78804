#pragma once
// strata/train/impl/leftovers.ipp - names, where they really are, and who begins with them.

#include <algorithm>
#include <set>
#include <string>
#include <system_error>

#include <strata/adapters/saved_adapter.hpp>
#include <strata/core/error.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/train/leftovers.hpp>
#include <strata/weights/remove_weights.hpp>
#include <strata/weights/weight_files.hpp>

namespace strata::train {

namespace detail {

/// A path without links in it, as far as it is there.
inline std::filesystem::path real(const std::filesystem::path& path) {
    std::error_code unknown;
    auto found = std::filesystem::weakly_canonical(path, unknown);
    return unknown ? std::filesystem::absolute(path, unknown).lexically_normal() : found;
}

/// Its folder without links; its own name as it is, so that a link is not what it leads to.
inline std::filesystem::path real_name(const std::filesystem::path& file) {
    return real(std::filesystem::absolute(file).parent_path()) / file.filename();
}

/// Both without links.
inline bool is_within(const std::filesystem::path& folder, const std::filesystem::path& path) {
    const auto way = path.lexically_relative(folder);
    return !way.empty() && *way.begin() != "..";
}

/// The files that a path of weights stands for, without links: a folder's are all in it.
inline std::set<std::filesystem::path> files_of_base(const std::filesystem::path& base) {
    std::set<std::filesystem::path> files{real(base)};
    std::error_code none;
    if (std::filesystem::is_directory(base, none)) {
        std::filesystem::directory_iterator entry{base, none};
        for (; !none && entry != std::filesystem::directory_iterator{}; entry.increment(none))
            files.insert(real(entry->path()));
    } else if (base.extension() == ".json" && std::filesystem::exists(base, none)) {
        try {
            for (const auto& file : weights::WeightFiles{base}.files()) files.insert(real(file));
        } catch (const Error&) {  // its own loader tells
        }
    }
    return files;
}

}  // namespace detail

STRATA_INLINE std::filesystem::path file_of_average(const std::filesystem::path& file, bool is_adapter) {
    if (is_adapter) return file.parent_path() / "ema" / file.filename();
    return file.parent_path() / (file.stem().string() + "_ema.safetensors");
}

STRATA_INLINE Leftovers find_leftovers(const std::filesystem::path& folder, const ExportOptions& options) {
    Leftovers left;
    std::error_code unknown;
    const std::filesystem::path own = detail::real(folder);
    // Somebody's weights that were put into a folder where no run has been yet are no leftovers, whatever they say.
    const bool has_run = std::filesystem::exists(folder / "metrics.jsonl", unknown) ||
                         std::filesystem::exists(folder / "checkpoints", unknown);
    std::set<std::filesystem::path> seen;
    const auto look = [&](const std::filesystem::path& file) {
        if (!seen.insert(detail::real_name(file)).second) return;
        std::filesystem::path index = file;
        index += ".index.json";
        if (detail::is_within(own, detail::real_name(file))) {
            left.names.push_back(file);
            left.names.push_back(index);
            if (has_run)
                for (auto& one : weights::written_weights(file, [](const storage::SafetensorsMetadata& says) {
                         return says.contains(std::string{export_key});
                     }))
                    left.goes.push_back(std::move(one));
        }
        for (const auto& one : {file, index}) {
            const bool is_there = std::filesystem::exists(std::filesystem::symlink_status(one, unknown));
            const bool goes = std::any_of(left.goes.begin(), left.goes.end(), [&](const std::filesystem::path& other) {
                return detail::real_name(other) == detail::real_name(one);
            });
            if (is_there && !goes) left.stays.push_back(one);
        }
    };
    for (const bool is_adapter : {false, true}) {
        const std::filesystem::path usual =
            folder / (is_adapter ? std::string_view{adapters::adapter_file_name} : usual_weights_name);
        for (const auto& file : {usual, options.path}) {
            if (file.empty()) continue;
            look(file);
            look(file_of_average(file, is_adapter));
        }
    }
    return left;
}

STRATA_INLINE void check_bases(const std::filesystem::path& folder, const Leftovers& left,
                               const std::vector<std::filesystem::path>& begins_with) {
    std::set<std::filesystem::path> threatened;
    for (const auto& list : {left.goes, left.names})
        for (const auto& file : list) threatened.insert(detail::real_name(file));
    const std::filesystem::path own = detail::real(folder);
    std::string bases;
    for (const std::filesystem::path& base : begins_with) {
        if (base.empty()) continue;
        const auto files = detail::files_of_base(base);
        const bool is_hit = std::any_of(files.begin(), files.end(), [&](const std::filesystem::path& file) {
            return threatened.contains(file) || detail::is_within(own / "checkpoints", file);
        });
        if (is_hit && bases.find("'" + base.string() + "'") == std::string::npos)
            bases += (bases.empty() ? "'" : ", '") + base.string() + "'";
    }
    if (bases.empty()) return;
    throw Error{
        Errc::bad_reference,
        "--fresh was given, and the run begins with weights that an earlier run left in its own output folder '" +
            folder.string() + "': " + bases + "; they would be removed, or written over",
        "move them out of that folder and name their new place, or give another --output; or remove --fresh to go "
        "on with the earlier run"};
}

STRATA_INLINE std::vector<std::filesystem::path> remove_leftovers(
    const std::filesystem::path& folder, const ExportOptions& options,
    const std::vector<std::filesystem::path>& begins_with) {
    Leftovers left = find_leftovers(folder, options);
    check_bases(folder, left, begins_with);
    weights::remove_files(left.goes);
    for (const std::filesystem::path& file : left.goes) {
        const std::filesystem::path place = file.parent_path();
        std::error_code unknown;
        if (place.filename() == "ema" && detail::real(place) != detail::real(folder) &&
            std::filesystem::is_empty(place, unknown))
            std::filesystem::remove(place, unknown);
    }
    return std::move(left.stays);
}

}  // namespace strata::train
