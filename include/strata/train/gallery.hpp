#pragma once
// strata/train/gallery.hpp - the same prompts drawn again and again while a model learns.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <strata/comm/agree.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/error.hpp>
#include <strata/core/step_name.hpp>
#include <strata/data/recipe.hpp>
#include <strata/models/flow_sampler.hpp>
#include <strata/pictures/picture.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/train/picture_grid.hpp>
#include <strata/train/session.hpp>

namespace strata::train {

struct GalleryOptions {
    std::vector<std::string> prompts;
    int columns = 4;
    std::int64_t width = 128;  ///< pixels; a multiple of the recipe's alignment()
    std::int64_t height = 128;
    models::SamplerOptions sampler{};
    /// Of a trainer with Ema<>: whose pictures; `comparison` draws those of the average into "samples_ema".
    config::EmaValidation average = config::EmaValidation::comparison;
};

/// A recipe that can draw pictures with its model: models::FluxRecipe::draw() says how.
template <class R, class Model>
concept DrawingRecipe = data::Recipe<R> &&
    requires(const R& recipe, Model& model, std::span<const data::NamedTensors> prompts,
             const data::NamedTensors& empty, const pictures::PictureSize& size,
             const models::SamplerOptions& options) {
    { recipe.draw(model, prompts, empty, size, options, std::int64_t{}) } -> std::same_as<std::vector<at::Tensor>>;
};

/// Draws a picture for every prompt into OUTPUT/samples/step_NNNNNNNN.png, or another folder of the output directory; for a
/// trainer with a name below its own. The text encoders are in memory while a gallery is made, and no longer.
///
///   R  the recipe that the model is trained with; a DrawingRecipe of it
template <data::Recipe R>
class Gallery {
public:
    /// Local. Throws Error: bad_value for a size that does not fit the recipe; and what the recipe's encoders throw.
    ///
    ///   device  that the text encoders compute on
    Gallery(Session& session, std::shared_ptr<const R> recipe, GalleryOptions options, at::Device device = at::kCPU)
        : session_{session}, recipe_{std::move(recipe)}, options_{std::move(options)} {
        const std::int64_t multiple = recipe_->alignment();
        if (options_.width % multiple != 0 || options_.height % multiple != 0 || options_.width < 1 ||
            options_.height < 1)
            throw Error{Errc::bad_value,
                        "samples cannot be " + std::to_string(options_.width) + " x " +
                            std::to_string(options_.height) + " pixels: this model needs multiples of " +
                            std::to_string(multiple),
                        "set validation_resolution to a multiple of " + std::to_string(multiple)};
        if (options_.prompts.empty()) return;
        std::vector<std::string> texts = options_.prompts;
        texts.emplace_back();
        const at::NoGradGuard no_gradients;
        auto encoders = recipe_->load_caption_encoders(device);
        embedded_ = recipe_->encode_captions(encoders, texts);
        empty_ = std::move(embedded_.back());
        embedded_.pop_back();
    }

    /// Every rank draws its share of the prompts; the pictures do not depend on how many ranks there are.
    ///
    ///   model   as the recipe's draw() takes it; switched to evaluation while it draws
    ///   folder  below the output directory; the report of a trainer without a name shows those in "samples"
    /// Collective. Throws Error on all ranks: io_failed, no_space.
    template <class Model>
    requires DrawingRecipe<R, Model>
    void draw(Model& model, std::int64_t step, const std::filesystem::path& folder = "samples") {
        draw_into(session_.output() / folder, model, step);
    }

    /// draw() for the model of a trainer, into its folder, with its moving average where the options say so. Collective.
    template <class AnyTrainer>
    void draw_from(AnyTrainer& trainer, std::int64_t step) {
        if constexpr (AnyTrainer::setup::averaging::enabled) {
            const bool only = options_.average == config::EmaValidation::ema_only;
            if (options_.average != config::EmaValidation::none)
                trainer.with_average(
                    [&] { draw_into(trainer.folder() / (only ? "samples" : "samples_ema"), trainer.model(), step); });
            if (only) return;
        }
        draw_into(trainer.folder() / "samples", trainer.model(), step);
    }

private:
    ///   folder  a whole path
    template <class Model>
    void draw_into(const std::filesystem::path& folder, Model& model, std::int64_t step) {
        if (embedded_.empty()) return;
        auto& comm = session_.comm();
        const auto count = static_cast<std::int64_t>(embedded_.size());
        const std::int64_t share = (count + comm.world() - 1) / comm.world();
        const std::int64_t begin = std::min(count, share * comm.rank()), end = std::min(count, begin + share);

        std::vector<at::Tensor> mine;
        model.eval();
        {
            // A rank without a prompt of its own draws one all the same, and drops it: under ZeroStage<3> the model's
            // forward pass is collective.
            const std::int64_t first = std::min(begin, count - 1);
            const auto prompts = std::span<const data::NamedTensors>{embedded_}.subspan(
                static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(end, first + 1) - first));
            mine = recipe_->draw(model, prompts, empty_, {options_.width, options_.height}, options_.sampler, begin);
            mine.resize(static_cast<std::size_t>(end - begin));
        }
        model.train();

        const auto pictures = gathered(mine, count, share);
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            const auto path = folder / (core::step_name(step) + ".png");
            storage::write_file(path, encode_picture_grid(pictures, options_.columns));
            session_.progress().note("drew " + path.string());
        });
    }

    /// All ranks' pictures in the order of the prompts.
    std::vector<at::Tensor> gathered(const std::vector<at::Tensor>& mine, std::int64_t count, std::int64_t share) {
        auto& comm = session_.comm();
        const std::int64_t numel = 3 * options_.height * options_.width;
        const auto slots = at::empty({share, 3, options_.height, options_.width}, at::kFloat).fill_(1.0F);
        for (std::size_t i = 0; i < mine.size(); ++i) slots.select(0, static_cast<std::int64_t>(i)).copy_(mine[i]);
        const auto all = at::empty({share * comm.world(), 3, options_.height, options_.width}, at::kFloat);
        const auto bytes = [](const at::Tensor& tensor, std::int64_t elements) {
            return std::span{static_cast<std::byte*>(tensor.data_ptr()),
                             static_cast<std::size_t>(elements) * sizeof(float)};
        };
        comm.all_gather(bytes(slots, share * numel), bytes(all, share * numel * comm.world()));
        std::vector<at::Tensor> pictures;
        for (std::int64_t i = 0; i < count; ++i) pictures.push_back(all.select(0, i));
        return pictures;
    }

    Session& session_;
    std::shared_ptr<const R> recipe_;
    GalleryOptions options_;
    data::NamedTensors empty_;
    std::vector<data::NamedTensors> embedded_;
};

}  // namespace strata::train
