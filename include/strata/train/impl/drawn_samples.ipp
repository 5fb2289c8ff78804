#pragma once
// strata/train/impl/drawn_samples.ipp - samples as a line of JSON.

#include <cmath>

#include <nlohmann/json.hpp>

#include <strata/train/drawn_samples.hpp>

namespace strata::train {

STRATA_INLINE std::string samples_line(const DrawnSamples& drawn) {
    nlohmann::ordered_json sizes = nlohmann::ordered_json::array();
    for (const pictures::PictureSize& size : drawn.sizes)
        sizes.push_back(std::to_string(size.width) + "x" + std::to_string(size.height));
    nlohmann::ordered_json samples{{"file", drawn.file},   {"weights", drawn.weights},  {"prompts", drawn.prompts},
                                   {"sizes", sizes},       {"images", drawn.images},    {"seed", drawn.seed},
                                   {"steps", drawn.steps}, {"guidance", drawn.guidance}};
    if (!drawn.negative_prompt.empty()) samples["negative_prompt"] = drawn.negative_prompt;
    samples["seconds"] = std::round(drawn.seconds * 1000) / 1000;
    const nlohmann::ordered_json line{{"step", drawn.step}, {"samples", samples}};
    return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

STRATA_INLINE std::optional<std::int64_t> step_of_samples_line(std::string_view line) {
    if (line.find("\"samples\"") == std::string_view::npos) return std::nullopt;
    const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
    if (!json.is_object() || json.contains("loss")) return std::nullopt;
    const auto step = json.find("step");
    const auto samples = json.find("samples");
    if (samples == json.end() || !samples->is_object() || step == json.end() || !step->is_number_integer())
        return std::nullopt;
    return step->get<std::int64_t>();
}

}  // namespace strata::train
