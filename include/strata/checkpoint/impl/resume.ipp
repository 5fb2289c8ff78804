#pragma once
// strata/checkpoint/impl/resume.ipp - what is said about checkpoints that cannot be used.

#include <algorithm>
#include <sstream>

#include <strata/checkpoint/resume.hpp>

namespace strata::checkpoint::detail {

STRATA_INLINE std::vector<Candidate> candidates_of(const std::vector<std::string>& steps) {
    std::vector<Candidate> found;
    for (std::size_t rank = 0; rank < steps.size(); ++rank) {
        std::istringstream words{steps[rank]};
        for (std::int64_t step = 0; words >> step;) found.push_back({step, static_cast<int>(rank)});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Candidate& a, const Candidate& b) { return a.step > b.step; });
    return found;
}

STRATA_INLINE std::vector<std::string> pass_over(
    const std::vector<std::pair<std::filesystem::path, std::string>>& damaged) {
    std::vector<std::string> notes;
    for (const auto& [folder, why] : damaged) {
        std::string note = "passed over " + folder.string() + ": " + why;
        try {
            note += "; it is kept as " + set_aside(folder).filename().string();
        } catch (const Error& error) {  // it is in nobody's way before its step is saved again
            note += "; " + error.problem();
        }
        notes.push_back(std::move(note));
    }
    return notes;
}

STRATA_INLINE Error none_is_whole(const std::filesystem::path& folder,
                                  const std::vector<std::pair<std::filesystem::path, std::string>>& damaged) {
    if (damaged.size() == 1)
        return Error{Errc::corrupt_checkpoint, "the only checkpoint cannot be resumed from: " + damaged.front().second,
                     "put back a copy of it, or start over with --fresh, which deletes it"};
    std::string what =
        "none of the " + std::to_string(damaged.size()) + " checkpoints in " + folder.string() + " is whole";
    for (const auto& [path, why] : damaged) what += (path == damaged.front().first ? ": " : "; ") + why;
    return Error{Errc::corrupt_checkpoint, what,
                 "put back a copy of one, or start over with --fresh, which deletes them"};
}

}  // namespace strata::checkpoint::detail
