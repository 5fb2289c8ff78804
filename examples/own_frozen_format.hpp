#pragma once
// examples/own_frozen_format.hpp - a format of one's own for frozen weights: powers of two.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <strata/core/elements.hpp>
#include <strata/policy/frozen_weights.hpp>
#include <strata/testing/frozen_codec_conformance.hpp>
#include <strata/zero/frozen_codec.hpp>

namespace my {

//! [format]
/// 8 bits a weight and no scales: a sign and a power of two, from 2^-100 to 2^20.
struct Powers {
    static constexpr const char* name = "powers";
    class codec {
    public:
        static std::int64_t bytes(strata::zero::MatrixShape shape) noexcept { return shape.numel(); }
        static bool quantise(const float* values, strata::zero::MatrixShape shape, std::byte* packed) noexcept {
            for (std::int64_t i = 0; i < shape.numel(); ++i) {
                if (!std::isfinite(values[i])) return false;
                int exponent = 0;  // |value| is in [2^(exponent - 1), 2^exponent)
                const float fraction = std::frexp(std::fabs(values[i]), &exponent);
                if (fraction < 0.75F) --exponent;
                const bool is_zero = values[i] == 0.0F || exponent < -100;
                const int code = is_zero ? 0 : 101 + (exponent > 20 ? 20 : exponent);
                packed[i] = static_cast<std::byte>(code | (values[i] < 0.0F ? 128 : 0));
            }
            return true;
        }
        template <class Element>
        static void dequantise(const std::byte* packed, strata::zero::MatrixShape shape, Element* values) noexcept {
            for (std::int64_t i = 0; i < shape.numel(); ++i) {
                const int code = std::to_integer<int>(packed[i]) & 127;
                const float magnitude = code == 0 ? 0.0F : std::ldexp(1.0F, code - 101);
                values[i] = strata::to_element<Element>(std::to_integer<int>(packed[i]) > 127 ? -magnitude : magnitude);
            }
        }
    };
};
static_assert(strata::zero::FrozenCodec<Powers::codec>);
//! [format]

//! [kit]
/// What is wrong with it, a sentence each: nothing. A weight is at most a third of its row's largest magnitude off.
inline std::vector<std::string> failures_of_powers() {
    return strata::testing::frozen_codec_failures<Powers>(1.0 / 3.0);
}
//! [kit]

}  // namespace my
