#pragma once
// tests/unit/config/read_intent.hpp - a text as an intent, with what was found in it.

#include <string>

#include <strata/config/accelerate.hpp>
#include <strata/config/deepspeed.hpp>

#include "temporary_json.hpp"

namespace strata_test {

struct ReadIntent {
    strata::config::Findings findings;
    strata::config::Intent intent;

    /// What one Error would say; empty where nothing is refused.
    [[nodiscard]] std::string refusal() const {
        if (findings.refused() == 0) return "";
        return thrown_by([&] { findings.throw_if_refused(); }).message;
    }
    /// "acts: ZeroStage<2>", "no effect: ...", with "! " where it warns.
    [[nodiscard]] std::string said(const std::string& pointer) const {
        const strata::config::Finding* const one = findings.of(pointer);
        if (one == nullptr) return "nothing";
        return (one->warns ? "! " : "") + std::string{name_of(one->effect)} + (one->to.empty() ? "" : ": " + one->to) +
               (one->words.empty() ? "" : ": " + one->words);
    }
    [[nodiscard]] std::string policies() const { return strata::config::policies(intent.composition); }
};

inline ReadIntent deepspeed(const std::string& json, const strata::config::DeepSpeedContext& context = {}) {
    ReadIntent read;
    const auto document = strata::config::parse_json(json, "ds.json", strata::config::JsonDialect::relaxed);
    read.findings.take(document);
    read.intent = read_deepspeed(document.root, read.findings, context);
    return read;
}

inline ReadIntent accelerate(const std::string& yaml, const strata::config::AccelerateContext& context = {}) {
    ReadIntent read;
    const auto document = strata::config::parse_yaml(yaml, "a.yaml");
    read.findings.take(document);
    read.intent = read_accelerate(document.root, read.findings, context);
    return read;
}

}  // namespace strata_test
