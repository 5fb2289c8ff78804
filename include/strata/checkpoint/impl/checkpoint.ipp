#pragma once
// strata/checkpoint/impl/checkpoint.ipp - the files of a checkpoint.

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>

#include <strata/checkpoint/checkpoint.hpp>
#include <strata/core/error.hpp>
#include <strata/core/step_name.hpp>
#include <strata/storage/safetensors.hpp>

namespace strata::checkpoint {
namespace detail {

inline storage::Dtype dtype_of(const NamedTensor& named) {
    switch (named.tensor.scalar_type()) {
        case at::kFloat:
            return storage::Dtype::f32;
        case at::kBFloat16:
            return storage::Dtype::bf16;
        case at::kHalf:
            return storage::Dtype::f16;
        case at::kDouble:
            return storage::Dtype::f64;
        case at::kLong:
            return storage::Dtype::i64;
        case at::kInt:
            return storage::Dtype::i32;
        case at::kShort:
            return storage::Dtype::i16;
        case at::kChar:
            return storage::Dtype::i8;
        case at::kByte:
            return storage::Dtype::u8;
        case at::kBool:
            return storage::Dtype::boolean;
        default:
            throw Error{Errc::bad_parameter,
                        "the tensor " + named.name + " has an element type that safetensors cannot hold",
                        "convert it to a real floating point or integer type"};
    }
}

inline std::string state_file_name(int rank, int world) {
    char name[64];
    std::snprintf(name, sizeof name, "state_%05d_of_%05d.safetensors", rank, world);
    return name;
}

inline std::vector<PieceRecord> records_of(std::span<const zero::StateOutline> outline) {
    std::vector<PieceRecord> records;
    for (const zero::StateOutline& run : outline) {
        if (run.numel == 0) continue;
        records.push_back(
            {std::string{run.kind} + "." + std::to_string(run.begin), std::string{run.kind}, run.begin, run.numel});
    }
    return records;
}

inline std::vector<storage::TensorOutline> outlines_of(std::span<const PieceRecord> pieces) {
    std::vector<storage::TensorOutline> outlines;
    for (const PieceRecord& piece : pieces) outlines.push_back({piece.tensor, storage::Dtype::f32, {piece.numel}});
    return outlines;
}

STRATA_INLINE StateWriter::StateWriter(const std::filesystem::path& folder, int rank, int world,
                                       std::span<const zero::StateOutline> outline,
                                       std::span<const zero::ParameterInfo> parameters)
    : path_{folder / state_file_name(rank, world)},
      pieces_{records_of(outline)},
      parameters_{parameters},
      file_{path_, outlines_of(pieces_)} {
    for (std::size_t i = 0; i < pieces_.size(); ++i) index_[{pieces_[i].kind, pieces_[i].begin}] = i;
}

/// An exponent of all ones is infinity or NaN.
inline bool all_finite(std::span<const float> values) {
    std::uint32_t largest = 0;
    for (const float value : values) largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7fffffffU);
    return largest < 0x7f800000U;
}

[[noreturn]] inline void refuse_non_finite(const std::string& what) {
    throw Error{Errc::non_finite, "the weights are not finite, and such a checkpoint is never published: " + what,
                "resume from the checkpoint before with a lower learning rate, or start over with --fresh"};
}

/// The parameter that has an element of the virtual array; its name.
inline std::string parameter_of(std::span<const zero::ParameterInfo> parameters, std::int64_t element) {
    const auto after =
        std::upper_bound(parameters.begin(), parameters.end(), element,
                         [](std::int64_t at, const zero::ParameterInfo& parameter) { return at < parameter.begin; });
    return after == parameters.begin() ? "element " + std::to_string(element) : std::prev(after)->name;
}

STRATA_INLINE void StateWriter::write(std::string_view kind, std::int64_t begin, std::span<const float> values) {
    if ((kind == zero::weight_kind || kind == zero::average_kind) && !all_finite(values)) {
        const auto first = std::find_if(values.begin(), values.end(), [](float value) {
            return !all_finite({&value, 1});
        });
        refuse_non_finite((kind == zero::average_kind ? "the average of " : "") +
                          parameter_of(parameters_, begin + (first - values.begin())));
    }
    const auto after = index_.upper_bound({kind, begin});
    assert(after != index_.begin());
    const std::size_t piece = std::prev(after)->second;
    assert(pieces_[piece].kind == kind);
    file_.write(piece, std::as_bytes(values), static_cast<std::uint64_t>(begin - pieces_[piece].begin) * sizeof(float));
}

STRATA_INLINE FileRecord StateWriter::finish() {
    file_.publish();
    FileRecord record = record_of(path_);
    record.pieces = pieces_;
    return record;
}

inline std::vector<storage::TensorOutline> outlines_of(std::span<const NamedTensor> tensors) {
    std::vector<storage::TensorOutline> outlines;
    for (const NamedTensor& named : tensors)
        outlines.push_back({named.name, dtype_of(named), named.tensor.sizes().vec()});
    return outlines;
}

STRATA_INLINE ModelWriter::ModelWriter(std::filesystem::path file, std::span<const NamedTensor> tensors)
    : path_{std::move(file)}, file_{path_, outlines_of(tensors)} {}

STRATA_INLINE void ModelWriter::write(std::size_t index, const NamedTensor& named) {
    const at::Tensor host = named.tensor.detach().cpu().contiguous();
    if (named.must_be_finite && !at::isfinite(host).all().item<bool>())
        refuse_non_finite(named.name + " does not fit into the " + std::string{at::toString(host.scalar_type())} +
                          " of " + path_.filename().string());
    file_.write(index, {static_cast<const std::byte*>(host.data_ptr()), host.nbytes()});
}

STRATA_INLINE FileRecord ModelWriter::finish() {
    file_.publish();
    return record_of(path_);
}

STRATA_INLINE void check_place(const std::filesystem::path& checkpoint, const Manifest& manifest) {
    if (core::step_of(checkpoint.filename().string()) != manifest.step)
        throw corrupt(checkpoint / manifest_file,
                      "is of step " + std::to_string(manifest.step) + ", which its folder's name denies");
}

STRATA_INLINE void verify_files(const std::filesystem::path& checkpoint, const Manifest& manifest, int rank,
                                int world) {
    for (std::size_t i = static_cast<std::size_t>(rank); i < manifest.files.size();
         i += static_cast<std::size_t>(world)) {
        const FileRecord& expected = manifest.files[i];
        const auto file = checkpoint / expected.name;
        if (!std::filesystem::exists(file)) throw corrupt(file, "is missing");
        const FileRecord found = record_of(file);
        if (found.bytes != expected.bytes)
            throw corrupt(file,
                          "has " + std::to_string(found.bytes) + " bytes instead of " + std::to_string(expected.bytes));
        if (found.crc32 != expected.crc32) throw corrupt(file, "is damaged: its check sum does not match the manifest");
    }
}

STRATA_INLINE void check_complete(const std::filesystem::path& checkpoint, const Manifest& manifest) {
    std::int64_t numel = 0;
    for (const zero::ParameterInfo& parameter : manifest.parameters) {
        std::int64_t count = 1;
        for (const std::int64_t length : parameter.shape) count *= length;
        numel = std::max(numel, parameter.begin + count);
    }
    std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> runs;  // begin and end, by kind
    for (const FileRecord& file : manifest.files)
        for (const PieceRecord& piece : file.pieces)
            runs[piece.kind].emplace_back(piece.begin, piece.begin + piece.numel);
    std::string kinds =
        std::string{zero::weight_kind} + (manifest.update_rule.empty() ? "" : "," + manifest.update_rule);
    for (std::size_t begin = 0; begin <= kinds.size();) {
        const std::size_t end = std::min(kinds.find(',', begin), kinds.size());
        const std::string kind = kinds.substr(begin, end - begin);
        std::sort(runs[kind].begin(), runs[kind].end());
        std::int64_t at = 0;
        for (const auto& [first, last] : runs[kind])
            if (first <= at) at = std::max(at, last);
        if (at < numel)
            throw corrupt(checkpoint / manifest_file, "has no " + kind + " for element " + std::to_string(at));
        begin = end + 1;
    }
}

STRATA_INLINE Manifest verified(const std::filesystem::path& checkpoint, const Manifest& expected, int rank,
                                int world) {
    Manifest manifest = read_manifest(checkpoint / manifest_file);
    check_place(checkpoint, manifest);
    check_matches(checkpoint, manifest, expected);
    check_complete(checkpoint, manifest);
    verify_files(checkpoint, manifest, rank, world);
    return manifest;
}

STRATA_INLINE void read_model(const std::filesystem::path& checkpoint, std::span<const NamedTensor> buffers) {
    if (buffers.empty()) return;
    const storage::SafetensorsFile file{checkpoint / model_file};
    for (const NamedTensor& named : buffers) {
        const storage::SafetensorsEntry* entry = file.header().find(named.name);
        at::Tensor host = named.tensor.detach().cpu().contiguous().clone();
        const auto count = static_cast<std::uint64_t>(host.numel() * host.element_size());
        if (entry == nullptr || entry->end - entry->begin != count || entry->dtype != dtype_of(named))
            throw Error{
                Errc::checkpoint_mismatch,
                "the checkpoint " + checkpoint.string() + " has no buffer " + named.name + " of this shape and type",
                "train with the model that wrote it, or start over with --fresh"};
        file.read(*entry, {static_cast<std::byte*>(host.data_ptr()), count});
        at::Tensor target = named.tensor.detach();
        target.copy_(host);
    }
}

}  // namespace detail

