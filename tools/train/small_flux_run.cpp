#include "small_flux_run.hpp"

#include <string_view>

#include <strata/models/small_flux.hpp>

namespace strata::tools {

train::GalleryOptions SmallFluxRun::gallery_options(const TrainSettings& settings) {
    train::GalleryOptions options;
    options.prompts = settings.validation_prompts;
    options.width = options.height = settings.validation_resolution;
    options.latents_multiple = models::SmallFlux::patch;
    options.sampler = {.steps = static_cast<int>(settings.validation_num_inference_steps),
                       .guidance = settings.validation_guidance,
                       .seed = static_cast<std::uint64_t>(settings.validation_seed)};
    options.average = settings.ema_validation;
    return options;
}

data::ImageTextOptions SmallFluxRun::data_options() const {
    data::ImageTextOptions options = data::ImageTextOptions::from(settings);
    options.latents_multiple = models::SmallFlux::patch;
    options.stopped = [this] { return session.stop_requested(); };
    options.note = [this](const std::string& line) { session.say(line); };
    options.progress = [this](std::string_view what, std::int64_t done, std::int64_t total) {
        session.phases()(what, done, total);
    };
    return options;
}

SmallFluxRun::SmallFluxRun(Session& its_session, const TrainSettings& its_settings)
    : session{its_session},
      settings{its_settings},
      gallery{session, *codec, *text, gallery_options(settings)},
      pictures{session.comm(), settings.datasets, codec, text, data_options()} {
    if (session.rank() != 0) return;
    const datasets::Report found = pictures.report();
    const auto names = found.write_skipped(session.output() / "skipped.txt");
    for (const std::string& line : found.lines(names)) session.progress().note(line);
}

}  // namespace strata::tools
