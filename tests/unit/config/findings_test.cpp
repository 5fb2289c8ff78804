#include <string>

#include <gtest/gtest.h>

#include <strata/config/findings.hpp>

#include "temporary_json.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::thrown_by;

const Document& document() {
    static const Document made =
        parse_json("{\"zero\": {\"stage\": 4},\n \"clip\": 1.0, \"far\": {\"x\": 1}}", "ds.json", JsonDialect::strict);
    return made;
}

TEST(Findings, AllProblemsAreOneError) {
    Findings findings;
    findings.acts(*document().root.find("clip"), "engine.max_grad_norm");
    EXPECT_NO_THROW(findings.throw_if_refused());
    findings.refuse(*document().root.at("zero.stage"), Errc::bad_value, "is 4, and stages are 0, 1, 2 and 3",
                    "write 3");
    EXPECT_EQ(thrown_by([&] { findings.throw_if_refused(); }).message,
              "[ST2103] ds.json:1:20: /zero/stage is 4, and stages are 0, 1, 2 and 3. Fix: write 3.");
    findings.refuse(*document().root.find("far"), Errc::unknown_key, "is unknown", "did you mean 'fat'");
    const auto problem = thrown_by([&] { findings.throw_if_refused(); });
    EXPECT_EQ(problem.code, Errc::bad_value);
    EXPECT_EQ(
        problem.message,
        "[ST2103] 2 problems: (1) ds.json:1:20: /zero/stage is 4, and stages are 0, 1, 2 and 3; (2) ds.json:2:22: /far "
        "is unknown. Fix: (1) write 3; (2) did you mean 'fat'.");
    EXPECT_EQ(findings.refused(), 2U);
}

TEST(Findings, WhatStandsInNoFileIsNamedByWhatItWasGivenWith) {
    const Document flags = document_of({{"zero_stage", "7", "--zero_stage"}}, "command line");
    Findings findings;
    findings.refuse(*flags.root.find("zero_stage"), Errc::bad_value, "is 7", "write 3");
    EXPECT_EQ(thrown_by([&] { findings.throw_if_refused(); }).message, "[ST2103] --zero_stage: is 7. Fix: write 3.");
}

TEST(Findings, TheTableHasALineAKey) {
    Findings findings;
    findings.acts(*document().root.find("clip"), "engine.max_grad_norm");
    findings.warn_no_effect(*document().root.find("far"), "strata has no such thing", "remove it");
    EXPECT_EQ(findings.table(),
              "clip  1.0    ds.json:2:10    acts: engine.max_grad_norm\n"
              "far   {...}  ds.json:2:22  ! no effect: strata has no such thing. Fix: remove it\n");
    EXPECT_EQ(findings.table(true).find("clip"), std::string::npos);
    EXPECT_EQ(findings.warnings(), 1U);
    EXPECT_EQ(findings.of("/clip")->to, "engine.max_grad_norm");
}

}  // namespace
