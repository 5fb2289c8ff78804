#pragma once
// strata/train/gallery.hpp - the same prompts drawn again and again while a model learns.

#include <algorithm>
#include <chrono>
#include <cmath>
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
#include <strata/core/error.hpp>
#include <strata/core/step_name.hpp>
#include <strata/data/recipe.hpp>
#include <strata/models/drawing.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/pictures/picture.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/train/drawn_samples.hpp>
#include <strata/train/gallery_options.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/picture_grid.hpp>
#include <strata/train/session.hpp>

namespace strata::train {

/// A recipe that can draw pictures with its model.
///
///   prompts  as encode_captions() made them
///   empty    what guidance leads away from: models::negative_caption()
///   size     of the pictures, in multiples of alignment()
///   first    index of prompts[0] in the whole list: noise follows from it and options.seed (models::PromptNoise)
/// Returns (3, H, W) fp32 on the CPU, in [-1, 1] or a little beyond, a prompt. How often the model is called may depend on
/// the number of prompts, and on nothing else that differs between ranks.
template <class R, class Model>
concept DrawingRecipe = data::Recipe<R> &&
    requires(const R& recipe, Model& model, std::span<const data::NamedTensors> prompts,
             const data::NamedTensors& empty, const pictures::PictureSize& size,
             const models::SamplerOptions& options) {
    { recipe.draw(model, prompts, empty, size, options, std::int64_t{}) } -> std::same_as<std::vector<at::Tensor>>;
};

/// Draws pictures of every prompt into one grid, OUTPUT/samples/step_NNNNNNNN.png, or another folder of the output
/// directory; for a trainer with a name below its own. All pictures of a prompt stand side by side: size by size, image by
/// image, and of each that without the adapter, that of the trained weights, and the average's. The text encoders are in memory while a gallery
/// is made, the autoencoder while it decodes, and no longer.
///
///   R  the recipe that the model is trained with; a DrawingRecipe of it
template <data::Recipe R>
class Gallery {
public:
    /// Local. Throws Error: bad_value for no size, one that does not fit the recipe, and fewer images than 1; and what the
    /// recipe's encoders throw.
    ///
    ///   device  that the text encoders compute on
    Gallery(Session& session, std::shared_ptr<const R> recipe, GalleryOptions options, at::Device device = at::kCPU)
        : session_{session}, recipe_{std::move(recipe)}, options_{std::move(options)} {
        check_gallery(options_, recipe_->alignment());
        if (options_.prompts.empty()) return;
        const at::NoGradGuard no_gradients;
        auto encoders = recipe_->load_caption_encoders(device);
        constexpr std::size_t together = 4;  // captions: bounds the memory that encoding takes
        for (std::size_t i = 0; i < options_.prompts.size(); i += together) {
            const auto some = std::span<const std::string>{options_.prompts}.subspan(
                i, std::min(together, options_.prompts.size() - i));
            for (data::NamedTensors& one : recipe_->encode_captions(encoders, some))
                embedded_.push_back(std::move(one));
        }
        empty_ = models::negative_caption(*recipe_, encoders, options_.negative_prompt);
    }

    /// Every rank draws its share; the noise of a picture does not depend on how many ranks there are, and the picture no
    /// more than its recipe's draw() does on what is drawn beside it.
    ///
    ///   model   as the recipe's draw() takes it; switched to evaluation while it draws
    ///   folder  below the output directory; the report of a trainer without a name shows those in "samples"
    /// Collective. Throws Error on all ranks: io_failed, no_space.
    template <class Model>
    requires DrawingRecipe<R, Model>
    void draw(Model& model, std::int64_t step, const std::filesystem::path& folder = "samples") {
        if (!embedded_.empty()) write(session_.output() / folder, step, {pictures_of(model)});
    }

    /// draw() for the model of a trainer, into its folder, with its moving average where the options say so; and what was
    /// drawn goes into its log and report. Between its steps. Collective.
    template <class AnyTrainer>
    void draw_from(AnyTrainer& trainer, std::int64_t step) {
        if (embedded_.empty() || step == last_drawn_) return;
        const auto began = std::chrono::steady_clock::now();
        DrawnSamples drawn = drawn_samples(options_, step);
        std::vector<std::vector<at::Tensor>> variants;
        constexpr bool has_average = AnyTrainer::setup::averaging::enabled;
        const auto average = has_average ? options_.average : config::EmaValidation::none;
        if constexpr (AnyTrainer::setup::adaptation::enabled)
            if (options_.without_adapter) {
                drawn.weights.emplace_back("without adapter");
                variants.push_back(pictures_without_adapter(trainer));
            }
        if (average != config::EmaValidation::ema_only) {
            drawn.weights.emplace_back("trained");
            variants.push_back(pictures_of(trainer.model()));
        }
        if constexpr (has_average)
            if (average != config::EmaValidation::none) {
                drawn.weights.emplace_back("average");
                trainer.with_average([&] { variants.push_back(pictures_of(trainer.model())); });
            }
        write(trainer.folder() / "samples", step, variants);
        drawn.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        trainer.note_samples(drawn);
        trainer.report().prompts = options_.prompts;
        trainer.report().columns = prompts_in_a_row(options_, variants.size());
        trainer.report().sample_note = sample_note(options_, drawn.weights);
        last_drawn_ = step;
    }

