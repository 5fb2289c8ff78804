#include "check_fresh.hpp"

#include <filesystem>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/families/model_folder.hpp>
#include <strata/train/leftovers.hpp>

namespace strata::tools {

void check_fresh(Session& session, const TrainSettings& settings) {
    if (!session.fresh()) return;
    const std::filesystem::path folder = session.output();
    comm::agree(session.comm(), [&] {
        if (session.rank() != 0) return;
        std::vector<std::filesystem::path> bases{settings.adapter.init_file};
        if (settings.model.kind() != config::ModelFamily::small) {
            families::FolderProblems problems;
            const families::ModelFolder parts = families::find_model_parts(settings.model, problems);
            for (const families::ModelPart* part :
                 {&parts.denoiser, &parts.vae, &parts.text_encoder, &parts.text_encoder_2})
                bases.push_back(part->weights);
        }
        train::check_bases(folder, train::find_leftovers(folder, settings.options.exported), bases);
    });
}

}  // namespace strata::tools
