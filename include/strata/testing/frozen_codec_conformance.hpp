#pragma once
// strata/testing/frozen_codec_conformance.hpp - frozen_codec_failures(): does the codec of a format for frozen weights do what an engine
// relies on?

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <strata/core/elements.hpp>
#include <strata/zero/frozen_codec.hpp>

namespace strata::testing {

namespace detail {

/// Dequantised to bf16 or fp16, an element is the fp32 one rounded.
template <class Codec, class Element>
[[nodiscard]] bool rounds_what_fp32_has(const std::vector<std::byte>& packed, zero::MatrixShape shape,
                                        const std::vector<float>& wide) {
    std::vector<Element> narrow(wide.size());
    Codec::dequantise(packed.data(), shape, narrow.data());
    return std::equal(wide.begin(), wide.end(), narrow.begin(),
                      [](float a, Element b) { return to_element<Element>(a) == b; });
}

}  // namespace detail

/// Tries a zero::FrozenCodec with matrices of many shapes, whose numbers are -1 to 1, zeros, and not finite. Local. Returns what is wrong, a
/// sentence each; empty when nothing is.
///
///   Format  a FrozenWeightFormat whose codec is defined
///   bound   how far a weight may be off, in shares of the largest magnitude of its matrix
template <FrozenWeightFormat Format>
requires zero::FrozenCodec<typename Format::codec>
[[nodiscard]] std::vector<std::string> frozen_codec_failures(double bound) {
    using Codec = typename Format::codec;
    std::vector<std::string> failures;
    for (const zero::MatrixShape shape :
         {zero::MatrixShape{1, 1}, zero::MatrixShape{3, 64}, zero::MatrixShape{5, 13}, zero::MatrixShape{7, 65}}) {
        const std::string of = " of " + std::to_string(shape.rows) + " x " + std::to_string(shape.columns);
        const auto numel = static_cast<std::size_t>(shape.numel());
        const auto size = static_cast<std::size_t>(Codec::bytes(shape));
        std::vector<float> values(numel);
        for (std::size_t i = 0; i < numel; ++i) values[i] = static_cast<float>((i * 37 + 11) % 101) / 50.0F - 1.0F;

        // Bytes behind the last one show what is written too far; two first contents, what is not written.
        const std::byte beyond{0xa5};
        std::vector<std::byte> packed(size + 8, beyond);
        std::vector<std::byte> again(size + 8, std::byte{0x5a});
        if (!Codec::quantise(values.data(), shape, packed.data()))
            failures.push_back("quantise() refuses finite numbers" + of);
        static_cast<void>(Codec::quantise(values.data(), shape, again.data()));
        if (!std::equal(packed.begin() + static_cast<std::ptrdiff_t>(size), packed.end(),
                        std::vector<std::byte>(8, beyond).begin()))
            failures.push_back("quantise() writes beyond bytes()" + of);
        if (!std::equal(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size), again.begin()))
            failures.push_back("quantise() leaves bytes as they were" + of + ": ranks would have different ones");

        std::vector<float> back(numel, 9.0F);
        Codec::dequantise(packed.data(), shape, back.data());
        const auto larger = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
        const double largest = std::fabs(*std::max_element(values.begin(), values.end(), larger));
        double off = 0.0;
        for (std::size_t i = 0; i < numel; ++i)
            off = std::max(off, std::fabs(static_cast<double>(back[i]) - static_cast<double>(values[i])));
        if (!(off <= bound * largest))
            failures.push_back("a weight" + of + " is " + std::to_string(off) + " off, more than " +
                               std::to_string(bound * largest));
        if (!detail::rounds_what_fp32_has<Codec, bf16>(packed, shape, back))
            failures.push_back("dequantise() to bf16" + of + " is not that to fp32, rounded");
        if (!detail::rounds_what_fp32_has<Codec, fp16>(packed, shape, back))
            failures.push_back("dequantise() to fp16" + of + " is not that to fp32, rounded");

        std::fill(values.begin(), values.end(), 0.0F);
        static_cast<void>(Codec::quantise(values.data(), shape, packed.data()));
        Codec::dequantise(packed.data(), shape, back.data());
        if (std::any_of(back.begin(), back.end(), [](float value) { return value != 0.0F; }))
            failures.push_back("zeros" + of + " do not come back as zeros");
        for (const float wrong : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
            values.back() = wrong;
            if (Codec::quantise(values.data(), shape, packed.data()))
                failures.push_back("quantise() takes " + std::to_string(wrong) + of + " for a number");
        }
    }
    return failures;
}

}  // namespace strata::testing
