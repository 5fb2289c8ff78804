#pragma once
// strata/checkpoint/checkpoint.hpp - saving and loading the state of a run, whatever wrote it.
//
// A checkpoint is a folder step_NNNNNNNN with
//   state_RRRRR_of_WWWWW.safetensors   one file a rank: its slices of the fp32 weights and of the rule's state
//   model.safetensors                  the model's parameters and buffers under their own names, for other programs
//   model_ema.safetensors              the same with the moving average of the weights, where there is one
//   manifest.json                      what lies where, with check sums; written last
// It is built in a hidden folder and renamed when every rank's bytes are on disk, so a folder with that name
// is complete.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/checkpoint/copies.hpp>
#include <strata/checkpoint/folders.hpp>
#include <strata/checkpoint/manifest.hpp>
#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/comm/folder_keepers.hpp>
#include <strata/core/error.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/zero/state.hpp>

namespace strata::checkpoint {

struct NamedTensor {
    std::string name;
    at::Tensor tensor;
    bool must_be_finite = false;  ///< of weights that are trained; a buffer, or a frozen mask, may hold infinity
};

/// Throws Error checkpoint_mismatch unless the manifest's parameters and state are those of this trainer, or those that
/// set_trainable() had chosen in a run that began as this trainer did.
void check_matches(const std::filesystem::path& checkpoint, const Manifest& found, const Manifest& expected);

/// Whether an error of a checkpoint's files says that another checkpoint may be whole.
[[nodiscard]] constexpr bool is_damage(Errc code) noexcept {
    return code == Errc::corrupt_checkpoint || code == Errc::corrupt_safetensors || code == Errc::io_failed ||
           code == Errc::not_found;
}

namespace detail {

/// A rank's file of state, written run by run.
class StateWriter {
public:
    ///   parameters  names for messages; outlive it
    StateWriter(const std::filesystem::path& folder, int rank, int world, std::span<const zero::StateOutline> outline,
                std::span<const zero::ParameterInfo> parameters);
    /// A part of one of the outline's runs. Throws non_finite for weights and averages that are.
    void write(std::string_view kind, std::int64_t begin, std::span<const float> values);
    [[nodiscard]] FileRecord finish();

private:
    std::filesystem::path path_;
    std::vector<PieceRecord> pieces_;
    std::map<std::pair<std::string_view, std::int64_t>, std::size_t> index_;  // by kind and first element
    std::span<const zero::ParameterInfo> parameters_;
    storage::SafetensorsWriter file_;
};
/// The file model_file, written tensor by tensor.
class ModelWriter {
public:
    ModelWriter(std::filesystem::path file, std::span<const NamedTensor> tensors);
    /// Throws non_finite for one that must be finite and is not, as its file has it.
    void write(std::size_t index, const NamedTensor& named);
    [[nodiscard]] FileRecord finish();

private:
    std::filesystem::path path_;
    storage::SafetensorsWriter file_;
};
/// Throws corrupt_checkpoint unless the folder's name says the manifest's step.
void check_place(const std::filesystem::path& checkpoint, const Manifest& manifest);
void verify_files(const std::filesystem::path& checkpoint, const Manifest& manifest, int rank, int world);
/// Throws corrupt_checkpoint unless the files have every element of every kind of state.
void check_complete(const std::filesystem::path& checkpoint, const Manifest& manifest);
/// Reads a manifest and checks what it is about. This rank looks at its share of the files. Throws what open() throws.
[[nodiscard]] Manifest verified(const std::filesystem::path& checkpoint, const Manifest& expected, int rank, int world);
void read_model(const std::filesystem::path& checkpoint, std::span<const NamedTensor> buffers);

/// verified() by the ranks that see the holder's folder; then all keepers have the checkpoint, and all ranks its manifest. Collective. Throws on
/// all ranks what verified() and bring_to_keepers() throw.
template <comm::Communicator Comm>
Manifest verified_everywhere(Comm& comm, const comm::FolderKeepers& keepers, const std::filesystem::path& checkpoint,
                             const Manifest& expected, int holder) {
    const int rank = comm.rank();
    const comm::FolderKeepers::Share share = keepers.share(rank, comm.world());
    Manifest manifest;
    comm::agree(comm, [&] {
        if (keepers.of(rank) == holder) manifest = verified(checkpoint, expected, share.number, share.of);
    });
    if (keepers.is_shared()) return manifest;
    bring_to_keepers(comm, keepers, checkpoint, partial_name(checkpoint), holder);
    comm::agree(comm, [&] {
        if (keepers.of(rank) != holder) manifest = read_manifest(checkpoint / manifest_file);
    });
    return manifest;
}

}  // namespace detail

inline constexpr std::string_view model_file = "model.safetensors";
inline constexpr std::string_view average_file = "model_ema.safetensors";

/// Writes a model's parameters and buffers into `file`, one by one.
///
///   tensors  read on rank 0 only
///   hold     called on all ranks with each tensor in turn; when it returns, rank 0 can read it. May be collective
/// Collective. Throws Error on all ranks if rank 0 could not write (io_failed, no_space). The result counts on rank 0.
template <comm::Communicator Comm, class Hold>
FileRecord write_model(Comm& comm, const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                       Hold&& hold) {
    std::optional<detail::ModelWriter> writer;
    std::exception_ptr failure;
    const auto on_first_rank = [&](auto&& work) {  // the others are in hold() already when this fails
        if (comm.rank() != 0 || failure) return;
        try {
            work();
        } catch (...) {
            failure = std::current_exception();
        }
    };
    on_first_rank([&] { writer.emplace(file, tensors); });
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        hold(tensors[i].tensor);
        on_first_rank([&] { writer->write(i, tensors[i]); });
    }
    FileRecord record;
    on_first_rank([&] { record = writer->finish(); });
    comm::agree(comm, [&] {
        if (failure) std::rethrow_exception(failure);
    });
    return record;
}

