#include "picture_run.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <strata/families/family.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/compute_device.hpp>
#include <strata/train/seed.hpp>

namespace strata::tools {

namespace {

std::shared_ptr<families::AnyModel> first_model(const families::Family& family, const TrainSettings& settings) {
    train::seed_generators(settings.options.seed);  // of first weights, where none are loaded
    return family.make_model();
}

}  // namespace

data::SourceOptions PictureRun::data_options() const {
    data::SourceOptions options = data::SourceOptions::from(settings);
    options.device = train::compute_device<Setup<>>(session);  // the one of this build, as all compositions have it
    options.stopped = [this] { return session.stop_requested(); };
    options.note = [this](const std::string& line) { session.say(line); };
    options.progress = [this](std::string_view what, std::int64_t done, std::int64_t total) {
        session.phases()(what, done, total);
    };
    return options;
}

PictureRun::PictureRun(Session& its_session, const TrainSettings& its_settings)
    : PictureRun{its_session, its_settings, *families::make_family(its_settings.model)} {}

PictureRun::PictureRun(Session& its_session, const TrainSettings& its_settings, const families::Family& its_family)
    : session{its_session},
      settings{its_settings},
      title{its_family.title()},
      family{*config::model_family_of(its_family.name())},
      recipe{its_family.recipe()},
      model{first_model(its_family, settings)},
      gallery{session, recipe, train::GalleryOptions::from(settings), train::compute_device<Setup<>>(session)},
      pictures{session.comm(), settings.datasets, recipe, data_options()} {
    // Before caches are filled, which may take hours.
    if (const train::GalleryOptions& drawn = gallery.options(); !drawn.prompts.empty()) {
        recipe->check_drawing(*model, drawn.sampler);
        const std::string line = its_family.stand_in_note();
        if (session.rank() == 0 && !line.empty() && !drawn.sampler.method) session.progress().note(line);
    }
    pictures.prepare();
    for (const config::DatasetList& list : settings.datasets.evaluated()) {
        data::SourceOptions options = data_options();
        options.gradient_accumulation_steps = 1;
        options.caption_dropout_probability = 0;
        options.each_once = true;
        options.cache_memory_bytes = 0;
        evaluated.push_back(
            {list.images.front().id, std::make_unique<Pictures>(session.comm(), list, recipe, options)});
        evaluated.back().pictures->prepare();
    }
    if (session.rank() != 0) return;
    const datasets::Report found = pictures.report();
    const auto names = found.write_skipped(session.output() / "skipped.txt");
    for (const std::string& line : found.lines(names)) session.progress().note(line);
}

}  // namespace strata::tools
