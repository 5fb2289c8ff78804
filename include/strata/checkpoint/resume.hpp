#pragma once
// strata/checkpoint/resume.hpp - open_newest(): the newest checkpoint that is whole, and what was wrong with those after it.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <strata/checkpoint/checkpoint.hpp>
#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/core/error.hpp>

namespace strata::checkpoint {

/// A checkpoint that open_newest() has opened.
struct Opened {
    std::filesystem::path folder;
    Manifest manifest;
    std::vector<std::string> notes;  ///< a sentence for each checkpoint that was passed over; on rank 0
};

namespace detail {

/// The paths that rank 0 finds, newest first, on all ranks.
template <comm::Communicator Comm>
std::vector<std::filesystem::path> newest_first(Comm& comm, const std::filesystem::path& folder) {
    std::string found;
    comm::agree(comm, [&] {
        if (comm.rank() != 0) return;
        for (const auto& [step, path] : checkpoints_by_step(folder)) found = path.filename().string() + '/' + found;
    });
    found = comm.all_gather_varied(found).front();
    std::vector<std::filesystem::path> paths;
    for (std::size_t begin = 0; begin < found.size();) {
        const std::size_t end = found.find('/', begin);
        paths.push_back(folder / found.substr(begin, end - begin));
        begin = end + 1;
    }
    return paths;
}

/// Takes damaged checkpoints out of the way of later saves, and says so. For rank 0.
[[nodiscard]] std::vector<std::string> pass_over(
    const std::vector<std::pair<std::filesystem::path, std::string>>& damaged);
/// None of several checkpoints can be resumed from.
[[nodiscard]] Error none_is_whole(const std::filesystem::path& folder,
                                  const std::vector<std::pair<std::filesystem::path, std::string>>& damaged);

}  // namespace detail

/// Opens the newest checkpoint in `folder` as open() does. One that is damaged is passed over and, when an older one is
/// whole, kept under another name (set_aside()). Nothing is renamed where none is.
///
///   returns  nothing where there is no checkpoint
/// Collective. Throws Error on all ranks: corrupt_checkpoint when all are damaged, checkpoint_mismatch.
template <comm::Communicator Comm>
std::optional<Opened> open_newest(Comm& comm, const std::filesystem::path& folder, const Manifest& expected,
                                  std::span<const NamedTensor> buffers) {
    std::vector<std::pair<std::filesystem::path, std::string>> damaged;  // and why
    for (const std::filesystem::path& candidate : detail::newest_first(comm, folder)) {
        Opened opened{candidate, {}, {}};
        try {
            opened.manifest = open(comm, candidate, expected, buffers);
        } catch (const Error& error) {
            if (!is_damage(error.code())) throw;
            damaged.emplace_back(candidate, error.problem());
            continue;
        }
        if (comm.rank() == 0) opened.notes = detail::pass_over(damaged);
        return opened;
    }
    if (damaged.empty()) return std::nullopt;
    throw detail::none_is_whole(folder, damaged);
}

}  // namespace strata::checkpoint

#ifndef STRATA_COMPILED
#include <strata/checkpoint/impl/resume.ipp>
#endif
