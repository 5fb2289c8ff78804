#pragma once
// strata/adapters/lora.hpp - Lora: two matrices of low rank beside a layer's weight (Hu et al. 2021, arXiv:2106.09685), and DoRA.
//
// Shapes: I, O what goes into the layer and comes out, r rank.

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include <torch/torch.h>

#include <strata/adapters/adapt.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>
#include <strata/models/layer_adapter.hpp>

namespace strata::adapters {

/// What the first matrix begins with; the second is zero, so that an adapter begins by changing nothing.
enum class LoraStart : std::uint8_t {
    usual,     ///< uniform, as a linear layer of libtorch begins, and PEFT's
    gaussian,  ///< normal, of deviation 1 / rank
};

inline constexpr std::array<NamedValue<LoraStart>, 2> lora_start_names{{
    {"default", LoraStart::usual},
    {"gaussian", LoraStart::gaussian},
}};

struct LoraOptions {
    std::int64_t rank = 16;
    double alpha = 0;      ///< what is added is alpha / rank times the product; 0: rank
    double dropout = 0.1;  ///< share of what goes into the first matrix that is zero while training
    bool use_dora = false;
    LoraStart start = LoraStart::usual;

    static void describe(auto& option) {
        option("rank", &LoraOptions::rank, {1, 65536}, {.help = "Rank of the two matrices", .key = "lora_rank"});
        option("alpha", &LoraOptions::alpha, {0, 1e9},
               {.help = "What an adapter adds is this through the rank times its product",
                .special = "0 is the rank",
                .key = "lora_alpha"});
        option("dropout", &LoraOptions::dropout, {0, 0.999},
               {.help = "Share of an adapter's input that is zero while training", .key = "lora_dropout"});
        option("use_dora", &LoraOptions::use_dora,
               {.help = "Magnitudes of rows are trained beside their directions (DoRA)", .key = "use_dora"});
        option("start", &LoraOptions::start, lora_start_names,
               {.help = "What the first matrix begins with", .key = "lora_init_type"});
    }
    void check(OptionCheck& check) const { check.described(*this); }

    [[nodiscard]] double scale() const noexcept {
        return (alpha > 0 ? alpha : static_cast<double>(rank)) / static_cast<double>(rank);
    }
    friend bool operator==(const LoraOptions&, const LoraOptions&) = default;
};

/// A layer's LoRA. Parameters `down` (r, I), `up` (O, r); of a convolution (r, I, kh, kw) and (O, r, 1, 1); with DoRA `magnitude` (O).
///
///   y = W x + b + s B (A dropout(x)), s = alpha / r
///
/// DoRA (Liu et al. 2024, arXiv:2402.09353, eq. 5): the weight is m V / |V| with V = W + s B A and |V| the norms of its rows, of which no
/// gradient is formed (section 4.3). `magnitude` is m through the norms of W's rows, so that it begins as 1 without a look at W, which
/// may have no memory then; a file has m itself.
class LoraAdapter final : public models::LayerAdapter {
public:
    LoraAdapter(const models::LayerShape& shape, const LoraOptions& options);
    [[nodiscard]] at::Tensor forward(const at::Tensor& x, const models::BaseLayer& base) override;
    [[nodiscard]] at::Tensor merged(const at::Tensor& weight) const override;

    [[nodiscard]] const LoraOptions& options() const noexcept { return options_; }
    at::Tensor down, up, magnitude;  ///< magnitude is undefined without DoRA

private:
    [[nodiscard]] at::Tensor added(const at::Tensor& x, const models::BaseLayer& base, const at::Tensor& to) const;
    /// What DoRA multiplies rows by: magnitude |W| / |W + s B A|. (O), fp32
    [[nodiscard]] at::Tensor factor_of_rows(const at::Tensor& weight) const;

    models::LayerShape shape_;
    LoraOptions options_;
};

}  // namespace strata::adapters

namespace strata {

/// The kind of adapter that Adapter<Lora> names.
struct Lora {
    using Options = adapters::LoraOptions;
    static constexpr std::string_view name = "lora";
    [[nodiscard]] static std::shared_ptr<models::LayerAdapter> make(const models::LayerShape& layer,
                                                                    const Options& options);
};

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/lora.ipp>
#endif
