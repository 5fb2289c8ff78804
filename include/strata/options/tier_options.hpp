#pragma once
// strata/options/tier_options.hpp - TierOptions: what the tiers of an engine can be told.

#include <chrono>
#include <filesystem>

#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>
#include <strata/options/pipeline_options.hpp>

namespace strata::zero {

/// Where files of state, parameters and gradients are, and how they are moved. Of use to tiers that want a folder, as Nvme does.
struct TierOptions {
    std::filesystem::path nvme_path{};  ///< a folder on a local disk, which must exist; ranks may have different ones
    std::chrono::seconds nvme_lock_timeout{60};  ///< how long another run may keep that folder's lock
    offload::PipelineOptions state{};            ///< OffloadTarget<Nvme>: its memory, and how it reads and writes
    offload::PipelineOptions units{};            ///< OffloadTarget<Nvme, Parameters>: the same for units
    offload::PipelineOptions gradients{};        ///< OffloadTarget<Nvme, Gradients>: the same for sums of gradients

    static void describe(auto& option) {
        option(
            "nvme_path", &TierOptions::nvme_path,
            {.help =
                 "`OffloadTarget<Nvme>`: a folder on a local disk for state, parameters and gradients; it must exist",
             .key = "offload_nvme_path",
             .alias = "nvme_path"});
        option("nvme_lock_timeout", &TierOptions::nvme_lock_timeout, {0, ranges::timeout_s.most},
               {.help = "Seconds that another run may keep the lock of that folder",
                .unit = "seconds",
                .special = "0 tries once",
                .key = "offload_lock_timeout",
                .alias = "nvme_lock_timeout"});
        option.part("state", &TierOptions::state, "offload_state_", "State on disk");
        option.part("units", &TierOptions::units, "offload_units_", "Units on disk");
        option.part("gradients", &TierOptions::gradients, "offload_gradients_", "Gradients on disk");
    }
};

}  // namespace strata::zero
