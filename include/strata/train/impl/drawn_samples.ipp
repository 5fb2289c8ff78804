#pragma once
// strata/train/impl/drawn_samples.ipp - samples as a line of JSON.

#include <cmath>

#include <nlohmann/json.hpp>

#include <strata/train/drawn_samples.hpp>
#include <strata/train/impl/line_apart.ipp>

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
    return detail::as_line({{"step", drawn.step}, {"samples", samples}}) + "\n";
}

STRATA_INLINE std::optional<std::int64_t> step_of_samples_line(std::string_view line) {
    return detail::step_of_line_about("samples", line);
}

}  // namespace strata::train
