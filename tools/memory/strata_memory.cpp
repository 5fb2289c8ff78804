// strata-memory - what `strata memory` prints: the engine's own forecast of a model's training, made without the model.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include <strata/adapters/adapt.hpp>
#include <strata/adapters/lokr.hpp>
#include <strata/adapters/lora.hpp>
#include <strata/config/convert.hpp>
#include <strata/config/document.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/amounts.hpp>
#include <strata/core/error.hpp>
#include <strata/core/printable.hpp>
#include <strata/families/family.hpp>
#include <strata/models/diffusion_unet.hpp>
#include <strata/models/flux.hpp>
#include <strata/models/flux_transformer.hpp>
#include <strata/models/small_flux.hpp>
#include <strata/models/unet.hpp>
#include <strata/models/unet_options.hpp>
#include <strata/options/adapter_options.hpp>
#include <strata/options/engine_options.hpp>
#include <strata/train/options_from_config.hpp>
#include <strata/zero/model_outline.hpp>
#include <strata/zero/parameters.hpp>

#include "../arguments.hpp"
#include "memory_table.hpp"

namespace {

namespace fs = std::filesystem;
using namespace strata;
using tools::Option;
using zero::outline_of;

constexpr std::array options{
    Option{"--ranks", "N,N,...", "numbers of ranks, 1,2,4,8,32"},
    Option{"--help", "", "prints this text"},
};

void print_help() {
    std::printf(
        "strata memory MODEL [OPTION ...]\n"
        "\n"
        "What training all of a model takes on each rank, with usual trainers side by side: GB of the device in a step, of the\n"
        "host and of a disk, as the engine foresees it. Activations are not in it. The model is never made.\n"
        "\n"
        "MODEL is flux, sdxl, sd15 or small; or the config.json of a Flux transformer or a U-Net, or a folder with one:\n"
        "that of the model, or the pipeline's; or a trainer's configuration, or the folder it is in, whose model and numbers\n"
        "it is then.\n\n%s",
        tools::help_lines(options).c_str());
}

/// The config.json of a model: named, in its folder, or in a folder of a pipeline.
fs::path config_of(const fs::path& word) {
    if (!fs::is_directory(word)) return word;
    for (const char* const place : {"transformer/config.json", "unet/config.json", "config.json"})
        if (fs::exists(word / place)) return word / place;
    throw Error{Errc::not_found,
                "'" + word.string() + "' has no config.json, transformer/config.json or unet/config.json",
                "name the folder of a model or of a pipeline"};
}

/// A trainer's configuration, where that is what the word names.
std::optional<config::TrainerConfig> configuration_of(const fs::path& word) {
    fs::path file = word;
    if (fs::is_directory(word)) {
        for (const char* const place : {"model_index.json", "transformer/config.json", "unet/config.json"})
            if (fs::exists(word / place)) return std::nullopt;
        for (const char* const name : {"config.json", "config.toml", "config.env"})
            if (file == word && fs::exists(word / name)) file = word / name;
    }
    if (!fs::is_regular_file(file)) return std::nullopt;
    const config::Document document = config::load_trainer_document(file);
    if (document.root.find("_class_name") != nullptr) return std::nullopt;
    if (config::format_of(document.root) != config::ConfigFormat::trainer) return std::nullopt;
    return config::load_trainer_config(file);
}

/// Attaches the adapter that a configuration trains.
template <class Kind>
void adapt(families::AnyModel& model, const config::AdapterSettings& settings, const families::Family& family) {
    train::AdapterOptions<Kind> chosen;
    train::detail::take_adapter<Setup<Adapter<Kind>>>(settings, config::model_family_of(family.name()), chosen);
    static_cast<void>(adapters::adapt<Kind>(model, chosen.kind, adapters::patterns_of(chosen.targets),
                                            adapters::patterns_of(chosen.excluded), chosen.by_layer));
}

/// Without values: files of weights are not looked at.
std::vector<zero::Parameter> parameters_of_config(const config::TrainerConfig& config) {
    config::ModelSettings settings = config.model;
    settings.from_scratch = true;
    const auto family = families::make_family(settings);
    return outline_of([&] {
        auto model = family->make_model();
        if (config.adapter.kind() == config::AdapterName::lora) adapt<Lora>(*model, config.adapter, *family);
        if (config.adapter.kind() == config::AdapterName::lokr) adapt<Lokr>(*model, config.adapter, *family);
        return model;
    });
}

std::vector<zero::Parameter> parameters_of_model(const std::string& word) {
    if (word == "flux") return outline_of([] { return models::Flux{}; });
    if (word == "sdxl") return outline_of([] { return models::SdxlUnet{}; });
    if (word == "sd15") return outline_of([] { return models::Sd15Unet{}; });
    if (word == "small") return outline_of([] { return models::SmallFlux{}; });
    if (!fs::exists(word))
        throw Error{Errc::bad_argument, "there is no model '" + word + "', and no file or folder of that name",
                    "use flux, sdxl, sd15, small, or the config.json of a Flux or a U-Net"};
    const fs::path file = config_of(word);
    const config::Document document = config::load_document(file);
    const config::Node* const type = document.root.find("_class_name");
    if (type != nullptr && type->scalar() == "FluxTransformer2DModel")
        return outline_of([&] { return models::Flux{models::read_flux_config(file)}; });
    return outline_of([&] { return models::Unet{models::load_unet_options(file)}; });
}

std::vector<int> ranks_of(const tools::Arguments& arguments) {
    std::vector<int> ranks;
    const std::string text = arguments.text("--ranks").value_or("1,2,4,8,32");
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        const std::string one = text.substr(at, comma - at);
        const bool is_number =
            !one.empty() && one.size() < 7 && one.find_first_not_of("0123456789") == std::string::npos;
        if (!is_number || std::stoi(one) < 1)
            throw Error{Errc::bad_argument, "--ranks is '" + text + "'", "write numbers with commas between: 1,2,4"};
        ranks.push_back(std::stoi(one));
        at = comma + 1;
    }
    return ranks;
}

