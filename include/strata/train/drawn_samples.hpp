#pragma once
// strata/train/drawn_samples.hpp - DrawnSamples: what the log says of pictures that were drawn at a step.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::train {

struct DrawnSamples {
    std::int64_t step = 0;               ///< 0: before the first
    std::string file{};                  ///< below the trainer's folder: "samples/step_00000100.png"
    std::vector<std::string> weights{};  ///< side by side, from left to right: "without adapter", "trained", "average"
    std::vector<std::string> prompts{};
    std::string negative_prompt{};
    std::vector<pictures::PictureSize> sizes{};
    int images = 1;  ///< of each prompt, size and weights
    std::uint64_t seed = 0;
    int steps = 0;  ///< of the sampler
    double guidance = 1;
    double seconds = 0;  ///< that drawing and writing took, by rank 0's clock
};

/// Its line in metrics.jsonl: {"step":100,"samples":{"file":...,"seconds":...}}
[[nodiscard]] std::string samples_line(const DrawnSamples& drawn);

/// The step of a line of metrics.jsonl that is about samples and nothing else; nullopt of any other.
[[nodiscard]] std::optional<std::int64_t> step_of_samples_line(std::string_view line);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/drawn_samples.ipp>
#endif
