#pragma once
// strata/checkpoint/manifest.hpp - manifest.json: what a checkpoint holds, where, and with which check sums.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <strata/checkpoint/facts.hpp>
#include <strata/core/inline.hpp>
#include <strata/zero/state.hpp>

namespace strata::checkpoint {

/// A run of elements of one kind of state, in the unpadded concatenation of all trainable parameters.
struct PieceRecord {
    std::string tensor;      ///< its name in the safetensors file
    std::string kind;        ///< "weight", or a state name of the update rule
    std::int64_t begin = 0;  ///< first element
    std::int64_t numel = 0;
};

/// One file of a checkpoint.
struct FileRecord {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint32_t crc32 = 0;  ///< of the whole file (ISO-HDLC, as zlib computes it)
    std::vector<PieceRecord> pieces;
};

/// Everything that is not tensors. The pieces carry global positions, so a checkpoint does not depend on the
/// number of ranks or the ZeRO stage that wrote it.
struct Manifest {
    std::int64_t step = 0;     ///< optimizer steps done
    std::int64_t samples = 0;  ///< samples consumed over all ranks: the position in the data
    std::uint64_t seed = 0;
    int world = 1;                                ///< ranks that wrote it
    std::string update_rule;                      ///< state names joined by ",": tells one rule's state from another's
    std::vector<zero::ParameterInfo> parameters;  ///< that are trained at this step
    // Where set_trainable() has changed which ones those are, else empty:
    std::vector<std::string> began_with;  ///< names of those that were trained when the run's trainer was made
    std::vector<std::string> settled;     ///< and of those that were trained later or then, and are frozen at this step
    std::vector<zero::ParameterInfo> frozen;  ///< of a trainer that resumes: what else the model has. Not written
    std::vector<FileRecord> files;
    std::map<std::string, double> scalars;  ///< numbers of the engine by name: the state of fp16's loss scale
    // What a resumed run compares with its own, to say what is another now:
    Facts plan;          ///< how samples become steps
    Facts data;          ///< BatchSource::identity()
    std::string base{};  ///< of a run that trains adapters: what its frozen weights are known by; else empty
    Facts
        adapter{};  ///< of the same: its kind and the kind's numbers; empty in checkpoints of before these were written
    Facts environment;   ///< what bits depend on beside that: train::environment()
    bool sealed = true;  ///< false for one of format 1, read from a file that nothing protects from changes
};

/// The names of what was trained when the trainer was made.
[[nodiscard]] std::vector<std::string> began_with(const Manifest& manifest);

/// Appears whole or not at all, with the SHA-256 of everything before it as its last line: the seal. Throws Error: io_failed,
/// no_space.
void write_manifest(const std::filesystem::path& file, const Manifest& manifest);

/// Throws Error: corrupt_checkpoint, also for a missing file, because a folder without manifest is no checkpoint, and for
/// one that is not as it was written.
[[nodiscard]] Manifest read_manifest(const std::filesystem::path& file);
/// The same of a file's bytes.
///
///   file  for messages
[[nodiscard]] Manifest manifest_of_text(std::string_view text, const std::filesystem::path& file);

/// One file's record as text, for sending it to the rank that writes the manifest, and back.
[[nodiscard]] std::string to_text(const FileRecord& record);
[[nodiscard]] FileRecord file_record_from(const std::string& text);

}  // namespace strata::checkpoint

#ifndef STRATA_COMPILED
#include <strata/checkpoint/impl/manifest.ipp>
#endif
