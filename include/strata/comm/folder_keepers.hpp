#pragma once
// strata/comm/folder_keepers.hpp - FolderKeepers: which ranks see one folder by the same path, where hosts may share none.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/core/inline.hpp>

namespace strata::comm {

/// For a path that all ranks have: the folders that it leads to. Each folder has a keeper, the lowest rank that sees it. Equal on all ranks.
///
/// Where hosts share the folder, rank 0 is the only keeper; where each has a folder of its own, the first rank of each host is one.
class FolderKeepers {
public:
    /// One folder for all.
    FolderKeepers() = default;
    ///   keeper_of  by rank
    explicit FolderKeepers(std::vector<int> keeper_of);

    [[nodiscard]] bool is_shared() const noexcept { return keepers_.size() == 1; }
    /// The keeper of the folder that this rank sees.
    [[nodiscard]] int of(int rank) const noexcept {
        return keeper_of_.empty() ? 0 : keeper_of_[static_cast<std::size_t>(rank)];
    }
    [[nodiscard]] bool keeps(int rank) const noexcept { return of(rank) == rank; }
    /// Ascending; rank 0 first.
    [[nodiscard]] const std::vector<int>& all() const noexcept { return keepers_; }

    /// A rank's number among those that see the same folder, how many these are, and the least that there are of any folder: for
    /// sharing work on its files.
    struct Share {
        int number = 0, of = 1, fewest = 1;
    };
    [[nodiscard]] Share share(int rank, int world) const;

private:
    std::vector<int> keeper_of_;  // empty: rank 0
    std::vector<int> keepers_{0};
};

/// Finds who sees which folder, by marks that ranks leave in it for a moment.
///
///   marks  leave(rank) leaves the mark of this rank, sees(rank) -> bool looks for that of another, remove(rank) takes this rank's away. Local
/// Collective. Throws Error on all ranks: what leave() and sees() throw.
template <Communicator Comm, class Marks>
FolderKeepers find_keepers(Comm& comm, Marks&& marks) {
    if (comm.world() == 1) return {};
    const int rank = comm.rank();
    bool sees_first = rank == 0;
    bool has_left = false;
    std::vector<std::string> seen;
    // Who does not see rank 0's mark leaves one and looks again: a file server's client may take a folder that is new for missing, until
    // it has written into it.
    for (const int turn : {0, 1}) {
        agree(comm, [&] {
            if (turn == 0 ? rank != 0 : sees_first) return;
            marks.leave(rank);
            has_left = true;
        });
        agree(comm, [&] { sees_first = sees_first || marks.sees(0); });
        seen = comm.all_gather_varied(sees_first ? "1" : "");
        if (std::none_of(seen.begin(), seen.end(), [](const std::string& one) { return one.empty(); })) break;
    }
    int keeper = sees_first ? 0 : rank;
    agree(comm, [&] {
        for (int other = 1; !sees_first && other < rank && keeper == rank; ++other)
            if (seen[static_cast<std::size_t>(other)].empty() && marks.sees(other)) keeper = other;
    });
    std::vector<int> keeper_of;
    for (const std::string& one : comm.all_gather_varied(std::to_string(keeper))) keeper_of.push_back(std::stoi(one));
    if (has_left) marks.remove(rank);
    const bool is_shared = std::all_of(keeper_of.begin(), keeper_of.end(), [](int one) { return one == 0; });
    return is_shared ? FolderKeepers{} : FolderKeepers{std::move(keeper_of)};
}

/// Marks of ranks in a folder on a disk. Rank 0's is a file that is there, and stays; for the others the folder is made.
class FolderMarks {
public:
    ///   first  a file in it that rank 0 has written
    ///   text   what is in that file, which no other run has written, and in the other marks
    FolderMarks(std::filesystem::path folder, std::filesystem::path first, std::string text)
        : folder_{std::move(folder)}, first_{std::move(first)}, text_{std::move(text)} {}

    /// Throws output_not_writable.
    void leave(int rank) const;
    [[nodiscard]] bool sees(int rank) const;
    void remove(int rank) const noexcept;

private:
    [[nodiscard]] std::filesystem::path mark_of(int rank) const;

    std::filesystem::path folder_, first_;
    std::string text_;
};

/// The bytes of a file; empty where there is none that can be read.
[[nodiscard]] std::string bytes_of_file(const std::filesystem::path& file);

/// Finds who sees the same folder by a path that is the same on all ranks. Where a rank does not see rank 0's it is made.
///
///   first  a file in it that rank 0 has written, with bytes that no other run's has
/// Collective. Throws Error on all ranks: output_not_writable.
template <Communicator Comm>
FolderKeepers find_keepers(Comm& comm, const std::filesystem::path& folder, const std::filesystem::path& first) {
    return find_keepers(
        comm, FolderMarks{folder, first,
                          comm.all_gather_varied(comm.rank() == 0 ? bytes_of_file(first) : std::string{}).front()});
}

}  // namespace strata::comm

#ifndef STRATA_COMPILED
#include <strata/comm/impl/folder_keepers.ipp>
#endif