void run(const std::vector<std::string>& words) {
    const tools::Arguments arguments{"strata memory", words, options};
    if (arguments.has("--help")) return print_help();
    const auto ranks = ranks_of(arguments);
    const std::string& model = arguments.only_word("MODEL");
    const std::optional<config::TrainerConfig> config = configuration_of(model);
    const auto parameters = config ? parameters_of_config(*config) : parameters_of_model(model);
    std::uint64_t numel = 0;
    std::uint64_t trained = 0;
    for (const zero::Parameter& parameter : parameters) {
        numel += static_cast<std::uint64_t>(parameter.tensor.numel());
        if (parameter.tensor.requires_grad()) trained += static_cast<std::uint64_t>(parameter.tensor.numel());
    }
    const bool is_adapted = config && config->adapter.is_on();
    const auto numbers = config ? config->options.engine : zero::EngineOptions<zero::NoRule>{};
    const int count = numbers.gradient_accumulation_steps;
    const std::string micro_batches =
        count == 1 ? "one micro-batch a step" : std::to_string(count) + " micro-batches a step";
    const std::string of_them = is_adapted ? ", of which " + core::with_commas(trained) + " are trained" : "";
    constexpr std::uint64_t free_host_bytes = std::uint64_t{64} << 30;
    std::printf("%s: %s parameters%s, AdamW in bf16 where nothing else stands, %s, without activations\n\n%s",
                core::printable(model).c_str(), core::with_commas(numel).c_str(), of_them.c_str(),
                micro_batches.c_str(),
                (is_adapted ? tools::adapter_memory_table(parameters, ranks, free_host_bytes, numbers)
                            : tools::memory_table(parameters, ranks, free_host_bytes, numbers))
                    .c_str());
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run({argv + (argc > 0 ? 1 : 0), argv + argc});
        return 0;
    } catch (const Error& error) {
        std::fprintf(stderr, "strata: %s\n", error.what());
        return error.code() == Errc::bad_argument ? 2 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "strata: %s\n", error.what());
        return 1;
    }
}
