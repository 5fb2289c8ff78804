#include "sample_settings.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/config/prompt_file.hpp>
#include <strata/config/sample_size.hpp>
#include <strata/config/value.hpp>
#include <strata/core/error.hpp>

namespace strata::tools {

namespace {

std::vector<config::Choice<SamplingMethod>> solvers() {
    std::vector<config::Choice<SamplingMethod>> all;
    for (const auto& one : sampling_methods) all.push_back({one.name, one.value});
    return all;
}

std::string text_of(const pictures::PictureSize& size) {
    return std::to_string(size.width) + "x" + std::to_string(size.height);
}

}  // namespace

void check_alignment(const pictures::PictureSize& size, std::int64_t alignment) {
    const auto nearest = [&](std::int64_t edge) {
        return std::max(alignment, (edge + alignment / 2) / alignment * alignment);
    };
    const pictures::PictureSize near{nearest(size.width), nearest(size.height)};
    if (near == size) return;
    throw Error{Errc::bad_value,
                "this model draws no pictures of " + text_of(size) + " pixels: edges are multiples of " +
                    std::to_string(alignment),
                "use --size " + text_of(near)};
}

std::vector<std::string> prompts_of(const std::filesystem::path& file) {
    if (file.extension() != ".json") return config::read_prompts(file);
    const nlohmann::json json = config::load_json(file);
    std::vector<std::string> prompts;
    for (const auto& item : json.items())
        if (item.value().is_string()) prompts.push_back(item.value().get<std::string>());
    if (prompts.empty() || prompts.size() != json.size() || !json.is_structured())
        throw Error{Errc::bad_value, file.string() + " is no list of prompts",
                    R"(write texts, ["a red apple", ...], or names and texts, {"apple": "a red apple", ...})"};
    return prompts;
}

const config::Schema<SampleSettings>& SampleSettings::schema() {
    using S = SampleSettings;
    static const config::Schema<S> schema = [] {
        config::Schema<S> keys;
        keys.text("model", &S::model, "A pipeline's folder, a run's output directory, or a configuration").required();
        keys.texts("prompt", &S::prompt, "What to draw; may be given again and again");
        keys.text("prompts", &S::prompts, "A file with a prompt a line, or JSON: a list of texts, or names and texts");
        keys.text("negative", &S::negative, "What to draw away from; empty: what a dropped caption was in training");
        keys.integer("count", &S::count, {1, 1e6}, "Pictures of each prompt, of seeds one after the other");
        keys.integer("seed", &S::seed, {0, 9e15}, "Of the first picture of every prompt");
        keys.integer("steps", &S::steps, {1, 1000}, "Calls of the model a picture; null: as usual for the model");
        keys.number("guidance", &S::guidance, {0, 100},
                    "1 follows the prompt alone, more leads away from the negative one; null: as usual for the model");
        keys.number("guidance_rescale", &S::guidance_rescale, {0, 1},
                    "Share of what guidance predicts that gets the prompt's own deviation back");
        keys.number("real_guidance", &S::real_guidance, {1, 100},
                    "Of a model that is told its guidance: classifier-free guidance besides, in twice the time");
        keys.choice<SamplingMethod>("solver", &S::solver, solvers(),
                                    "How noise becomes a picture; null: the model's own");
        keys.custom("size", "text", "null",
                    "Pixels, as `1024x768`, or `512` for a square; null: as usual for the model",
                    [](S& settings, const config::Value& value) {
                        const auto sizes = config::sample_sizes_of(value);
                        if (sizes.size() > 1)
                            value.refuse(Errc::bad_value, "names several sizes", "name one: 1024x768");
                        settings.size = {sizes.front().width, sizes.front().height};
                    });
        keys.text("weights", &S::weights,
                  "The denoiser's weights in place of the model's: *.safetensors, an index, or a folder with them");
        keys.text(
            "checkpoint", &S::checkpoint,
            "A step of the model's run in place of its newest; of another model a run, or one of its checkpoints");
        keys.texts(
            "lora", &S::lora,
            "An adapter's file (LoRA, DoRA or LoKr), added to the denoiser's weights; may be given again and again");
        keys.texts("lora_strength", &S::lora_strength, "Of each --lora in turn, or of all; 1 as it was trained")
            .alias("lora-strength");
        keys.flag("ema", &S::ema, "The moving average of a checkpoint's weights");
        keys.flag("masters", &S::masters,
                  "The fp32 weights that the optimizer of a checkpoint keeps; for --dtype fp32");
        keys.choice<SampleDtype>("dtype", &S::dtype, {{"bf16", SampleDtype::bf16}, {"fp32", SampleDtype::fp32}},
                                 "What the model computes in; null: bf16, and fp32 with --masters");
        keys.flag("force", &S::force, "Pictures of the same names in the output directory are replaced");
        keys.integer("columns", &S::columns, {-1, 1000}, "Of grid.png; -1: nearly a square; 0: no grid");
        return keys;
    }();
    return schema;
}

std::vector<std::string> SampleSettings::all_prompts() const {
    std::vector<std::string> all = prompt;
    if (!prompts.empty())
        for (std::string& one : prompts_of(prompts)) all.push_back(std::move(one));
    return all;
}

void SampleSettings::check() const {
    if (prompt.empty() && prompts.empty())
        throw Error{Errc::bad_argument, "there is nothing to draw",
                    "type --prompt \"a red apple\", or --prompts FILE with one prompt a line"};
    if (!weights.empty() && !checkpoint.empty())
        throw Error{Errc::bad_argument, "--weights and --checkpoint both say what the denoiser's weights are",
                    "keep one of them"};
    if (!weights.empty() && (ema || masters))
        throw Error{Errc::bad_argument,
                    std::string{ema ? "--ema" : "--masters"} + " is of a checkpoint, and --weights names a file",
                    "leave one of them away; a file with the average is given by --weights itself"};
    if (ema && masters)
        throw Error{Errc::bad_argument, "--ema and --masters are two sets of weights", "keep one of them"};
    static_cast<void>(adapters());
    if (!prompts.empty()) static_cast<void>(prompts_of(prompts));
}

std::vector<families::AddedAdapter> SampleSettings::adapters() const {
    std::vector<double> strengths;
    for (const std::string& text : lora_strength) {
        double strength = 0;
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), strength);
        if (failure != std::errc{} || end != text.data() + text.size() || !std::isfinite(strength))
            throw Error{Errc::bad_argument, "--lora_strength is '" + text + "', which is no number",
                        "give 1 for an adapter as it was trained, 0.5 for half of it"};
        strengths.push_back(strength);
    }
    if (strengths.size() > 1 && strengths.size() != lora.size())
        throw Error{Errc::bad_argument,
                    std::to_string(strengths.size()) + " strengths are given for " + std::to_string(lora.size()) +
                        (lora.size() == 1 ? " adapter" : " adapters"),
                    "give one for all of them, or --lora_strength behind each --lora"};
    if (lora.empty() && !strengths.empty())
        throw Error{Errc::bad_argument, "--lora_strength is of an adapter, and there is none",
                    "name its file: --lora pytorch_lora_weights.safetensors"};
    std::vector<families::AddedAdapter> all;
    for (std::size_t i = 0; i < lora.size(); ++i)
        all.push_back({lora[i], strengths.empty() ? 1 : strengths.size() == 1 ? strengths.front() : strengths[i]});
    return all;
}

}  // namespace strata::tools
