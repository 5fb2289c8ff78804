#pragma once
// strata/weights/impl/save_weights.ipp - tensors are dealt out to files, which appear together.

#include <cstdio>
#include <set>
#include <system_error>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <nlohmann/json.hpp>

#include <strata/core/error.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/weights/file_values.hpp>
#include <strata/weights/impl/file_values.ipp>
#include <strata/weights/impl/weight_files.ipp>
#include <strata/weights/save_weights.hpp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::weights::detail {

inline std::string shard_name(const std::string& stem, std::size_t number, std::size_t count) {
    char text[64];
    std::snprintf(text, sizeof text, "-%05zu-of-%05zu.safetensors", number, count);
    return stem + text;
}

inline storage::Dtype written_type(const SavedTensor& saved, const SaveOptions& options) {
    const std::optional<storage::Dtype> own = file_type(saved.tensor.scalar_type());
    if (!own)
        throw Error{Errc::bad_parameter,
                    "the tensor " + saved.name + " has an element type that safetensors files do not have",
                    "convert it to a real floating point or integer type"};
    return options.dtype && saved.tensor.is_floating_point() && !saved.keeps_type ? *options.dtype : *own;
}

STRATA_INLINE std::vector<SavedTensor> saved_tensors(const std::filesystem::path& path,
                                                     std::vector<SavedTensor> tensors, const SaveOptions& options) {
    using storage::Dtype;
    const std::string name = path.filename().string();
    if (!name.ends_with(weights_ending) || name.size() == weights_ending.size())
        throw Error{Errc::bad_value,
                    "weights were to be written to '" + path.string() + "', which does not end in .safetensors",
                    "name a file such as model.safetensors: shards and an index are named after it"};
    if (options.dtype && *options.dtype != Dtype::f32 && *options.dtype != Dtype::bf16 && *options.dtype != Dtype::f16)
        throw Error{Errc::bad_value, "weights were to be written as " + std::string{storage::name_of(*options.dtype)},
                    "write them as f32, bf16 or f16"};
    std::erase_if(tensors, [&](const SavedTensor& saved) { return options.wanted && !options.wanted(saved.name); });
    if (tensors.empty())
        throw Error{Errc::bad_value, "no weights are left to write: SaveOptions::wanted refuses all names",
                    "let it take some"};
    return tensors;
}

struct WeightWriter::Shard {
    std::filesystem::path path;
    std::vector<storage::TensorOutline> outlines;
    std::uint64_t bytes = 0;
    std::optional<storage::SafetensorsWriter> file;
};

STRATA_INLINE WeightWriter::WeightWriter(const std::filesystem::path& path, std::span<const SavedTensor> tensors,
                                         const SaveOptions& options)
    : path_{path}, prefix_{options.prefix} {
    for (const SavedTensor& saved : tensors) {
        const storage::Dtype dtype = written_type(saved, options);
        const std::uint64_t bytes = static_cast<std::uint64_t>(saved.tensor.numel()) * storage::bits_of(dtype) / 8;
        const bool fits = !shards_.empty() &&
                          (options.max_shard_size == 0 || shards_.back()->bytes + bytes <= options.max_shard_size);
        if (!fits) shards_.push_back(std::make_unique<Shard>());
        Shard& shard = *shards_.back();
        places_.push_back({shards_.size() - 1, shard.outlines.size()});
        const std::vector<std::int64_t> shape = saved.shape.empty() ? saved.tensor.sizes().vec() : saved.shape;
        shard.outlines.push_back({prefix_ + saved.name, dtype, shape});
        shard.bytes += bytes;
        bytes_ += bytes;
        names_.push_back(saved.name);
        dtypes_.push_back(dtype);
    }
    for (std::size_t i = 0; i < shards_.size(); ++i) {
        Shard& shard = *shards_[i];
        shard.path = shards_.size() == 1 ? path : path.parent_path() / shard_name(stem_of(path), i + 1, shards_.size());
        shard.file.emplace(shard.path, shard.outlines, options.metadata);
    }
}

STRATA_INLINE WeightWriter::~WeightWriter() = default;

STRATA_INLINE void WeightWriter::write(std::size_t tensor, const at::Tensor& values) {
    const at::NoGradGuard no_grad;
    const at::ScalarType type = torch_type(dtypes_[tensor]).value();
    const at::Tensor own = values.detach();
    const at::Tensor written = own.cpu().to(type).contiguous();
    if (type == at::kHalf && own.scalar_type() != at::kHalf && !written.isfinite().all().item().toBool() &&
        own.isfinite().all().item().toBool())
        throw Error{Errc::bad_value,
                    "the tensor " + names_[tensor] + " has values beyond 65504, which fp16 cannot hold",
                    "write the weights as bf16 or f32"};
    shards_[places_[tensor].shard]->file->write(places_[tensor].tensor, zero::detail::bytes_of(written));
}

STRATA_INLINE std::vector<std::filesystem::path> WeightWriter::publish() {
    const std::filesystem::path index = index_of(path_);
    std::set<std::string> before = shards_named_by(path_);
    std::vector<std::filesystem::path> written;
    for (const auto& shard : shards_) {
        shard->file->publish();
        written.push_back(shard->path);
        before.erase(shard->path.filename().string());
    }
    std::error_code ignored;
    if (shards_.size() > 1) {
        nlohmann::json json;  // its names are sorted, as those of other writers are
        json["metadata"]["total_size"] = bytes_;
        for (std::size_t i = 0; i < names_.size(); ++i)
            json["weight_map"][prefix_ + names_[i]] = shards_[places_[i].shard]->path.filename().string();
        storage::write_file(index, json.dump(2) + "\n");
        written.push_back(index);
        std::filesystem::remove(path_, ignored);  // of an earlier call: readers would take it first
    } else {
        std::filesystem::remove(index, ignored);
    }
    for (const std::string& shard : before) std::filesystem::remove(path_.parent_path() / shard, ignored);
    return written;
}

}  // namespace strata::weights::detail
