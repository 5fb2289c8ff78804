// tests/unit/zero/frozen_codec_test.cpp - bytes of frozen weights and back: bounds of errors, every code, every instruction set.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <strata/core/elements.hpp>
#include <strata/core/simd.hpp>
#include <strata/testing/frozen_codec_conformance.hpp>
#include <strata/zero/codecs/int8.hpp>
#include <strata/zero/codecs/nf4.hpp>

#include "../../../examples/own_frozen_format.hpp"

namespace strata {
namespace {

using zero::MatrixShape;

/// Between -1 and 1, from a counter.
std::vector<float> numbers(std::int64_t numel, float scale = 1.0F) {
    std::vector<float> values;
    std::uint64_t state = 12345;
    for (std::int64_t i = 0; i < numel; ++i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        values.push_back(scale * (static_cast<float>(state >> 40) / 8388608.0F - 1.0F));
    }
    return values;
}

template <class Codec>
std::vector<std::byte> packed(const std::vector<float>& values, MatrixShape shape) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(Codec::bytes(shape)), std::byte{0xee});
    EXPECT_TRUE(Codec::quantise(values.data(), shape, bytes.data()));
    return bytes;
}
template <class Codec, class Element = float>
std::vector<Element> unpacked(const std::vector<std::byte>& bytes, MatrixShape shape,
                              core::SimdLevel level = core::simd_level()) {
    std::vector<Element> values(static_cast<std::size_t>(shape.numel()));
    Codec::dequantise_at(level, bytes.data(), shape, values.data());
    return values;
}

constexpr MatrixShape shapes[] = {{1, 1}, {1, 63}, {3, 64}, {5, 13}, {2, 65}, {7, 31}, {1, 129}, {9, 36}, {4, 257}};

TEST(FrozenCodec, Int8IsHalfAStepOfTheRowOff) {
    for (const MatrixShape shape : shapes) {
        for (const float scale : {1e-30F, 1e-3F, 1.0F, 3e38F}) {
            const auto values = numbers(shape.numel(), scale);
            const auto back = unpacked<Int8::codec>(packed<Int8::codec>(values, shape), shape);
            for (std::int64_t row = 0; row < shape.rows; ++row) {
                double largest = 0.0;
                for (std::int64_t i = 0; i < shape.columns; ++i)
                    largest =
                        std::max<double>(largest, std::fabs(values[static_cast<std::size_t>(row * shape.columns + i)]));
                const double step = Int8::codec::step_of(static_cast<float>(largest));
                EXPECT_NEAR(step, largest / 127.0, largest * 1e-6);
                for (std::int64_t i = 0; i < shape.columns; ++i) {
                    const auto at = static_cast<std::size_t>(row * shape.columns + i);
                    EXPECT_LE(std::fabs(static_cast<double>(back[at]) - static_cast<double>(values[at])),
                              step * 0.500002 + step * 127e-6);
                }
            }
        }
    }
}

TEST(FrozenCodec, Nf4IsHalfOfTheWidestGapOff) {
    for (const MatrixShape shape : shapes) {
        const auto values = numbers(shape.numel(), 0.37F);
        const auto back = unpacked<Nf4::codec>(packed<Nf4::codec>(values, shape), shape);
        for (std::size_t begin = 0; begin < values.size(); begin += 64) {
            const std::size_t end = std::min<std::size_t>(values.size(), begin + 64);
            float largest = 0.0F;
            for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(values[i]));
            for (std::size_t i = begin; i < end; ++i) {
                EXPECT_LE(std::fabs(back[i] - values[i]), Nf4::codec::half_gap * largest * 1.000001F);
                float nearest = std::numeric_limits<float>::max();
                for (const float level : Nf4::codec::levels)
                    nearest = std::min(nearest, std::fabs(level * largest - values[i]));
                EXPECT_LE(std::fabs(back[i] - values[i]), nearest + largest * 1e-6F) << "another level is nearer";
            }
        }
    }
    EXPECT_NEAR(Nf4::codec::half_gap, 0.1519F, 1e-4F);
    for (int k = 0; k + 1 < 16; ++k)
        EXPECT_LE((Nf4::codec::levels[k + 1] - Nf4::codec::levels[k]) / 2.0F, Nf4::codec::half_gap);
}

TEST(FrozenCodec, EveryCodeComesBackAsItself) {
    std::vector<float> codes;
    for (int code = -127; code <= 127; ++code) codes.push_back(0.0625F * static_cast<float>(code));
    const MatrixShape row{1, 255};
    EXPECT_EQ(unpacked<Int8::codec>(packed<Int8::codec>(codes, row), row), codes);

    std::vector<float> levels;
    for (int i = 0; i < 4 * 16 + 16; ++i) levels.push_back(Nf4::codec::levels[i % 16] * 3.25F);
    const MatrixShape blocks{1, 80};
    EXPECT_EQ(unpacked<Nf4::codec>(packed<Nf4::codec>(levels, blocks), blocks), levels);
}

