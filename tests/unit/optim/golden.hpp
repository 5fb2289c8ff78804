#pragma once
// tests/unit/optim/golden.hpp - golden tensors of the reference implementations, and what tests of the rules share.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/bf16.hpp>
#include <strata/core/host_device.hpp>
#include <strata/storage/safetensors.hpp>

namespace strata::optim::testing {

inline std::vector<float> normal_values(std::size_t n, unsigned seed) {
    std::mt19937 random{seed};
    std::normal_distribution<float> normal;
    std::vector<float> values(n);
    for (float& value : values) value = normal(random);
    return values;
}

inline std::vector<bf16> rounded(const std::vector<float>& values) {
    std::vector<bf16> result;
    for (const float value : values) result.push_back(to_bf16(value));
    return result;
}

/// A rule of a user's own: no state at all.
struct Descent {
    struct Options {};
    struct Scalars {
        float lr;
    };
    static constexpr std::array<std::string_view, 0> state_names{};
    static Scalars scalars(const Options&, double lr, std::int64_t) { return {static_cast<float>(lr)}; }
    [[gnu::always_inline]] STRATA_HOST_DEVICE static void apply(float& weight, float gradient, float*,
                                                                const Scalars& s) {
        weight -= s.lr * gradient;
    }
};

/// Golden tensors: weights, gradients and states of ten steps of the reference implementations.
class Golden {
public:
    explicit Golden(const std::string& name)
        : path_{std::filesystem::path{STRATA_REFERENCE_DIR} / "golden" / (name + ".safetensors")} {}
    [[nodiscard]] bool exists() const { return std::filesystem::exists(path_); }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::vector<double> read(const std::string& name) const {
        const strata::storage::SafetensorsFile file{path_};
        const auto& entry = file.header().at(name);
        std::vector<std::byte> bytes(entry.end - entry.begin);
        file.read(entry, bytes);
        if (entry.dtype == strata::storage::Dtype::f64) return as<double>(bytes);
        EXPECT_EQ(entry.dtype, strata::storage::Dtype::f32);
        return as<float>(bytes);
    }

private:
    template <class T>
    static std::vector<double> as(const std::vector<std::byte>& bytes) {
        std::vector<T> values(bytes.size() / sizeof(T));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        return {values.begin(), values.end()};
    }
    std::filesystem::path path_;
};

inline std::vector<float> narrow(const std::vector<double>& values) { return {values.begin(), values.end()}; }

inline void expect_near(const std::vector<float>& ours, const std::vector<double>& theirs, double tolerance,
                        const std::string& what) {
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i)
        EXPECT_NEAR(ours[i], theirs[i], tolerance) << what << " [" << i << ']';
}

}  // namespace strata::optim::testing
