#pragma once
// tests/support/adapter_files.hpp - files of adapters with values that a test gives them, and weights that they are merged into.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <strata/storage/safetensors.hpp>
#include <strata/weights/file_values.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/weights/weight_files.hpp>

namespace strata_test {

using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

inline void write_adapter(const std::filesystem::path& path, const Tensors& tensors,
                          const strata::storage::SafetensorsMetadata& metadata = {}) {
    std::vector<at::Tensor> kept;
    std::vector<strata::storage::TensorBytes> bytes;
    for (const auto& [name, tensor] : tensors) {
        const at::Tensor& own = kept.emplace_back(tensor.contiguous());
        bytes.push_back({name,
                         strata::weights::file_type(own.scalar_type()).value(),
                         own.sizes().vec(),
                         {static_cast<const std::byte*>(own.data_ptr()), own.nbytes()}});
    }
    strata::storage::write_safetensors(path, bytes, metadata);
}

/// A tensor of a file, in fp32.
inline at::Tensor tensor_in(const strata::weights::WeightFiles& files, const std::string& name) {
    const auto* const found = files.find(name);
    if (found == nullptr) return {};
    at::Tensor values = torch::empty(found->entry->shape);
    strata::weights::read_values(*found, 0, values.view(-1));
    return values;
}

/// Weights of layers, without a model around them.
inline std::vector<strata::weights::LoadTarget> weights_of(const Tensors& layers) {
    std::vector<strata::weights::LoadTarget> targets;
    for (const auto& [path, weight] : layers) targets.push_back({{path + ".weight"}, weight});
    return targets;
}

}  // namespace strata_test
