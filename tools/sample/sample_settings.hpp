#pragma once
// tools/sample/sample_settings.hpp - SampleSettings: what `strata sample` is told.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <strata/config/schema.hpp>
#include <strata/core/sampling_method.hpp>
#include <strata/families/added_adapter.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::tools {

/// What the denoiser computes in.
enum class SampleDtype : std::uint8_t { bf16, fp32 };

/// Every member is a flag of `strata sample` and of `strata-train sample`, which it starts. What is left out is the model's own.
struct SampleSettings {
    std::filesystem::path model;  ///< a pipeline's folder, a run's output directory or a configuration

    std::vector<std::string> prompt;
    std::filesystem::path prompts;  ///< a file with more of them
    std::string negative;           ///< what to draw away from
    std::int64_t count = 1;         ///< pictures of each prompt, of seeds one after the other
    std::int64_t seed = 42;         ///< of a prompt's first picture

    std::optional<std::int64_t> steps;
    std::optional<double> guidance;
    double guidance_rescale = 0;
    double real_guidance = 1;
    std::optional<SamplingMethod> solver;
    std::optional<pictures::PictureSize> size;

    std::filesystem::path weights;  ///< of the denoiser, in place of the model's
    std::string checkpoint;         ///< a step of the model's run; or another run, or one of its checkpoints
    std::vector<std::string> lora;  ///< files of adapters, which are added to those weights one after the other
    std::vector<std::string> lora_strength;  ///< of each of them, or of all; none: 1
    bool ema = false;
    bool masters = false;
    std::optional<SampleDtype> dtype;

    bool force = false;
    std::int64_t columns = -1;  ///< of the grid; -1: so many that it is nearly square; 0: no grid

    [[nodiscard]] static const config::Schema<SampleSettings>& schema();

    /// What is wrong whatever the model is. Throws bad_argument; and what prompts_of() throws.
    void check() const;
    /// `prompt`, then those of the file. Throws as check() does.
    [[nodiscard]] std::vector<std::string> all_prompts() const;

    /// Throws bad_argument for a strength that is no number, and for more or fewer than there are files.
    [[nodiscard]] std::vector<families::AddedAdapter> adapters() const;
};

/// Throws bad_value with the nearest size that fits, unless both edges are multiples of `alignment`.
void check_alignment(const pictures::PictureSize& size, std::int64_t alignment);

/// Prompts of a file: of *.json a list of texts, or an object whose values they are; of any other its lines (config::read_prompts()). Throws
/// unreadable_config; bad_value for JSON that is neither, and for a file without prompts.
[[nodiscard]] std::vector<std::string> prompts_of(const std::filesystem::path& file);

}  // namespace strata::tools
