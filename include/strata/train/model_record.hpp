#pragma once
// strata/train/model_record.hpp - record_model(): a run says in its output directory which model it trains.

#include <filesystem>

#include <strata/comm/agree.hpp>
#include <strata/config/model_record.hpp>
#include <strata/config/model_settings.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/train/session.hpp>

namespace strata::train {

/// Writes model.json into a trainer's folder, so that `strata sample OUTPUT` can make the model of its checkpoints. Call it when the trainer
/// is made, before fit(); a run that goes on writes what it trains now.
///
///   folder  trainer.folder()
///   model   TrainerConfig::model
/// Collective. Throws on all ranks: io_failed, no_space.
inline void record_model(Session& session, const std::filesystem::path& folder, const config::ModelSettings& model) {
    comm::agree(session.comm(), [&] {
        if (session.rank() != 0) return;
        storage::write_file(folder / config::model_record_name, config::model_record_text(model));
    });
}

}  // namespace strata::train
