#pragma once
// strata/config/deepspeed.hpp - the front door for DeepSpeed's JSON.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <strata/config/document.hpp>
#include <strata/config/findings.hpp>
#include <strata/config/format_table.hpp>
#include <strata/config/intent.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// DeepSpeed's whole schema, of 0.16 with the names of older versions.
[[nodiscard]] const FormatTable& deepspeed_table();

/// What a file does not know of the run that it is for.
struct DeepSpeedContext {
    std::optional<std::int64_t> ranks{};  ///< nullopt: the batch is held against any number of ranks
};

/// What a DeepSpeed configuration asks for. A document whose keys stand in an object `deepspeed`, as other programs wrap
/// it, is read from there, with a warning.
///
/// Throws nothing: what is wrong is in `findings`, all of it, and what the intent has for the keys it is about is then
/// nothing. findings.throw_if_refused() follows.
[[nodiscard]] Intent read_deepspeed(const Node& root, Findings& findings, const DeepSpeedContext& context = {});

/// The same of a file. Throws Errc::unreadable_config for one that is no JSON and no YAML.
[[nodiscard]] Intent load_deepspeed(const std::filesystem::path& file, Findings& findings,
                                    const DeepSpeedContext& context = {});

/// What DeepSpeed would have to be given: a JSON that is read as the same intent. What it has no key for is left out:
/// recomputation, averages, schedules by shape other than cosine, where ranks run.
[[nodiscard]] std::string write_deepspeed(const Intent& intent);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/deepspeed.ipp>
#include <strata/config/impl/deepspeed_writer.ipp>
#endif
