#pragma once
// strata/comm/impl/folder_keepers.ipp - marks in folders, and who counts as the first to see one.

#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <strata/comm/folder_keepers.hpp>
#include <strata/core/error.hpp>
#include <strata/core/host_name.hpp>

namespace strata::comm {

STRATA_INLINE FolderKeepers::FolderKeepers(std::vector<int> keeper_of) : keeper_of_{std::move(keeper_of)} {
    keepers_.clear();
    for (std::size_t rank = 0; rank < keeper_of_.size(); ++rank)
        if (keeps(static_cast<int>(rank))) keepers_.push_back(static_cast<int>(rank));
}

STRATA_INLINE FolderKeepers::Share FolderKeepers::share(int rank, int world) const {
    std::vector<int> seen_by(static_cast<std::size_t>(world), 0);  // by keeper
    Share share{.number = 0, .of = 0, .fewest = world};
    for (int other = 0; other < world; ++other) {
        ++seen_by[static_cast<std::size_t>(of(other))];
        if (other < rank && of(other) == of(rank)) ++share.number;
    }
    share.of = seen_by[static_cast<std::size_t>(of(rank))];
    for (const int keeper : keepers_) share.fewest = std::min(share.fewest, seen_by[static_cast<std::size_t>(keeper)]);
    return share;
}

STRATA_INLINE std::string bytes_of_file(const std::filesystem::path& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

STRATA_INLINE std::filesystem::path FolderMarks::mark_of(int rank) const {
    return rank == 0 ? first_ : folder_ / (".strata-rank-" + std::to_string(rank));
}

STRATA_INLINE void FolderMarks::leave(int rank) const {
    if (rank == 0) return;
    std::error_code failed;
    std::filesystem::create_directories(folder_, failed);
    std::ofstream out{mark_of(rank), std::ios::binary | std::ios::trunc};
    out << text_;
    out.close();
    if (!failed && out) return;
    throw Error{Errc::output_not_writable,
                "cannot write to the output directory " + folder_.string() + " on host " + core::host_name() + ": " +
                    (failed ? failed.message() : "its files cannot be written"),
                "choose another one with --output DIR, or change its permissions there"};
}

STRATA_INLINE bool FolderMarks::sees(int rank) const { return bytes_of_file(mark_of(rank)) == text_; }

STRATA_INLINE void FolderMarks::remove(int rank) const noexcept {
    std::error_code none;
    if (rank != 0) std::filesystem::remove(mark_of(rank), none);
}

}  // namespace strata::comm