    /// draw_from() whenever the options say so, while the trainer trains. Local. Call before fit(); the gallery outlives
    /// the trainer's last step.
    template <class AnyTrainer>
    void follow(AnyTrainer& trainer) {
        if (embedded_.empty()) return;
        if constexpr (requires { recipe_->check_drawing(trainer.model(), options_.sampler); })
            recipe_->check_drawing(trainer.model(), options_.sampler);
        const auto draws = [this, &trainer](const StepMetrics& now) { draw_from(trainer, now.step); };
        if (options_.at_start) trainer.at_start(draws);
        trainer.every(options_.every_steps, draws);
        if (options_.every_epochs > 0)
            trainer.every(1, [this, draws](const StepMetrics& now) {
                if (ends_epochs(now, options_.every_epochs)) draws(now);
            });
    }

    [[nodiscard]] const GalleryOptions& options() const noexcept { return options_; }

private:
    /// Of all prompts, sizes and images, in the order of the grid: each rank draws some, and all get all. Of one size
    /// picture number image * prompts + prompt has the noise of that number, so that a prompt's first picture stays what it
    /// is when images are added.
    template <class Model>
    std::vector<at::Tensor> pictures_of(Model& model) {
        const auto prompts = static_cast<std::int64_t>(embedded_.size());
        std::vector<data::NamedTensors> cells;
        for (int image = 0; image < options_.images; ++image)
            cells.insert(cells.end(), embedded_.begin(), embedded_.end());
        std::vector<std::vector<at::Tensor>> of_sizes;
        model.eval();
        for (const pictures::PictureSize& size : options_.sizes) of_sizes.push_back(drawn_by_all(model, cells, size));
        model.train();
        std::vector<at::Tensor> in_order;
        for (std::int64_t prompt = 0; prompt < prompts; ++prompt)
            for (const std::vector<at::Tensor>& of_size : of_sizes)
                for (int image = 0; image < options_.images; ++image)
                    in_order.push_back(of_size[static_cast<std::size_t>(image * prompts + prompt)]);
        return in_order;
    }

    /// Once, where the weights beneath adapters are not trained: rank 0 keeps them. Empty on the others.
    template <class AnyTrainer>
    const std::vector<at::Tensor>& pictures_without_adapter(AnyTrainer& trainer) {
        if (has_base_ && trainer.base_is_frozen()) return of_base_;
        trainer.without_adapter([&] { of_base_ = pictures_of(trainer.model()); });
        if (session_.rank() != 0) of_base_.clear();
        has_base_ = true;
        return of_base_;
    }

    /// All ranks' pictures of one size, in the order of the cells. Every rank draws as many: under ZeroStage<3> the model's
    /// forward pass is collective. The last ones draw some that another has drawn, where the number does not divide.
    template <class Model>
    std::vector<at::Tensor> drawn_by_all(Model& model, const std::vector<data::NamedTensors>& cells,
                                         const pictures::PictureSize& size) {
        auto& comm = session_.comm();
        const auto count = static_cast<std::int64_t>(cells.size());
        const std::int64_t share = (count + comm.world() - 1) / comm.world();
        const auto first_of = [&](int rank) { return std::min(share * rank, count - share); };
        const std::int64_t first = first_of(comm.rank());
        const auto mine = recipe_->draw(model,
                                        std::span<const data::NamedTensors>{cells}.subspan(
                                            static_cast<std::size_t>(first), static_cast<std::size_t>(share)),
                                        empty_, size, options_.sampler, first);

        const std::int64_t numel = 3 * size.height * size.width;
        const auto slots = at::empty({share, 3, size.height, size.width}, at::kFloat);
        for (std::size_t i = 0; i < mine.size(); ++i) slots.select(0, static_cast<std::int64_t>(i)).copy_(mine[i]);
        const auto all = at::empty({share * comm.world(), 3, size.height, size.width}, at::kFloat);
        const auto bytes = [](const at::Tensor& tensor, std::int64_t elements) {
            return std::span{static_cast<std::byte*>(tensor.data_ptr()),
                             static_cast<std::size_t>(elements) * sizeof(float)};
        };
        comm.all_gather(bytes(slots, share * numel), bytes(all, share * numel * comm.world()));
        std::vector<at::Tensor> pictures(cells.size());
        for (int rank = 0; rank < comm.world(); ++rank)
            for (std::int64_t i = 0; i < share; ++i)
                pictures[static_cast<std::size_t>(first_of(rank) + i)] = all.select(0, rank * share + i);
        return pictures;
    }

    /// One grid of the same pictures of several weights, on rank 0.
    void write(const std::filesystem::path& folder, std::int64_t step,
               const std::vector<std::vector<at::Tensor>>& variants) {
        auto& comm = session_.comm();
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            std::vector<at::Tensor> pictures;
            for (std::size_t i = 0; i < variants.front().size(); ++i)
                for (const std::vector<at::Tensor>& variant : variants) pictures.push_back(variant[i]);
            const int of_a_prompt = static_cast<int>(pictures.size() / embedded_.size());
            const auto path = folder / (core::step_name(step) + ".png");
            storage::write_file(
                path, encode_picture_grid(pictures, prompts_in_a_row(options_, variants.size()) * of_a_prompt));
            session_.progress().note("drew " + path.string());
        });
    }

    Session& session_;
    std::shared_ptr<const R> recipe_;
    GalleryOptions options_;
    data::NamedTensors empty_;
    std::vector<data::NamedTensors> embedded_;
    std::vector<at::Tensor> of_base_;  // on rank 0: what a trainer's model draws without its adapters
    bool has_base_ = false;
    std::int64_t last_drawn_ = -1;  // from a trainer
};

}  // namespace strata::train