/// Saves a checkpoint below `folder` and returns its path. A whole checkpoint of the same step is left as it is; a damaged
/// one is set aside.
///
///   manifest      `files` and `world` are filled in here
///   outline       this rank's runs of state
///   read          read(sink) calls sink(kind, begin, values) with all parts of these runs, in any order. Local
///   write_models  called with the folder to write model files into; returns their records, of which rank 0's count.
///                 Collective, as write_model() is
///   keepers       which ranks see the same `folder`. Where there are several, each gets the whole checkpoint (copies.hpp)
///   say           called on rank 0 with a sentence when something was set aside
/// Collective. Throws Error on all ranks if any rank failed: io_failed, no_space, non_finite for weights or an average that
/// are; nothing is left behind then.
template <comm::Communicator Comm, class Read, class WriteModels>
std::filesystem::path save(Comm& comm, const std::filesystem::path& folder, Manifest manifest,
                           std::span<const zero::StateOutline> outline, Read&& read, WriteModels&& write_models,
                           const comm::FolderKeepers& keepers = {},
                           const std::function<void(const std::string&)>& say = {}) {
    const auto final_folder = detail::final_name(folder, manifest.step);
    const auto partial = detail::partial_name(folder, manifest.step);
    bool exists = false;
    if (comm.rank() == 0) {
        std::error_code unknown;
        exists = std::filesystem::symlink_status(final_folder, unknown).type() != std::filesystem::file_type::not_found;
    }
    comm.broadcast(std::as_writable_bytes(std::span{&exists, 1}), 0);
    if (exists) {
        std::string damage;
        try {
            static_cast<void>(detail::verified_everywhere(comm, keepers, final_folder, manifest, 0));
            return final_folder;
        } catch (const Error& error) {
            if (!is_damage(error.code())) throw;
            damage = error.problem();
        }
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            const auto place = set_aside(final_folder);
            if (say) say(damage + "; it is kept as " + place.filename().string() + ", and its step is saved anew");
        });
    }

    manifest.world = comm.world();
    try {
        comm::agree(comm, [&] {
            if (!keepers.keeps(comm.rank())) return;
            std::filesystem::remove_all(partial);
            std::filesystem::create_directories(partial);
        });
        FileRecord mine;
        comm::agree(comm, [&] {
            detail::StateWriter writer{partial, comm.rank(), comm.world(), outline, manifest.parameters};
            read([&](std::string_view kind, std::int64_t begin, std::span<const float> values) {
                writer.write(kind, begin, values);
            });
            mine = writer.finish();
        });
        for (const std::string& record : comm.all_gather_varied(to_text(mine)))
            manifest.files.push_back(file_record_from(record));
        std::string models;
        for (const FileRecord& record : write_models(partial)) models += to_text(record) + '\n';
        models = std::move(comm.all_gather_varied(models).front());
        for (std::size_t begin = 0, end = 0; (end = models.find('\n', begin)) != std::string::npos; begin = end + 1)
            manifest.files.push_back(file_record_from(models.substr(begin, end - begin)));
        copy_to_keepers(comm, keepers, partial, manifest.files);
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            write_manifest(partial / detail::manifest_file, manifest);
            detail::publish(partial, final_folder);
        });
        publish_copies(comm, keepers, partial, final_folder);
    } catch (const Error&) {
        std::error_code ignored;
        if (keepers.keeps(comm.rank())) std::filesystem::remove_all(partial, ignored);
        throw;
    }
    return final_folder;
}

