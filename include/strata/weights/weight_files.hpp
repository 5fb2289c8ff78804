#pragma once
// strata/weights/weight_files.hpp - WeightFiles: the tensors of a model's safetensors files, one or many, found by name.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/storage/safetensors.hpp>

namespace strata::weights {

/// Weights as the ecosystem keeps them, read tensor by tensor: opening reads headers only. A value: copies share the open files,
/// which close with the last of them. Reading is thread-safe. Local, all of it; no libtorch.
class WeightFiles {
public:
    /// A tensor, and the file that it lies in.
    struct Tensor {
        const storage::SafetensorsFile* file = nullptr;
        const storage::SafetensorsEntry* entry = nullptr;
        [[nodiscard]] std::uint64_t bytes() const noexcept { return entry->end - entry->begin; }
    };
    using Tensors = std::map<std::string, Tensor, std::less<>>;  ///< by name

    /// Opens weights and checks that they belong together.
    ///
    ///   path  a file `*.safetensors`; an index `*.safetensors.index.json`, whose shards lie beside it; or a folder with the
    ///         first of these that is there: diffusion_pytorch_model.safetensors, its index, model.safetensors, its index, the
    ///         same with `.fp16` before `.safetensors`, or else the only file `*.safetensors`
    /// Throws bad_weight_files, one error for all that is wrong with an index: no JSON, shards that are missing, names that are in
    /// no shard, in another one than the index says, or in two; for a folder without weights, or with several that could be meant.
    /// Throws not_found, and io_failed, corrupt_safetensors and unsupported_dtype for a file by itself.
    explicit WeightFiles(const std::filesystem::path& path);

    [[nodiscard]] const std::filesystem::path& path() const noexcept;  ///< as it was given
    [[nodiscard]] const Tensors& tensors() const noexcept;
    [[nodiscard]] const Tensor* find(std::string_view name) const noexcept;  ///< nullptr: there is none
    [[nodiscard]] std::vector<std::filesystem::path> files() const;          ///< those that were opened
    /// Of the first file, such as {"format", "pt"}.
    [[nodiscard]] const storage::SafetensorsMetadata& metadata() const noexcept;
    /// 16 hexadecimal digits of all names, types, shapes and places: other ones for other weights, as far as headers tell.
    [[nodiscard]] const std::string& digest() const noexcept;

    /// Fills `out` with a tensor's bytes from `offset` on. Throws corrupt_safetensors beyond its end, io_failed.
    static void read(const Tensor& tensor, std::span<std::byte> out, std::uint64_t offset = 0) {
        tensor.file->read(*tensor.entry, out, offset);
    }

private:
    struct Contents;
    std::shared_ptr<const Contents> contents_;
};

}  // namespace strata::weights

#ifndef STRATA_COMPILED
#include <strata/weights/impl/weight_files.ipp>
#endif
