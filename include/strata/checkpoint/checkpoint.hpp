#pragma once
// strata/checkpoint/checkpoint.hpp - saving and loading the state of a run, whatever wrote it.
//
// A checkpoint is a folder step_NNNNNNNN with
//   state_RRRRR_of_WWWWW.safetensors   one file a rank: its slices of the fp32 weights and of the rule's state
//   model.safetensors                  the model's parameters and buffers under their own names, for other programs
//   manifest.json                      what lies where, with check sums; written last
// It is built in a hidden folder and renamed when every rank's bytes are on disk, so a folder with that name
// is complete.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/checkpoint/manifest.hpp>
#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/zero/state_piece.hpp>

namespace strata::checkpoint {

struct NamedTensor {
    std::string name;
    at::Tensor tensor;
};

/// The newest checkpoint in `folder`, by step. Local.
[[nodiscard]] std::optional<std::filesystem::path> newest(const std::filesystem::path& folder);

/// Removes all but the `count` newest checkpoints, and what a killed run left unfinished. Local: for rank 0.
void keep_newest(const std::filesystem::path& folder, std::int64_t count);

/// Throws Error checkpoint_mismatch unless the manifest's parameters and state are those of this trainer.
void check_matches(const std::filesystem::path& checkpoint, const Manifest& found, const Manifest& expected);

namespace detail {

[[nodiscard]] std::filesystem::path final_name(const std::filesystem::path& folder, std::int64_t step);
[[nodiscard]] std::filesystem::path partial_name(const std::filesystem::path& folder, std::int64_t step);
[[nodiscard]] FileRecord write_state(const std::filesystem::path& folder, int rank, int world,
                                     std::span<const zero::StatePiece> pieces);
[[nodiscard]] FileRecord write_model(const std::filesystem::path& folder, std::span<const NamedTensor> tensors);
void publish(const std::filesystem::path& partial, const std::filesystem::path& final_folder);
/// Throws corrupt_checkpoint unless the folder's name says the manifest's step.
void check_place(const std::filesystem::path& checkpoint, const Manifest& manifest);
void verify_files(const std::filesystem::path& checkpoint, const Manifest& manifest, int rank, int world);
void read_pieces(const std::filesystem::path& checkpoint, const Manifest& manifest, std::span<const zero::StatePiece> pieces);
void read_model(const std::filesystem::path& checkpoint, std::span<const NamedTensor> buffers);

}  // namespace detail

/// Saves a checkpoint below `folder` and returns its path. A checkpoint of the same step is left as it is.
///
///   manifest  `files` and `world` are filled in here
///   pieces    this rank's slices
///   model     parameters and buffers; read on rank 0 only
/// Collective. Throws Error on all ranks if any rank failed (io_failed, no_space); nothing is left behind then.
template <comm::Communicator Comm>
std::filesystem::path save(Comm& comm, const std::filesystem::path& folder, Manifest manifest,
                           std::span<const zero::StatePiece> pieces, std::span<const NamedTensor> model) {
    const auto final_folder = detail::final_name(folder, manifest.step);
    const auto partial = detail::partial_name(folder, manifest.step);
    bool exists = false;
    if (comm.rank() == 0) exists = std::filesystem::exists(final_folder);
    comm.broadcast(std::as_writable_bytes(std::span{&exists, 1}), 0);
    if (exists) return final_folder;

    manifest.world = comm.world();
    try {
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            std::filesystem::remove_all(partial);
            std::filesystem::create_directories(partial);
        });
        FileRecord mine;
        comm::agree(comm, [&] { mine = detail::write_state(partial, comm.rank(), comm.world(), pieces); });
        for (const std::string& record : comm.all_gather_varied(to_text(mine)))
            manifest.files.push_back(file_record_from(record));
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            manifest.files.push_back(detail::write_model(partial, model));
            write_manifest(partial / "manifest.json", manifest);
            detail::publish(partial, final_folder);
        });
    } catch (const Error&) {
        std::error_code ignored;
        if (comm.rank() == 0) std::filesystem::remove_all(partial, ignored);
        throw;
    }
    return final_folder;
}

/// Fills `pieces` and `buffers` from a checkpoint that any number of ranks at any stage has written, after
/// verifying every file's check sum (each rank verifies its share).
///
///   expected  parameters and update_rule of this trainer
///   buffers   tensors to overwrite in place, found by name in model.safetensors
/// Collective. Throws Error on all ranks: corrupt_checkpoint, checkpoint_mismatch, not_found, io_failed.
template <comm::Communicator Comm>
Manifest load(Comm& comm, const std::filesystem::path& checkpoint, const Manifest& expected,
              std::span<const zero::StatePiece> pieces, std::span<const NamedTensor> buffers) {
    Manifest manifest;
    comm::agree(comm, [&] {
        manifest = read_manifest(checkpoint / "manifest.json");
        detail::check_place(checkpoint, manifest);
        check_matches(checkpoint, manifest, expected);
        detail::verify_files(checkpoint, manifest, comm.rank(), comm.world());
    });
    comm::agree(comm, [&] {
        detail::read_pieces(checkpoint, manifest, pieces);
        detail::read_model(checkpoint, buffers);
    });
    return manifest;
}

}  // namespace strata::checkpoint

#ifndef STRATA_COMPILED
#include <strata/checkpoint/impl/checkpoint.ipp>
#endif
