#pragma once
// strata/config/trainer_reading.hpp - TrainerReading: what a trainer's configuration says besides its numbers.

#include <filesystem>
#include <string>
#include <vector>

#include <strata/config/findings.hpp>
#include <strata/config/intent.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// What decides the types of a trainer, which a program composes and `strata train` chooses, and what became of each key.
struct TrainerReading {
    std::filesystem::path file;  ///< empty: none was read
    Intent intent;               ///< stage, tiers, rule, formats; and the numbers of the file once more, by path
    std::string model_family;    ///< "flux", "sdxl"; empty: not said
    std::string model_flavour;
    std::string model_path;  ///< `pretrained_model_name_or_path`
    Findings findings;

    /// What a person should read, a line for each thing that happens instead: "'read_batch_size', 'max_workers': as many
    /// threads work as there are cores".
    [[nodiscard]] std::vector<std::string> warnings() const;
};

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/trainer_reading.ipp>
#endif
