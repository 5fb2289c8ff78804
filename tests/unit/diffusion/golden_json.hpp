#pragma once
// tests/unit/diffusion/golden_json.hpp - the reference implementations' numbers about schedules, and how near ours are.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace strata_test {

inline std::filesystem::path golden_file(const std::string& name) {
    return std::filesystem::path{STRATA_REFERENCE_DIR} / "golden" / (name + ".json");
}

inline nlohmann::json read_golden(const std::string& name) {
    std::ifstream in{golden_file(name)};
    return nlohmann::json::parse(in);
}

/// Numbers of a list, or of a list of lists one after the other.
inline std::vector<double> numbers(const nlohmann::json& list) {
    std::vector<double> result;
    for (const auto& element : list) {
        if (element.is_number()) {
            result.push_back(element.get<double>());
        } else {
            const auto inner = numbers(element);
            result.insert(result.end(), inner.begin(), inner.end());
        }
    }
    return result;
}

/// Each number within `bound` of theirs, relative to it.
template <class Ours>
void expect_relative(const Ours& ours, const std::vector<double>& theirs, double bound, const std::string& what) {
    ASSERT_EQ(std::size(ours), theirs.size()) << what;
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
        const double error = std::abs(static_cast<double>(ours[i]) - theirs[i]) / std::max(std::abs(theirs[i]), 1e-30);
        const bool same = static_cast<double>(ours[i]) == theirs[i];
        if (!same && !(error <= worst)) worst = error, at = i;
    }
    EXPECT_LE(worst, bound) << what << "[" << at << "] is " << ours[at] << ", theirs " << theirs[at];
}

}  // namespace strata_test
