#pragma once
// strata/models/impl/rotary.ipp - bodies of the tables and ids.

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <strata/models/rotary.hpp>

namespace strata::models {

namespace detail {

/// Cosine and sine of every pair of one axis, each entry twice, at the ids that were asked for: a grid has few.
class AxisAngles {
public:
    explicit AxisAngles(std::int64_t width) : width_{width} {}
    struct Row {
        std::vector<float> cosine, sine;
    };
    const Row& at(double id) {
        const auto [entry, is_new] = rows_.try_emplace(id);
        if (!is_new) return entry->second;
        for (std::int64_t i = 0; i < width_; i += 2) {
            const double frequency = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(width_));
            const double angle = id * frequency;
            entry->second.cosine.insert(entry->second.cosine.end(), 2, static_cast<float>(std::cos(angle)));
            entry->second.sine.push_back(static_cast<float>(-std::sin(angle)));
            entry->second.sine.push_back(static_cast<float>(std::sin(angle)));
        }
        return entry->second;
    }

private:
    std::int64_t width_;
    std::map<double, Row> rows_;
};

}  // namespace detail

STRATA_INLINE at::Tensor grid_ids(std::int64_t rows, std::int64_t columns, std::int64_t plane) {
    at::Tensor ids_L3 = at::empty({rows * columns, 3}, at::kFloat);
    auto* id = ids_L3.data_ptr<float>();
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column)
            for (const std::int64_t part : {plane, row, column}) *id++ = static_cast<float>(part);
    return ids_L3;
}

STRATA_INLINE RotaryTable rotary_table(const at::Tensor& ids_L3, const RotaryAxes& axes, at::Device device) {
    const at::Tensor ids = ids_L3.to(at::kCPU, at::kDouble).contiguous();
    const auto* id = ids.data_ptr<double>();
    const std::int64_t tokens = ids.size(0);
    const std::int64_t width = axes[0] + axes[1] + axes[2];
    RotaryTable table{at::empty({tokens, width}, at::kFloat), at::empty({tokens, width}, at::kFloat)};
    auto* cosine = table.cosine_LK.data_ptr<float>();
    auto* sine = table.sine_LK.data_ptr<float>();
    std::array<detail::AxisAngles, 3> angles{detail::AxisAngles{axes[0]}, detail::AxisAngles{axes[1]},
                                             detail::AxisAngles{axes[2]}};
    for (std::int64_t l = 0; l < tokens; ++l) {
        for (detail::AxisAngles& axis : angles) {
            const detail::AxisAngles::Row& row = axis.at(*id++);
            cosine = std::copy(row.cosine.begin(), row.cosine.end(), cosine);
            sine = std::copy(row.sine.begin(), row.sine.end(), sine);
        }
    }
    return {table.cosine_LK.to(device), table.sine_LK.to(device)};
}

STRATA_INLINE RotaryTable rotary_table(std::int64_t text_tokens, std::int64_t rows, std::int64_t columns,
                                       const RotaryAxes& axes, at::Device device) {
    return rotary_table(at::cat({at::zeros({text_tokens, 3}), grid_ids(rows, columns)}), axes, device);
}

}  // namespace strata::models
