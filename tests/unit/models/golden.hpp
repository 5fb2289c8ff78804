#pragma once
// Reads tensors of the reference implementations.

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <strata/storage/safetensors.hpp>

/// A file of tensors in fp32 or 64-bit integers, looked up by name.
class Golden {
public:
    explicit Golden(const std::string& file) {
        std::ifstream in(path(file), std::ios::binary);
        const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
        bytes_.resize(chars.size());
        std::memcpy(bytes_.data(), chars.data(), chars.size());
        header_ = strata::storage::parse_safetensors(bytes_);
    }
    static std::string path(const std::string& file) { return std::string{STRATA_REFERENCE_DIR} + "/golden/" + file; }

    at::Tensor operator()(const std::string& name) const {
        const auto& entry = header_.at(name);
        const bool is_whole = entry.dtype == strata::storage::Dtype::i64;
        at::Tensor tensor = at::empty(entry.shape, is_whole ? at::kLong : at::kFloat);
        std::memcpy(tensor.data_ptr(), bytes_.data() + header_.data_begin + entry.begin, entry.end - entry.begin);
        return tensor;
    }
    bool has(const std::string& name) const { return header_.find(name) != nullptr; }
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const auto& entry : header_.tensors) names.push_back(entry.name);
        return names;
    }

private:
    std::vector<std::byte> bytes_;
    strata::storage::SafetensorsHeader header_;
};

/// What is said of golden/NAME.safetensors in the file beside it: the model's config.json as "config", and its "cases".
inline nlohmann::json golden_json(const std::string& name) {
    std::ifstream in{Golden::path(name + ".json")};
    return nlohmann::json::parse(in);
}

/// Declares `name`, or skips the test where the file is absent.
#define STRATA_NEED_GOLDEN(name, file)                                                  \
    if (!std::filesystem::exists(Golden::path(file)))                                   \
        GTEST_SKIP() << Golden::path(file) << " is not there: nothing to compare with"; \
    const Golden name { file }
