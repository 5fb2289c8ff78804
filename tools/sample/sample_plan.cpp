#include "sample_plan.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include <strata/core/printable.hpp>
#include <strata/core/text.hpp>
#include <strata/core/version.hpp>

namespace strata::tools {

namespace {

constexpr std::size_t longest_part = 48;

/// Bytes of the character of UTF-8 that a text begins with.
std::size_t length_of_first(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text.front());
    const std::size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    return std::min(length, text.size());
}

bool is_word(std::string_view character) {
    const char c = character.front();
    if (character.size() == 1) return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
    // What a terminal shows as it is; but no space or punctuation of U+2000 to U+206F.
    return core::printable(character) == character && !character.starts_with("\xE2\x80") &&
           !character.starts_with("\xE2\x81") && character != "\xC2\xA0";
}

}  // namespace

std::string name_part(std::string_view prompt) {
    std::string part;
    bool is_between = false;
    while (!prompt.empty()) {
        const std::string_view character = prompt.substr(0, length_of_first(prompt));
        prompt.remove_prefix(character.size());
        if (!is_word(character)) {
            is_between = true;
            continue;
        }
        const bool joins = is_between && !part.empty();
        if (part.size() + character.size() + (joins ? 1 : 0) > longest_part) break;
        if (joins) part += '-';
        part += character;
        is_between = false;
    }
    return part;
}

std::vector<PlannedPicture> plan_pictures(const std::vector<std::string>& prompts, std::int64_t count,
                                          std::int64_t seed) {
    const std::size_t digits =
        std::max<std::size_t>(3, std::to_string(static_cast<std::int64_t>(prompts.size()) * count).size());
    std::vector<PlannedPicture> pictures;
    for (std::size_t prompt = 0; prompt < prompts.size(); ++prompt) {
        const std::string part = name_part(prompts[prompt]);
        for (std::int64_t i = 0; i < count; ++i) {
            std::string number = std::to_string(pictures.size() + 1);
            number.insert(0, digits - number.size(), '0');
            pictures.push_back(
                {prompt, static_cast<std::uint64_t>(seed + i), number + (part.empty() ? "" : "_" + part) + ".png"});
        }
    }
    return pictures;
}

std::int64_t grid_columns(std::int64_t asked, std::size_t pictures, std::int64_t count) {
    if (asked >= 0) return asked;
    if (count > 1) return std::min<std::int64_t>(count, 16);
    return static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(pictures))));
}

std::vector<pictures::PngText> texts_of(const PictureFacts& facts) {
    const std::string size = std::to_string(facts.size.width) + "x" + std::to_string(facts.size.height);
    std::string parameters = facts.prompt;
    if (!facts.negative.empty()) parameters += "\nNegative prompt: " + facts.negative;
    parameters += "\nSteps: " + std::to_string(facts.steps) + ", Sampler: " + facts.solver +
                  ", CFG scale: " + core::shortest_text(facts.guidance) + ", Seed: " + std::to_string(facts.seed) +
                  ", Size: " + size + ", Model: " + facts.model;
    nlohmann::ordered_json json{{"prompt", facts.prompt},
                                {"negative_prompt", facts.negative},
                                {"seed", facts.seed},
                                {"steps", facts.steps},
                                {"guidance", facts.guidance},
                                {"guidance_rescale", facts.guidance_rescale},
                                {"real_guidance", facts.real_guidance},
                                {"solver", facts.solver},
                                {"width", facts.size.width},
                                {"height", facts.size.height},
                                {"model", facts.model},
                                {"weights", facts.weights}};
    return {{"parameters", std::move(parameters)},
            {"strata", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)},
            {"Software", "strata " + std::string{version}}};
}

}  // namespace strata::tools
