#pragma once
// strata/config/codegen.hpp - an Intent as a C++ header: the composition as a type, the numbers as statements.

#include <string>
#include <string_view>

#include <strata/config/intent.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// How a generated header presents itself.
struct GeneratedHeader {
    std::string name;    ///< its namespace: an identifier
    std::string source;  ///< the configuration, for its first line and its comments: "ds_config.json"
};

/// A header with what the configuration says, known when the program is compiled:
///
///   namespace NAME {
///   using Setup = strata::Setup<...>;                       its composition
///   inline constexpr std::int64_t samples_per_micro_batch;  of one rank; 0: not said
///   inline constexpr std::int64_t samples_per_step;         of all ranks; 0: not said
///   namespace given { inline constexpr auto schedule_lr; }  and every other number, by its path
///   template <class Options> void set(Options& options);    its numbers, into TrainOptions of that Setup
///   }
///
/// It needs the rooms policy and options, and no libtorch. Local. Throws Errc::bad_value with all options that are out of
/// range or of the wrong type.
[[nodiscard]] std::string generated_header(const Intent& intent, const GeneratedHeader& header);

/// The name of a file without folder and endings as an identifier: "ds-config.zero2.json" is ds_config_zero2.
[[nodiscard]] std::string identifier_of(std::string_view file_name);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/codegen.ipp>
#endif
