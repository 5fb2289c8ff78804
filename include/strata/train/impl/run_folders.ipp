#pragma once
// strata/train/impl/run_folders.ipp - which names trainers may have.

#include <algorithm>
#include <array>
#include <string_view>

#include <strata/core/error.hpp>
#include <strata/train/run_folders.hpp>

namespace strata::train {

STRATA_INLINE bool RunFolders::is_name(std::string_view name) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    constexpr std::array<std::string_view, 8> of_a_run{"checkpoints",   "samples",     "samples_ema", "index",
                                                       "metrics.jsonl", "report.html", "skipped.txt", "model.json"};
    const bool fits = name.size() <= longest_name && !name.starts_with('.') &&
                      name.find_first_not_of(letters) == std::string_view::npos;
    return fits && std::find(of_a_run.begin(), of_a_run.end(), name) == of_a_run.end();
}

STRATA_INLINE std::filesystem::path RunFolders::take(const std::filesystem::path& output, const std::string& name) {
    if (!is_name(name))
        throw Error{Errc::bad_value, "TrainOptions::name cannot be a trainer's folder: " + name.substr(0, longest_name),
                    names_are};
    std::filesystem::path folder = name.empty() ? output : output / name;
    if (!taken_.insert(folder).second)
        throw Error{
            Errc::output_in_use, "two trainers of this session would work in " + folder.string(),
            name.empty()
                ? "give one of them a name in its TrainOptions, .name = \"second\" for a folder of its own below that one"
                : "give one of them another name in its TrainOptions"};
    return folder;
}

}  // namespace strata::train
