#pragma once
// strata/config/trainer_writer.hpp - write_trainer_config(): an Intent as a trainer's configuration.

#include <string>

#include <strata/config/intent.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// A config.json that is read as the same intent: numbers by strata's keys, stage, tiers and DeepSpeed's schedules in
/// `deepspeed_config`. Hostfiles and their filters are left out, and what is "auto".
[[nodiscard]] std::string write_trainer_config(const Intent& intent);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/trainer_writer.ipp>
#endif