STRATA_INLINE void read_parameter(const std::filesystem::path& checkpoint, const std::string& name, at::Tensor values) {
    const storage::SafetensorsFile file{checkpoint / model_file};
    const storage::SafetensorsEntry* const entry = file.header().find(name);
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
        if (entry == nullptr) break;
        const at::Tensor host = at::empty(values.sizes(), at::TensorOptions{}.dtype(type));
        if (entry->dtype != detail::dtype_of({name, host}) || entry->end - entry->begin != host.nbytes()) continue;
        file.read(*entry, {static_cast<std::byte*>(host.data_ptr()), host.nbytes()});
        values.copy_(host);
        return;
    }
    throw Error{Errc::checkpoint_mismatch,
                "the checkpoint " + checkpoint.string() + " has no values of the parameter " + name + " of this shape",
                "train with the model that wrote it, or start over with --fresh"};
}

STRATA_INLINE StateReader::StateReader(std::filesystem::path checkpoint, const Manifest& manifest)
    : checkpoint_{std::move(checkpoint)} {
    for (const FileRecord& file : manifest.files)
        for (const PieceRecord& record : file.pieces)
            sources_[record.kind].push_back({record.begin, record.begin + record.numel, record.tensor, file.name});
    for (auto& [kind, list] : sources_)
        std::sort(list.begin(), list.end(), [](const Source& a, const Source& b) { return a.begin < b.begin; });
}

