#pragma once
// strata/models/impl/rotary.ipp - body of rotary_table.

#include <cmath>

#include <strata/models/rotary.hpp>

namespace strata::models {

STRATA_INLINE RotaryTable rotary_table(std::int64_t text_tokens, std::int64_t rows, std::int64_t columns,
                                       const RotaryAxes& axes, at::Device device) {
    const std::int64_t tokens = text_tokens + rows * columns;
    const std::int64_t width = axes[0] + axes[1] + axes[2];
    RotaryTable table{at::empty({tokens, width}, at::kFloat), at::empty({tokens, width}, at::kFloat)};
    auto* cosine = table.cosine_LK.data_ptr<float>();
    auto* sine = table.sine_LK.data_ptr<float>();
    for (std::int64_t l = 0; l < tokens; ++l) {
        const std::int64_t cell = l - text_tokens;
        const std::array<std::int64_t, 3> ids =
            cell < 0 ? std::array<std::int64_t, 3>{} : std::array<std::int64_t, 3>{0, cell / columns, cell % columns};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            for (std::int64_t i = 0; i < axes[axis]; i += 2) {
                const double frequency = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(axes[axis]));
                const double angle = static_cast<double>(ids[axis]) * frequency;
                *cosine++ = static_cast<float>(std::cos(angle));
                *cosine++ = static_cast<float>(std::cos(angle));
                *sine++ = static_cast<float>(-std::sin(angle));
                *sine++ = static_cast<float>(std::sin(angle));
            }
        }
    }
    return {table.cosine_LK.to(device), table.sine_LK.to(device)};
}

}  // namespace strata::models
