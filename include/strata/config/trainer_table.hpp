#pragma once
// strata/config/trainer_table.hpp - trainer_table(): every key of a trainer's configuration, strata's own and SimpleTuner's.

#include <strata/config/format_table.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// The keys of trainer_schema(), and those that SimpleTuner documents besides (simpletuner_keys()), for pages and editors.
[[nodiscard]] const FormatTable& trainer_table();

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/trainer_table.ipp>
#endif
