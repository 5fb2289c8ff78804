#pragma once
// strata/config/impl/trainer_reading.ipp - warnings that say the same, on one line.

#include <algorithm>
#include <utility>

#include <strata/config/trainer_reading.hpp>

namespace strata::config {

STRATA_INLINE std::vector<std::string> TrainerReading::warnings() const {
    std::vector<std::pair<std::string, std::string>> lines;  // what happens instead, and the keys
    for (const Finding& one : findings.all()) {
        if (!one.warns) continue;
        const std::string words = one.words + (one.fix.empty() ? "" : ". Fix: " + one.fix);
        const std::string key = one.key.empty() ? one.place : "'" + one.key + "'";
        const auto found =
            std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.first == words; });
        if (found == lines.end())
            lines.emplace_back(words, key);
        else
            found->second += ", " + key;
    }
    std::vector<std::string> all;
    for (const auto& [words, keys] : lines) all.push_back(keys + ": " + words);
    return all;
}

}  // namespace strata::config