/// Opens a checkpoint that any number of ranks at any stage has written, after verifying every file's check sum (each
/// rank verifies its share), and fills `buffers` from it; a StateReader reads the rest.
///
///   expected  parameters and update_rule of this trainer
///   buffers   tensors to overwrite in place, found by name in model.safetensors
///   keepers   which ranks see the same folder; all have it when this returns
///   holder    the keeper that has it now
/// Collective. Throws Error on all ranks: corrupt_checkpoint, checkpoint_mismatch, not_found, io_failed, no_space.
template <comm::Communicator Comm>
Manifest open(Comm& comm, const std::filesystem::path& checkpoint, const Manifest& expected,
              std::span<const NamedTensor> buffers, const comm::FolderKeepers& keepers = {}, int holder = 0) {
    Manifest manifest = detail::verified_everywhere(comm, keepers, checkpoint, expected, holder);
    comm::agree(comm, [&] { detail::read_model(checkpoint, buffers); });
    return manifest;
}

/// Fills `values` with what model.safetensors has under this name, converted to their type. Local. Throws
/// checkpoint_mismatch when there is nothing of that size, io_failed.
void read_parameter(const std::filesystem::path& checkpoint, const std::string& name, at::Tensor values);

/// The state in a checkpoint, read by element, wherever it lies.
class StateReader {
public:
    /// Local.
    StateReader(std::filesystem::path checkpoint, const Manifest& manifest);

    /// Whether there is state of this kind (zero::StateOutline::kind).
    [[nodiscard]] bool has(std::string_view kind) const { return sources_.contains(std::string{kind}); }

    /// Fills `values` with elements begin, begin + 1, ... of that kind. Local. Throws corrupt_checkpoint when one is in
    /// no file, io_failed.
    void read(std::string_view kind, std::int64_t begin, std::span<float> values);

private:
    struct Source {
        std::int64_t begin, end;
        std::string tensor, file;
    };
    std::filesystem::path checkpoint_;
    std::map<std::string, std::vector<Source>> sources_;  // by kind; sorted
    std::map<std::string, storage::SafetensorsFile> open_files_;
};

}  // namespace strata::checkpoint

#ifndef STRATA_COMPILED
#include <strata/checkpoint/impl/checkpoint.ipp>
#endif
