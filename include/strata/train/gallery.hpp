#pragma once
// strata/train/gallery.hpp - the same prompts drawn again and again while a model learns.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <strata/comm/agree.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/error.hpp>
#include <strata/core/step_name.hpp>
#include <strata/models/flow_sampler.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/train/picture_grid.hpp>
#include <strata/train/session.hpp>

namespace strata::train {

struct GalleryOptions {
    std::vector<std::string> prompts;
    int columns = 4;
    std::int64_t width = 128;  ///< pixels; a multiple of the autoencoder's pixels_per_latent() * latents_multiple
    std::int64_t height = 128;
    std::int64_t latents_multiple = 1;  ///< what the model's latents must be a multiple of: its patch
    models::SamplerOptions sampler{};
    /// Of a trainer with Ema<>: whose pictures; `comparison` draws those of the average into "samples_ema".
    config::EmaValidation average = config::EmaValidation::comparison;
};

/// Draws a picture for every prompt into OUTPUT/samples/step_NNNNNNNN.png, or another folder of the output directory; for a
/// trainer with a name below its own.
///
///   Autoencoder, TextEncoder  those the model is trained with; copied
template <class Autoencoder, class TextEncoder>
class Gallery {
public:
    /// Local. Throws Error: bad_value for a size that does not fit autoencoder and model.
    Gallery(Session& session, Autoencoder autoencoder, const TextEncoder& text_encoder, GalleryOptions options)
        : session_{session},
          autoencoder_{std::move(autoencoder)},
          options_{std::move(options)},
          empty_{text_encoder.encode("")} {
        const std::int64_t multiple = autoencoder_.pixels_per_latent() * options_.latents_multiple;
        if (options_.width % multiple != 0 || options_.height % multiple != 0 || options_.width < 1 ||
            options_.height < 1)
            throw Error{Errc::bad_value,
                        "samples cannot be " + std::to_string(options_.width) + " x " +
                            std::to_string(options_.height) + " pixels: this model needs multiples of " +
                            std::to_string(multiple),
                        "set validation_resolution to a multiple of " + std::to_string(multiple)};
        for (const std::string& prompt : options_.prompts) embedded_.push_back(text_encoder.encode(prompt));
    }

    /// Every rank draws its share of the prompts; the pictures do not depend on how many ranks there are.
    ///
    ///   model   as models::sample_euler takes it; switched to evaluation while it draws
    ///   folder  below the output directory; the report of a trainer without a name shows those in "samples"
    /// Collective. Throws Error on all ranks: io_failed, no_space.
    template <class Model>
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
            const std::vector<data::TextEmbedding> prompts(embedded_.begin() + first,
                                                           embedded_.begin() + std::max(end, first + 1));
            const std::int64_t block = autoencoder_.pixels_per_latent();
            const at::Tensor latents_BCHW =
                models::sample_euler(model, prompts, empty_, autoencoder_.latent_channels(), options_.height / block,
                                     options_.width / block, options_.sampler, begin);
            for (std::int64_t i = 0; i < end - begin; ++i)
                mine.push_back(autoencoder_.decode(latents_BCHW.select(0, i)));
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
    Autoencoder autoencoder_;
    GalleryOptions options_;
    data::TextEmbedding empty_;
    std::vector<data::TextEmbedding> embedded_;
};

}  // namespace strata::train
