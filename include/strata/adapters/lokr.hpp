#pragma once
// strata/adapters/lokr.hpp - Lokr: what is added to a weight is a Kronecker product (LyCORIS, Yeh et al. 2023, arXiv:2309.14859, section 3.3).
//
// Shapes: I = b d what goes into the layer, O = a c what comes out, r rank, k the weights of a kernel's plane (1 for a linear layer).

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include <torch/torch.h>

#include <strata/adapters/adapt.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/models/layer_adapter.hpp>

namespace strata::adapters {

struct LokrOptions {
    std::int64_t rank = 16;  ///< of a factor that is a product itself
    double alpha = 0;        ///< what is added is alpha / rank times the product; 0: rank. Whole factors are not scaled
    std::int64_t factor =
        -1;  ///< the larger of the first factor's sides is at most this; -1: both factors are as square as they can be
    bool decompose_both = false;  ///< the first factor is a product of rank r too, where it is large enough
    bool full_matrix = false;     ///< no factor is a product

    static void describe(auto& option) {
        option("rank", &LokrOptions::rank, {1, 1e9},
               {.help = "Rank of a factor that is a product itself", .key = "lora_rank"});
        option("alpha", &LokrOptions::alpha, {0, 1e9},
               {.help = "What an adapter adds is this through the rank times its product",
                .special = "0 is the rank",
                .key = "lora_alpha"});
        option("factor", &LokrOptions::factor, {-1, 1e9},
               {.help = "LoKr: the first factor's sides are at most this", .special = "-1 makes both factors alike"});
        option("decompose_both", &LokrOptions::decompose_both, "LoKr: the first factor is a product of low rank, too");
        option("full_matrix", &LokrOptions::full_matrix, "LoKr: no factor is a product of low rank");
    }
    void check(OptionCheck& check) const {
        if (check.described(*this) && factor == 0)
            check.refuse(check.name("factor") + " is 0", "give -1, or a factor of the layers' widths");
    }
    friend bool operator==(const LokrOptions&, const LokrOptions&) = default;
};

/// LyCORIS' factorization(): two factors of `dimension`, the smaller one first, which is the largest that is at most `factor`; -1: the most
/// alike. Versions before dimension >= factor^2 was asked there took a larger `factor` that divides: 320 by 64 was 5 and 64, and is 16 and 20.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> kronecker_factors(std::int64_t dimension, std::int64_t factor);

/// A layer's LoKr. Parameters `w1` (a, b), or `w1_a` (a, r) and `w1_b` (r, b); `w2` (c, d, kh, kw), or `w2_a` (c, r) and `w2_b` (r, d k).
///
///   y = W x + b + s (w1 (x) w2) x, s = alpha / r, or 1 where both factors are whole
///
/// The product is never formed: x is seen as b vectors of d.
class LokrAdapter final : public models::LayerAdapter {
public:
    LokrAdapter(const models::LayerShape& shape, const LokrOptions& options);
    [[nodiscard]] at::Tensor forward(const at::Tensor& x, const models::BaseLayer& base) override;
    [[nodiscard]] at::Tensor merged(const at::Tensor& weight) const override;

    [[nodiscard]] const LokrOptions& options() const noexcept { return options_; }
    [[nodiscard]] double scale() const noexcept;
    at::Tensor w1, w1_a, w1_b, w2, w2_a, w2_b;  ///< undefined where the factor is the other form

private:
    [[nodiscard]] at::Tensor first() const;   // (a, b)
    [[nodiscard]] at::Tensor second() const;  // (c, d), or (c, d, kh, kw)

    models::LayerShape shape_;
    LokrOptions options_;
    std::int64_t a_, c_, b_, d_;
};

}  // namespace strata::adapters

namespace strata {

/// The kind of adapter that Adapter<Lokr> names.
struct Lokr {
    using Options = adapters::LokrOptions;
    static constexpr std::string_view name = "lokr";
    [[nodiscard]] static std::shared_ptr<models::LayerAdapter> make(const models::LayerShape& layer,
                                                                    const Options& options);
};

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/lokr.ipp>
#endif