STRATA_INLINE void StateReader::read(std::string_view kind, std::int64_t begin, std::span<float> values) {
    const std::vector<Source>& list = sources_[std::string{kind}];
    const std::int64_t end = begin + static_cast<std::int64_t>(values.size());
    std::int64_t at = begin;
    auto source = std::partition_point(list.begin(), list.end(), [&](const Source& s) { return s.end <= at; });
    for (; source != list.end() && source->begin <= at && at < end; ++source) {
        if (source->end <= at) continue;
        const auto file = open_files_.try_emplace(source->file, checkpoint_ / source->file).first;
        const std::int64_t count = std::min(source->end, end) - at;
        const auto target = values.subspan(static_cast<std::size_t>(at - begin), static_cast<std::size_t>(count));
        constexpr std::array kept{storage::Dtype::f32};
        file->second.read(file->second.header().at(source->tensor, kept, "'" + file->second.path().string() + "'"),
                          std::as_writable_bytes(target),
                          static_cast<std::uint64_t>(at - source->begin) * sizeof(float));
        at += count;
    }
    if (at < end)
        throw detail::corrupt(checkpoint_ / detail::manifest_file,
                              "has no " + std::string{kind} + " for element " + std::to_string(at));
}

STRATA_INLINE void check_matches(const std::filesystem::path& checkpoint, const Manifest& found,
                                 const Manifest& expected) {
    const auto mismatch = [&](const std::string& what, const std::string& fix) {
        return Error{Errc::checkpoint_mismatch, "the checkpoint " + checkpoint.string() + " " + what,
                     fix + ", or start over with --fresh"};
    };
    if (found.update_rule != expected.update_rule)
        throw mismatch("holds the optimizer state \"" + found.update_rule + "\", this trainer keeps \"" +
                           expected.update_rule + "\"",
                       "use the Optimizer<...> that wrote it");
    if (found.parameters == expected.parameters) return;
    const bool changed = !found.began_with.empty() || !expected.began_with.empty();  // by set_trainable()
    if (changed && began_with(found) == began_with(expected)) {
        for (const zero::ParameterInfo& theirs : found.parameters) {
            const auto same = [&](const zero::ParameterInfo& ours) {
                return ours.name == theirs.name && ours.shape == theirs.shape;
            };
            if (std::any_of(expected.parameters.begin(), expected.parameters.end(), same) ||
                std::any_of(expected.frozen.begin(), expected.frozen.end(), same))
                continue;
            throw mismatch("has the parameter " + theirs.name + ", which this model lacks or has in another shape",
                           "train with the model that wrote it");
        }
        return;
    }
    if (!found.adapter.empty() && !expected.adapter.empty()) {
        std::string what;
        for (const FactChange& change : changes(found.adapter, expected.adapter))
            what += (what.empty() ? "" : "; ") + change.text();
        if (!what.empty())
            throw mismatch("is of an adapter with other parameters than this run's: " + what,
                           "give the adapter what it was trained with");
    }
    const auto frozen_here = [&](const zero::ParameterInfo& theirs) {
        return std::any_of(expected.frozen.begin(), expected.frozen.end(),
                           [&](const zero::ParameterInfo& ours) { return ours.name == theirs.name; });
    };
    for (std::size_t i = 0; i < std::max(found.parameters.size(), expected.parameters.size()); ++i) {
        if (i < found.parameters.size() && frozen_here(found.parameters[i]))
            throw mismatch("is of a run that trains the parameter " + found.parameters[i].name +
                               ", and this trainer was made with it frozen",
                           "freeze what was frozen when the run began, before the trainer is made, and change it with "
                           "set_trainable() afterwards");
        if (i >= found.parameters.size())
            throw mismatch("lacks the parameter " + expected.parameters[i].name, "train with the model that wrote it");
        if (i >= expected.parameters.size())
            throw mismatch("has the parameter " + found.parameters[i].name + ", which this model lacks",
                           "train with the model that wrote it");
        const zero::ParameterInfo &theirs = found.parameters[i], &ours = expected.parameters[i];
        if (theirs.name != ours.name || theirs.shape != ours.shape)
            throw mismatch("has the parameter " + theirs.name + " where this model has " + ours.name +
                               (theirs.name == ours.name ? " of another shape" : ""),
                           "train with the model that wrote it");
    }
}

}  // namespace strata::checkpoint
