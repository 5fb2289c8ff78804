// strata-train - what `strata train` starts on every rank: reads configurations as they are, and trains what they ask for.

#include <string_view>

#include <strata/config/dispatch.hpp>
#include <strata/core/error.hpp>
#include <strata/train/session.hpp>

#include "../config_output.hpp"
#include "../sample/draw_samples.hpp"
#include "check_fresh.hpp"
#include "picture_run.hpp"
#include "train_plan.hpp"
#include "train_settings.hpp"

namespace {

using namespace strata;

/// Calls the list that has the composition of this number.
template <class... Lists>
void train_in(tools::PictureRun& run, const tools::TrainPlan& plan, config::Combinations<Lists...>) {
    std::size_t first = 0;
    const auto try_list = [&](auto list) {
        const std::size_t next = first + config::listed_v<decltype(list)>.size();
        if (plan.chosen >= first && plan.chosen < next) tools::train_pictures(run, plan.asked, list);
        first = next;
    };
    (try_list(Lists{}), ...);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::string_view{argv[1]} == "sample") return tools::sample_main(argc - 1, argv + 1);
    return strata::run<tools::TrainSettings>(argc, argv, [](Session& session, const tools::TrainSettings& settings) {
        session.set_collective_timeout(settings.options.collective_timeout);
        const tools::TrainPlan plan = tools::plan_training(settings, session.world());
        if (session.rank() == 0) tools::print(plan.text + "\n");
        session.output();  // taken before hours of encoding: no other run works there
        tools::check_fresh(session, settings);
        tools::AsConfigured::every = plan.recompute;
        tools::PictureRun run{session, settings};
        train_in(run, plan, tools::TrainCompositions{});
    });
}
