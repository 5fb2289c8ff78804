#pragma once
// strata/train/exported_weights.hpp - exported_weights(): a run that is complete leaves its weights for other programs, once.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <strata/adapters/saved_adapter.hpp>
#include <strata/core/inline.hpp>
#include <strata/options/export_options.hpp>
#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/session.hpp>

namespace strata::train {

struct ExportSettings {
    ExportOptions options{};         ///< checked
    bool averages = false;           ///< the engine keeps an average
    std::filesystem::path folder{};  ///< the trainer's
    std::int64_t step = 0;           ///< that the run has come to
    double loss = 0;                 ///< of that step: with it, it tells this run's weights from those of another
    /// Adapters are trained, and what they are. None: all weights are.
    std::optional<adapters::SaveAdapterOptions> adapter{};
};

struct ExportedWeights {
    bool is_new = false;  ///< something was written
    std::vector<std::filesystem::path>
        files{};  ///< the one of the weights and that of the average, by the names that were asked for

    /// "out/model.safetensors, out/model_ema.safetensors"
    [[nodiscard]] std::string shown() const;
};

/// Writes the weights, and the average's, as Trainer::save_weights() does, or where adapters are trained these alone: pytorch_lora_weights.safetensors in
/// the folder, and ema/pytorch_lora_weights.safetensors; files that say they are of this step, run and type stay as they
/// are, for a run that is started again. Which they are stands in their metadata, under "strata.export". The same answer on every rank.
/// Collective. Throws what weights::save_weights() throws.
[[nodiscard]] ExportedWeights exported_weights(Session& session, AnyModel& model, AnyEngine& engine,
                                               const ExportSettings& settings);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/exported_weights.ipp>
#endif
