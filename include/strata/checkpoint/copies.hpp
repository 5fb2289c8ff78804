#pragma once
// strata/checkpoint/copies.hpp - whole checkpoints on every host, where hosts have folders of their own.
//
// All of it does nothing where the folder is one for all ranks (comm::FolderKeepers::is_shared()). Else each keeper has the folder with all files:
// what a rank has written goes from its disk to the other keepers' by broadcasts of 4 MiB, so that it takes neither a shared file system nor
// memory for a file. That is as much traffic into each host as the checkpoint has bytes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/checkpoint/manifest.hpp>
#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/comm/folder_keepers.hpp>
#include <strata/core/inline.hpp>
#include <strata/storage/atomic_file.hpp>

namespace strata::checkpoint {

namespace detail {

inline constexpr std::string_view manifest_file = "manifest.json";

/// A file on its way from one rank to others, in blocks. What fails is kept, so that all ranks stay in step until the end.
class FileInTransit {
public:
    static constexpr std::size_t block_bytes = std::size_t{4} << 20;

    ///   record  name, size and check sum of the file
    FileInTransit(std::filesystem::path folder, const FileRecord& record);
    void open_to_read();
    void open_to_write();
    /// The next bytes; zeros once it has failed.
    void read(std::span<std::byte> block);
    void write(std::span<const std::byte> block);
    /// Makes what was written appear. Throws what has failed: io_failed, no_space, corrupt_checkpoint.
    void finish();

private:
    template <class Work>
    void try_to(Work&& work) {
        if (failure_) return;
        try {
            work();
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    std::filesystem::path path_;
    const FileRecord& record_;
    std::ifstream in_;
    std::optional<storage::AtomicFile> out_;
    std::uint32_t crc32_ = 0;
    std::exception_ptr failure_;
};

/// Which of a checkpoint's files are not there as the manifest has them; a rank's share. Local.
[[nodiscard]] std::vector<std::size_t> files_to_bring(const std::filesystem::path& checkpoint, const Manifest& manifest,
                                                      int rank, int world);
/// Numbers as text, "1,5,", and back.
[[nodiscard]] std::string text_of(std::span<const std::size_t> numbers);
void add_numbers(const std::string& text, std::vector<std::size_t>& numbers);
/// Makes `partial` of what is whole in `checkpoint`: of that folder itself where it is a damaged copy of the same, of copies of its files where
/// another checkpoint is there.
///
///   text     the manifest's bytes
///   missing  numbers of files, ascending
void begin_copy(const std::filesystem::path& checkpoint, const std::filesystem::path& partial, const Manifest& manifest,
                std::string_view text, std::span<const std::size_t> missing);
/// Publishes a copy with its manifest. Where the same is there it is dropped; another checkpoint of this name, of a run that the other hosts do
/// not know, is set aside.
void publish_copy(const std::filesystem::path& partial, const std::filesystem::path& final_folder,
                  std::string_view manifest);

/// Sends a file of rank `from` to all ranks with `wants`. Collective. Throws Error on all ranks: io_failed, no_space, corrupt_checkpoint.
template <comm::Communicator Comm>
void send_file(Comm& comm, const std::filesystem::path& folder, const FileRecord& record, int from, bool wants) {
    FileInTransit file{folder, record};
    if (comm.rank() == from) file.open_to_read();
    if (wants) file.open_to_write();
    std::vector<std::byte> block(
        static_cast<std::size_t>(std::min<std::uint64_t>(record.bytes, FileInTransit::block_bytes)));
    for (std::uint64_t at = 0; at < record.bytes;) {
        const auto part =
            std::span{block}.first(static_cast<std::size_t>(std::min<std::uint64_t>(record.bytes - at, block.size())));
        if (comm.rank() == from) file.read(part);
        comm.broadcast(part, from);
        if (wants) file.write(part);
        at += part.size();
    }
    comm::agree(comm, [&] { file.finish(); });
}

}  // namespace detail

/// Of a checkpoint that is being made: every keeper's folder gets the files that the ranks have written into theirs.
///
///   partial  the folder that the files are in
///   files    of which the first are those of the ranks, in rank order, and the others rank 0's. Equal on all ranks
/// Collective. Throws Error on all ranks: io_failed, no_space.
template <comm::Communicator Comm>
void copy_to_keepers(Comm& comm, const comm::FolderKeepers& keepers, const std::filesystem::path& partial,
                     std::span<const FileRecord> files) {
    if (keepers.is_shared()) return;
    const auto world = static_cast<std::size_t>(comm.world());
    for (std::size_t i = 0; i < files.size(); ++i) {
        const int from = i < world ? static_cast<int>(i) : 0;
        const bool wants = keepers.keeps(comm.rank()) && keepers.of(comm.rank()) != keepers.of(from);
        detail::send_file(comm, partial, files[i], from, wants);
    }
}

/// What copy_to_keepers() has copied becomes a checkpoint beside the other keepers as well, once rank 0 has published its own.
///
/// Collective. Throws Error on all ranks: io_failed, no_space.
template <comm::Communicator Comm>
void publish_copies(Comm& comm, const comm::FolderKeepers& keepers, const std::filesystem::path& partial,
                    const std::filesystem::path& final_folder) {
    if (keepers.is_shared()) return;
    const int rank = comm.rank();
    const std::string text =
        comm.all_gather_varied(rank == 0 ? comm::bytes_of_file(final_folder / detail::manifest_file) : std::string{})
            .front();
    comm::agree(comm, [&] {
        if (rank == 0 || !keepers.keeps(rank)) return;
        detail::publish_copy(partial, final_folder, text);
    });
}

/// Of a whole checkpoint of one keeper: the others have the same when this returns. What they have of it already is kept; another one of that
/// name is set aside.
///
///   checkpoint  its folder's path
///   partial     the hidden name beside it under which a copy is put together
///   holder      whose it is
/// Collective. Throws Error on all ranks: io_failed, no_space, corrupt_checkpoint.
template <comm::Communicator Comm>
void bring_to_keepers(Comm& comm, const comm::FolderKeepers& keepers, const std::filesystem::path& checkpoint,
                      const std::filesystem::path& partial, int holder) {
    if (keepers.is_shared()) return;
    const auto manifest_of = [&] { return comm::bytes_of_file(checkpoint / detail::manifest_file); };
    const int rank = comm.rank();
    std::string text;
    comm::agree(comm, [&] {
        if (rank == holder) text = manifest_of();
    });
    text = std::move(comm.all_gather_varied(text)[static_cast<std::size_t>(holder)]);
    const Manifest manifest = manifest_of_text(text, checkpoint / detail::manifest_file);

    const comm::FolderKeepers::Share share = keepers.share(rank, comm.world());
    std::vector<std::size_t> mine;
    comm::agree(comm, [&] {
        if (keepers.of(rank) != holder) mine = detail::files_to_bring(checkpoint, manifest, share.number, share.of);
    });
    std::vector<std::size_t> here;     // that are missing in this rank's folder
    std::vector<std::size_t> to_send;  // in any
    const std::vector<std::string> found = comm.all_gather_varied(detail::text_of(mine));
    for (std::size_t other = 0; other < found.size(); ++other) {
        detail::add_numbers(found[other], to_send);
        if (keepers.of(static_cast<int>(other)) == keepers.of(rank)) detail::add_numbers(found[other], here);
    }
    const bool is_whole = here.empty() && manifest_of() == text;
    const bool takes = keepers.keeps(rank) && rank != holder && !is_whole;
    comm::agree(comm, [&] {
        if (takes) detail::begin_copy(checkpoint, partial, manifest, text, here);
    });
    for (const std::size_t number : to_send) {
        const bool wants = takes && std::binary_search(here.begin(), here.end(), number);
        detail::send_file(comm, rank == holder ? checkpoint : partial, manifest.files[number], holder, wants);
    }
    comm::agree(comm, [&] {
        if (takes) detail::publish_copy(partial, checkpoint, text);
    });
}

}  // namespace strata::checkpoint

#ifndef STRATA_COMPILED
#include <strata/checkpoint/impl/copies.ipp>
#endif
