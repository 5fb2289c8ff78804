// The kit for kinds of adapters: strata's own conform, an example's does, and kinds that break a promise are told which.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/lokr.hpp>
#include <strata/adapters/lora.hpp>
#include <strata/testing/adapter_conformance.hpp>

#include "../../../examples/row_scales.hpp"

namespace {

using namespace strata;
using strata::testing::adapter_failures;
using Failures = std::vector<std::string>;

//! [kit]
TEST(RowScales, Conform) { EXPECT_EQ(adapter_failures<my::RowScales>(), Failures{}); }
//! [kit]

TEST(AdapterConformance, StratasOwnKindsConform) {
    EXPECT_EQ(adapter_failures<Lora>(), Failures{});
    EXPECT_EQ(adapter_failures<Lora>({.rank = 4, .alpha = 2, .use_dora = true, .start = adapters::LoraStart::gaussian}),
              Failures{});
    EXPECT_EQ(adapter_failures<Lokr>({.rank = 1}), Failures{});
    EXPECT_EQ(adapter_failures<Lokr>({.rank = 1, .factor = 4, .decompose_both = true}), Failures{});
}

/// Merges as RowScales do, and adds a number that merging does not know, different in each.
struct Crooked {
    struct Options {};
    static constexpr std::string_view name = "crooked";
    struct Adapter : my::RowScalesAdapter {
        Adapter(std::int64_t outputs) : RowScalesAdapter{outputs, 0} {
            shift = register_parameter("shift", torch::rand({1}) + static_cast<double>(++count));
        }
        torch::Tensor forward(const torch::Tensor& x, const models::BaseLayer& base) override {
            return RowScalesAdapter::forward(x, base) + shift.detach();
        }
        torch::Tensor shift;
        static inline int count = 0;
    };
    static std::shared_ptr<models::LayerAdapter> make(const models::LayerShape& layer, const Options&) {
        return std::make_shared<Adapter>(layer.out);
    }
};

TEST(AdapterConformance, EveryBrokenPromiseIsASentence) {
    const Failures failures = adapter_failures<Crooked>();
    const auto has = [&](std::string_view words) {
        for (const std::string& failure : failures) {
            if (failure.find(words) != std::string::npos) return true;
        }
        return false;
    };
    EXPECT_TRUE(has("Linear(24, 36): made twice"));
    EXPECT_TRUE(has("at first it changes what the layer gives"));
    EXPECT_TRUE(has("a parameter gets no gradient"));
    EXPECT_TRUE(has("Conv2d(8, 12, 3): a layer of the merged weight gives something else"));
}

}  // namespace