template <class Codec>
void expect_the_same_bytes_again() {
    for (const MatrixShape shape : shapes) {
        const auto bytes = packed<Codec>(numbers(shape.numel(), 0.0713F), shape);
        EXPECT_EQ(packed<Codec>(unpacked<Codec>(bytes, shape), shape), bytes);
    }
}
TEST(FrozenCodec, WhatWasDequantisedToFp32GivesTheSameBytes) {
    expect_the_same_bytes_again<Int8::codec>();
    expect_the_same_bytes_again<Nf4::codec>();
}

template <class Codec, class Element>
void expect_the_same_at_every_level() {
    for (const MatrixShape shape : shapes) {
        const auto bytes = packed<Codec>(numbers(shape.numel(), 0.9F), shape);
        const auto wide = unpacked<Codec>(bytes, shape, core::SimdLevel::baseline);
        for (int level = 0; level <= static_cast<int>(core::simd_level()); ++level) {
            const auto found = unpacked<Codec, Element>(bytes, shape, static_cast<core::SimdLevel>(level));
            for (std::size_t i = 0; i < wide.size(); ++i)
                EXPECT_EQ(found[i], to_element<Element>(wide[i])) << "element " << i << " at level " << level;
        }
    }
}
TEST(FrozenCodec, EveryInstructionSetAndFormatRoundsTheSameNumber) {
    expect_the_same_at_every_level<Int8::codec, float>();
    expect_the_same_at_every_level<Int8::codec, bf16>();
    expect_the_same_at_every_level<Int8::codec, fp16>();
    expect_the_same_at_every_level<Nf4::codec, float>();
    expect_the_same_at_every_level<Nf4::codec, bf16>();
    expect_the_same_at_every_level<Nf4::codec, fp16>();
}

template <class Codec>
void expect_zeros_and_equal_rows() {
    const MatrixShape shape{3, 70};
    std::vector<float> values(210, 0.0F);
    EXPECT_EQ(unpacked<Codec>(packed<Codec>(values, shape), shape), values);
    std::fill(values.begin(), values.end(), -0.3125F);
    const auto back = unpacked<Codec>(packed<Codec>(values, shape), shape);
    for (const float value : back) EXPECT_NEAR(value, -0.3125F, 1e-5F);
}
TEST(FrozenCodec, ZerosAndRowsOfOneValueComeBack) {
    expect_zeros_and_equal_rows<Int8::codec>();
    expect_zeros_and_equal_rows<Nf4::codec>();
}

TEST(FrozenCodec, TinyRowsBecomeZerosInInt8) {
    const std::vector<float> values{0x1p-120F, -0x1p-149F, 0.0F};
    const auto back = unpacked<Int8::codec>(packed<Int8::codec>(values, {1, 3}), {1, 3});
    EXPECT_EQ(back, (std::vector<float>{0.0F, 0.0F, 0.0F}));
}

template <class Codec>
void expect_refused() {
    for (const float wrong : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()}) {
        for (const std::size_t at : {std::size_t{0}, std::size_t{66}, std::size_t{129}}) {
            auto values = numbers(130);
            values[at] = wrong;
            std::vector<std::byte> bytes(static_cast<std::size_t>(Codec::bytes({2, 65})));
            EXPECT_FALSE(Codec::quantise(values.data(), {2, 65}, bytes.data())) << wrong << " at " << at;
        }
    }
}
TEST(FrozenCodec, InfinitiesAndNansAreRefused) {
    expect_refused<Int8::codec>();
    expect_refused<Nf4::codec>();
}

template <class Codec>
void expect_the_same_by_libtorch() {
    for (const MatrixShape shape : shapes) {
        auto bytes = packed<Codec>(numbers(shape.numel(), 0.9F), shape);
        auto host = unpacked<Codec>(bytes, shape);
        std::vector<float> other(host.size());
        const auto blob = [](auto& values, at::ScalarType type) {
            return at::for_blob(values.data(), {static_cast<std::int64_t>(values.size())})
                .options(at::TensorOptions{}.dtype(type))
                .make_tensor();
        };
        Codec::dequantise_on_device(blob(bytes, at::kByte), shape, blob(other, at::kFloat));
        EXPECT_EQ(host, other);
    }
}

TEST(FrozenCodec, TheKitFindsNothing) {
    using Sentences = std::vector<std::string>;
    EXPECT_EQ(testing::frozen_codec_failures<Int8>(0.51 / 127.0), Sentences{});
    EXPECT_EQ(testing::frozen_codec_failures<Nf4>(0.1521), Sentences{});
    EXPECT_EQ(my::failures_of_powers(), Sentences{});
    EXPECT_EQ(testing::frozen_codec_failures<my::Powers>(0.01).empty(), false);
}

TEST(FrozenCodec, OperationsOfLibtorchGiveTheSameNumbers) {
    expect_the_same_by_libtorch<Int8::codec>();
    expect_the_same_by_libtorch<Nf4::codec>();
}

}  // namespace
}  // namespace strata
