#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/train/evaluation_curves.hpp>

namespace {

using strata::train::add_losses;
using strata::train::evaluation_curves;
using strata::train::EvaluationCurve;

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

TEST(EvaluationCurves, EverySetHasALineAndItsWords) {
    const std::vector<EvaluationCurve> curves{{"faces", {{10, 0.5}, {20, 0.25}, {30, 0.375}}},
                                              {"hands", {{10, 0.75}, {30, 0.5}}}};
    const std::string html = evaluation_curves(curves);
    EXPECT_EQ(count(html, "<polyline"), 2U) << html;
    EXPECT_NE(html.find("faces</b>: lowest 0.25 after step 20, 0.375 after step 30"), std::string::npos) << html;
    EXPECT_NE(html.find("hands</b>: lowest 0.5 after step 30</p>"), std::string::npos) << html;
}

TEST(EvaluationCurves, LossesThatAreNotFiniteInterruptALineAndAreCounted) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::string html =
        evaluation_curves(std::vector<EvaluationCurve>{{"a", {{1, 1.0}, {2, 2.0}, {3, nan}, {4, 3.0}, {5, 4.0}}}});
    EXPECT_EQ(count(html, "<polyline"), 2U) << html;
    EXPECT_NE(html.find("; 1 not finite"), std::string::npos) << html;
    const std::string none = evaluation_curves(std::vector<EvaluationCurve>{{"b", {{1, nan}}}});
    EXPECT_EQ(none, "<p class=\"under\"><b style=\"color:#c03a2b\">b</b>: no loss is finite</p>\n");
}

TEST(EvaluationCurves, LossesAreAddedByName) {
    std::vector<EvaluationCurve> curves;
    add_losses(curves, 5, {{"a", 1.0}, {"b", 2.0}});
    add_losses(curves, 6, {{"b", 3.0}});
    EXPECT_EQ(curves, (std::vector<EvaluationCurve>{{"a", {{5, 1.0}}}, {"b", {{5, 2.0}, {6, 3.0}}}}));
}

}  // namespace
