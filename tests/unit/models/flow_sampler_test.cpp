// The sampler on models whose paths are known.

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/core/sampling_method.hpp>
#include <strata/models/flow_sampler.hpp>
#include <strata/models/sampler_options.hpp>

namespace {

namespace models = strata::models;
using strata::models::TextEmbedding;

/// The exact velocity when all data are one picture, whose every value is pooled[0]: (x - picture) / sigma.
struct OnePicture {
    at::Tensor forward(const at::Tensor& x, const at::Tensor&, const at::Tensor& pooled, const at::Tensor& sigma) {
        largest_batch = std::max(largest_batch, x.size(0));
        return (x - pooled.select(1, 0).view({-1, 1, 1, 1})) / sigma.view({-1, 1, 1, 1});
    }
    std::int64_t largest_batch = 0;
};

TextEmbedding caption(float value) { return {at::zeros({2, 4}), at::full({4}, value)}; }

TEST(FlowSampler, EndsInThePictureThatTheModelKnows) {
    OnePicture model;
    const at::Tensor drawn = models::sample_flow(model, {caption(0.25f), caption(-1.0f)}, caption(0.0f), 3, 4, 6,
                                                 {.steps = 7, .guidance = 1.0, .seed = 5});
    EXPECT_EQ(drawn.sizes(), (at::IntArrayRef{2, 3, 4, 6}));
    EXPECT_LT((drawn[0] - 0.25).abs().max().item<double>(), 1e-5);
    EXPECT_LT((drawn[1] + 1.0).abs().max().item<double>(), 1e-5);
    EXPECT_EQ(model.largest_batch, 2);  // guidance 1 needs no second half
}

TEST(FlowSampler, GuidanceExtrapolatesFromTheEmptyCaption) {
    OnePicture model;
    const at::Tensor drawn =
        models::sample_flow(model, {caption(1.0f)}, caption(0.5f), 3, 2, 2, {.steps = 4, .guidance = 3.0, .seed = 5});
    // Linear in the picture: 0.5 + 3 * (1 - 0.5).
    EXPECT_LT((drawn - 2.0).abs().max().item<double>(), 1e-5);
    EXPECT_EQ(model.largest_batch, 2);
}

TEST(FlowSampler, APictureDoesNotDependOnItsCompany) {
    // One step of a model that ignores everything returns the noise itself.
    struct Still {
        at::Tensor forward(const at::Tensor& x, const at::Tensor&, const at::Tensor&, const at::Tensor&) {
            return at::zeros_like(x);
        }
    } model;
    const std::vector<TextEmbedding> prompts(5, caption(1.0f));
    const models::SamplerOptions options{.steps = 1, .guidance = 2.0, .seed = 11};
    const at::Tensor all = models::sample_flow(model, prompts, caption(0.0f), 2, 4, 4, options);
    const at::Tensor share =
        models::sample_flow(model, {caption(1.0f), caption(1.0f)}, caption(0.0f), 2, 4, 4, options, 3);
    EXPECT_TRUE(at::equal(all.narrow(0, 3, 2), share));
    EXPECT_FALSE(at::equal(all[0], all[1]));
}

TEST(FlowSampler, NoiseIsStandardAndDecidedBySeedIndexAndShape) {
    const at::Tensor noise = models::sample_noise(3, 2, 16, 32, 32);
    EXPECT_TRUE(at::equal(noise, models::sample_noise(3, 2, 16, 32, 32)));
    EXPECT_FALSE(at::equal(noise, models::sample_noise(3, 1, 16, 32, 32)));
    EXPECT_FALSE(at::equal(noise, models::sample_noise(4, 2, 16, 32, 32)));
    EXPECT_NEAR(noise.mean().item<double>(), 0.0, 0.03);
    EXPECT_NEAR(noise.std().item<double>(), 1.0, 0.03);
}

TEST(FlowSampler, LeavesLibtorchsGeneratorAlone) {
    torch::manual_seed(1);
    const at::Tensor expected = at::randn({4});
    torch::manual_seed(1);
    OnePicture model;
    models::sample_flow(model, {caption(1.0f)}, caption(0.0f), 3, 2, 2);
    EXPECT_TRUE(at::equal(at::randn({4}), expected));
}

TEST(FlowSampler, EveryMethodEndsInThePictureAndWhatItAddsFollowsFromTheSeed) {
    for (const auto& [name, method] : strata::sampling_methods) {
        OnePicture model;
        const auto draw = [&, method = method](std::int64_t first, std::size_t count) {
            return models::sample_flow(model, std::vector<TextEmbedding>(count, caption(0.25f)), caption(0.0f), 3, 4, 6,
                                       {.steps = 6, .guidance = 1.0, .seed = 5, .method = method}, first);
        };
        EXPECT_LT((draw(0, 2) - 0.25).abs().max().item<double>(), 1e-4) << name;
    }
    struct Halves {  // a model that does not lead to one picture
        at::Tensor forward(const at::Tensor& x, const at::Tensor&, const at::Tensor&, const at::Tensor&) {
            return x * 0.5;
        }
    } model;
    const std::vector<TextEmbedding> prompts(3, caption(1.0f));
    const models::SamplerOptions options{.steps = 4, .guidance = 1, .method = strata::SamplingMethod::euler_ancestral};
    const at::Tensor all = models::sample_flow(model, prompts, caption(0.0f), 2, 4, 4, options);
    const at::Tensor last = models::sample_flow(model, {caption(1.0f)}, caption(0.0f), 2, 4, 4, options, 2);
    EXPECT_TRUE(at::equal(all.narrow(0, 2, 1), last)) << "noise on the way is a prompt's own as well";
    models::SamplerOptions plain = options;
    plain.method = strata::SamplingMethod::euler;
    EXPECT_FALSE(at::equal(all, models::sample_flow(model, prompts, caption(0.0f), 2, 4, 4, plain)));
}

}  // namespace
