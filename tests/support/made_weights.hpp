#pragma once
// tests/support/made_weights.hpp - safetensors files whose tensors have names and shapes and count upwards.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/storage/atomic_file.hpp>
#include <strata/storage/safetensors.hpp>

namespace strata_test {

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

/// Writes fp32 tensors; the elements of all of them, by name, are first, first + 1, ...
inline void write_weights(const std::filesystem::path& path, const Shapes& shapes, float first = 0.0F) {
    std::vector<std::vector<float>> values;
    std::vector<strata::storage::TensorBytes> tensors;
    for (const auto& [name, shape] : shapes) {
        std::size_t numel = 1;
        for (const std::int64_t size : shape) numel *= static_cast<std::size_t>(size);
        auto& of_tensor = values.emplace_back(numel);
        for (float& value : of_tensor) value = first++;
        tensors.push_back({name, strata::storage::Dtype::f32, shape, std::as_bytes(std::span{of_tensor})});
    }
    strata::storage::write_safetensors(path, tensors, {{"format", "pt"}});
}

/// Writes an index of these tensors.
inline void write_index(const std::filesystem::path& path, const std::map<std::string, std::string>& file_of) {
    strata::storage::write_file(path,
                                nlohmann::json{{"metadata", {{"total_size", 0}}}, {"weight_map", file_of}}.dump());
}

}  // namespace strata_test
