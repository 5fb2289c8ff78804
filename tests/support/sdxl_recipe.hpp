#pragma once
// tests/support/sdxl_recipe.hpp - a recipe of SDXL's shape, with encoders that a test can foresee.
//
// Two text encoders whose tokens stand side by side, the pooled caption of the second; an autoencoder that gives mean and log
// variance, of which each visit draws its latents; sizes and crops as six numbers; zeros for dropped captions. Everything
// that is cached is bfloat16. As in Podell et al. 2023, arXiv:2307.01952, section 2.2.

#include <algorithm>
#include <atomic>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <torch/torch.h>

#include <strata/core/mix.hpp>
#include <strata/data/recipe.hpp>

namespace strata_test {

/// How often encoders were loaded, how many are there now, and what they were given.
struct EncoderCounts {
    std::atomic<int> loaded{0};
    std::atomic<int> alive{0};
    std::atomic<int> encoded{0};
    std::atomic<int> largest{0};  ///< of the batches
    std::atomic<int> inside{0};   ///< calls that run
    std::atomic<int> most_inside{0};
};

/// What counts as a loaded encoder while it lives.
class Loaded {
public:
    explicit Loaded(std::shared_ptr<EncoderCounts> counts) : counts_{std::move(counts)} {
        ++counts_->loaded;
        ++counts_->alive;
    }
    Loaded(const Loaded&) = delete;
    Loaded& operator=(const Loaded&) = delete;
    ~Loaded() { --counts_->alive; }
    template <class Call>
    auto count(std::size_t batch, const Call& call) const {
        counts_->most_inside = std::max<int>(counts_->most_inside, ++counts_->inside);
        counts_->largest = std::max<int>(counts_->largest, static_cast<int>(batch));
        counts_->encoded += static_cast<int>(batch);
        auto result = call();
        --counts_->inside;
        return result;
    }

private:
    std::shared_ptr<EncoderCounts> counts_;
};

class SdxlRecipe {
public:
    struct Batch {
        torch::Tensor latents_BCHW, tokens_BTE, pooled_BE, time_ids_B6;
        std::vector<std::string> samples;
    };
    using PictureEncoders = Loaded;
    using CaptionEncoders = Loaded;

    std::shared_ptr<EncoderCounts> pictures = std::make_shared<EncoderCounts>();
    std::shared_ptr<EncoderCounts> captions = std::make_shared<EncoderCounts>();
    std::string name = "stand-in";

    std::string picture_id() const { return "vae " + name + ", bf16 moments"; }
    std::string caption_id() const { return "clip-l and bigg " + name + ", bf16"; }
    std::int64_t alignment() const { return 8; }
    std::vector<strata::data::TensorSpec> picture_tensors(const strata::pictures::PictureSize& size) const {
        return {{"moments", torch::kBFloat16, {6, size.height / 8, size.width / 8}}};
    }
    std::vector<strata::data::TensorSpec> caption_tensors() const {
        return {{"tokens", torch::kBFloat16, {7, 4 + 6}}, {"pooled", torch::kBFloat16, {6}}};
    }
    Loaded load_picture_encoders(torch::Device) const { return Loaded{pictures}; }
    Loaded load_caption_encoders(torch::Device) const { return Loaded{captions}; }

    std::vector<strata::data::NamedTensors> encode_pictures(Loaded& vae,
                                                            const strata::data::PictureBatch& batch) const {
        return vae.count(batch.geometry.size(), [&] {
            const auto mean = torch::avg_pool2d(batch.pixels_B3HW, 8);
            const auto moments = torch::cat({mean, torch::full_like(mean, -4)}, 1).to(torch::kBFloat16);
            std::vector<strata::data::NamedTensors> entries;
            for (const auto& one : moments.unbind()) entries.push_back({{"moments", one}});
            return entries;
        });
    }
    std::vector<strata::data::NamedTensors> encode_captions(Loaded& both, std::span<const std::string> batch) const {
        return both.count(batch.size(), [&] {
            std::vector<strata::data::NamedTensors> entries;
            for (const std::string& caption : batch) {
                const auto length = static_cast<double>(caption.size());
                const auto tokens = torch::cat({torch::full({7, 4}, length), torch::full({7, 6}, -length)}, 1);
                entries.push_back({{"tokens", tokens.to(torch::kBFloat16)},
                                   {"pooled", torch::full({6}, length + 0.5).to(torch::kBFloat16)}});
            }
            return entries;
        });
    }
    std::optional<std::string> dropped_caption() const { return std::nullopt; }

    Batch collate(std::span<const strata::data::Example> examples) const {
        std::vector<torch::Tensor> latents, tokens, pooled, ids;
        Batch batch;
        for (const auto& one : examples) {
            const auto moments = one.picture.at("moments").to(torch::kFloat).chunk(2);
            auto generator = at::detail::createCPUGenerator(strata::core::seed_of_32_bits(one.random, 0));
            const auto noise = torch::randn(moments[0].sizes(), generator, torch::kFloat);
            latents.push_back(moments[0] + (moments[1] / 2).exp() * noise);
            const double shown = one.is_dropped ? 0 : 1;
            tokens.push_back(one.caption.at("tokens").to(torch::kFloat) * shown);
            pooled.push_back(one.caption.at("pooled").to(torch::kFloat) * shown);
            const auto& [original, frame] = one.geometry;
            ids.push_back(torch::tensor(
                {static_cast<double>(original.height), static_cast<double>(original.width), frame.top, frame.left,
                 static_cast<double>(frame.target.height), static_cast<double>(frame.target.width)},
                torch::kFloat));
            batch.samples.push_back(one.name);
        }
        batch.latents_BCHW = torch::stack(latents);
        batch.tokens_BTE = torch::stack(tokens);
        batch.pooled_BE = torch::stack(pooled);
        batch.time_ids_B6 = torch::stack(ids);
        return batch;
    }
};

template <class Batch, class Call>
requires std::same_as<std::remove_const_t<Batch>, SdxlRecipe::Batch>
void visit_tensors(Batch& batch, Call&& call) {
    call(batch.latents_BCHW);
    call(batch.tokens_BTE);
    call(batch.pooled_BE);
    call(batch.time_ids_B6);
}

}  // namespace strata_test
