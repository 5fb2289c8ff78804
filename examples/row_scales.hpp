#pragma once
// examples/row_scales.hpp - a kind of adapter of one's own: every output of a layer is scaled, as (IA)^3 scales keys and values.

#include <memory>
#include <string_view>

#include <torch/torch.h>

#include <strata/adapters/adapt.hpp>

namespace my {

//! [adapter]
/// Liu et al. 2022 (arXiv:2205.05638), section 3.3: y = (1 + s) (W x) + b, with a number s for each output of the layer.
class RowScalesAdapter : public strata::models::LayerAdapter {
public:
    explicit RowScalesAdapter(std::int64_t outputs, double start) {
        scale = register_parameter("scale", torch::full({outputs}, start));
    }
    torch::Tensor forward(const torch::Tensor& x, const strata::models::BaseLayer& base) override {
        const torch::Tensor y = base.sum(x, base.base_weight(), {});
        const auto of_outputs = [&](const torch::Tensor& v_O) {
            return (base.shape().is_convolution() ? v_O.view({-1, 1, 1}) : v_O).to(y.scalar_type());
        };
        const torch::Tensor scaled = y * of_outputs(1 + scale);
        return base.base_bias().defined() ? scaled + of_outputs(base.base_bias()) : scaled;
    }
    torch::Tensor merged(const torch::Tensor& weight) const override {
        const torch::Tensor rows = weight.to(torch::kFloat).flatten(1) * (1 + scale.detach()).unsqueeze(1);
        return rows.view(weight.sizes());
    }
    torch::Tensor scale;
};
//! [adapter]

//! [kind]
struct RowScales {
    struct Options {
        double start = 0;  // 0: changes nothing at first
        static void describe(auto& option) { option("start", &Options::start, {-1, 1}, "What scales begin with"); }
    };
    static constexpr std::string_view name = "row_scales";  // parameters are LAYER.row_scales.scale
    static std::shared_ptr<strata::models::LayerAdapter> make(const strata::models::LayerShape& layer,
                                                              const Options& options) {
        return std::make_shared<RowScalesAdapter>(layer.out, options.start);
    }
};
static_assert(strata::adapters::AdapterKind<RowScales>);
//! [kind]

}  // namespace my
