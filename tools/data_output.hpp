#pragma once
// tools/data_output.hpp - what `strata data` prints: text for a person, one JSON object for a script.

#include <cstdint>
#include <string>
#include <string_view>

#include "data_survey.hpp"

namespace strata::tools {

/// What there is to print. Of the pointers those are null that the command did not ask for.
struct DataAnswer {
    std::string_view command;  ///< scan, stats, plan
    const Survey* survey = nullptr;
    std::string_view model;  ///< of statistics
    const SurveyStatistics* statistics = nullptr;
    const SurveyPlan* plan = nullptr;
    std::int64_t names = 10;   ///< skipped pictures named per reason
    std::int64_t batches = 0;  ///< micro-batches of the plan to list
};

/// Lines with their ends: aligned columns, without colour. Control characters in names are shown as escapes.
[[nodiscard]] std::string as_text(const DataAnswer& answer);

/// Bytes are exact. Text that is no UTF-8, such as some files' names, has U+FFFD in it.
[[nodiscard]] std::string as_json(const DataAnswer& answer);

}  // namespace strata::tools
