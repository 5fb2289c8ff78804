#include "sample_model.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include <strata/config/model_record.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/config/value.hpp>
#include <strata/core/error.hpp>
#include <strata/core/step_name.hpp>

namespace strata::tools {

namespace {

namespace fs = std::filesystem;

constexpr const char* what_it_may_be =
    "name a pipeline's folder (with model_index.json), a run's output directory, or a trainer's configuration";

bool is_there(const fs::path& path) {
    std::error_code none;
    return fs::exists(path, none);
}

/// Without a slash at its end, so that it has a last name.
fs::path plain(const fs::path& path) {
    fs::path normal = path.lexically_normal();
    return normal.has_filename() ? normal : normal.parent_path();
}

bool is_checkpoint(const fs::path& path) {
    return is_there(path / "manifest.json") && core::step_of(plain(path).filename().string()).has_value();
}

/// The weights that a complete run left for other programs: one file, or an index of shards. Empty: none under that name.
fs::path exported_by(const fs::path& run) {
    for (const char* const name : {"model.safetensors", "model.safetensors.index.json"})
        if (is_there(run / name)) return run / name;
    return {};
}

/// The adapter that a complete run left in place of weights. Empty: there is none.
fs::path adapter_of(const fs::path& run) {
    const fs::path file = run / "pytorch_lora_weights.safetensors";
    return is_there(file) ? file : fs::path{};
}

/// Whole or not.
bool has_checkpoints(const fs::path& run) {
    std::error_code none;
    if (is_checkpoint(run)) return true;
    for (const auto& entry : fs::directory_iterator{run / "checkpoints", none})
        if (core::step_of(entry.path().filename().string())) return true;
    return false;
}

std::optional<std::int64_t> step_in(const std::string& text) {
    std::int64_t step = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), step);
    if (failure != std::errc{} || end != text.data() + text.size() || step < 0) return std::nullopt;
    return step;
}

[[noreturn]] void refuse(const std::string& what, const std::string& fix) {
    throw Error{Errc::bad_reference, what, fix};
}

/// What MODEL is, and the run that it has.
struct Found {
    config::ModelSettings settings;
    fs::path run;             ///< its output directory, or one of its checkpoints; empty: there is none
    bool is_trained = false;  ///< MODEL is the run, so that its weights are those of a checkpoint
};

Found configured(const fs::path& file) {
    const config::TrainerConfig config = config::load_trainer_config(file);
    return {config.model, config.output_dir, false};
}

Found in_file(const fs::path& file) {
    if (file.filename() == config::model_record_name)
        return {config::read_model_record(file), file.parent_path(), true};
    if (file.extension() == ".safetensors" || file.string().ends_with(".safetensors.index.json"))
        refuse(file.string() + " holds weights, and does not say which model's",
               "type strata sample MODEL --weights " + file.string() + ", where MODEL is what they were trained from");
    return configured(file);
}

/// A folder of a part of a pipeline has a config.json, too.
void refuse_part(const fs::path& folder) {
    const nlohmann::json json = config::load_json(folder / "config.json");
    if (!json.is_object() || (!json.contains("_class_name") && !json.contains("architectures"))) return;
    refuse(folder.string() + " is a part of a pipeline, and not all that drawing takes",
           "name the folder around it, which has model_index.json");
}

Found in_folder(const fs::path& folder) {
    if (is_there(folder / config::model_record_name))
        return {config::read_model_record(folder / config::model_record_name), folder, true};
    if (is_there(folder / "model_index.json") || is_there(folder / "unet") || is_there(folder / "transformer")) {
        Found pipeline;
        pipeline.settings.path = folder.string();
        return pipeline;
    }
    if (is_checkpoint(folder)) {
        const fs::path run = fs::absolute(plain(folder)).parent_path().parent_path();
        if (is_there(run / config::model_record_name))
            return {config::read_model_record(run / config::model_record_name), folder, true};
    }
    if (is_there(folder / "checkpoints") || is_checkpoint(folder))
        refuse("the run in " + folder.string() + " has not recorded which model it trains",
               "name its configuration as MODEL, and the run by --checkpoint " + folder.string());
    if (is_there(folder / "config.json")) {
        refuse_part(folder);
        return configured(folder / "config.json");
    }
    refuse("there is no model in the folder " + folder.string(), what_it_may_be);
}

Found found_at(const fs::path& path) {
    std::error_code none;
    if (fs::is_directory(path, none)) return in_folder(path);
    if (is_there(path)) return in_file(path);
    const std::string name = path.string();
    const bool is_of_hub = std::count(name.begin(), name.end(), '/') == 1 && !name.starts_with('.');
    refuse("there is no model '" + name + "'",
           is_of_hub ? "download it first, and name its folder: strata reads models from disks only" : what_it_may_be);
}

}  // namespace

SampleModel sample_model(const SampleSettings& settings) {
    const Found found = found_at(settings.model);
    SampleModel model;
    model.settings = found.settings;
    if (!settings.weights.empty()) {
        if (!is_there(settings.weights))
            refuse("there are no weights '" + settings.weights.string() + "'", "check the path behind --weights");
        model.weights = settings.weights;
    } else if (found.is_trained && settings.checkpoint.empty() && !settings.ema && !settings.masters &&
               !has_checkpoints(found.run) && !adapter_of(found.run).empty()) {
        model.adapter = adapter_of(found.run);
    } else if (settings.checkpoint.empty()) {
        if (found.is_trained && !has_checkpoints(found.run)) model.weights = exported_by(found.run);
        if (found.is_trained && model.weights.empty()) model.checkpoint = found.run;
    } else if (model.step = step_in(settings.checkpoint); model.step && !is_there(settings.checkpoint)) {
        if (found.run.empty())
            throw Error{
                Errc::bad_argument,
                "--checkpoint " + settings.checkpoint + " is a step, and " + settings.model.string() + " is no run",
                "name the output directory of a run: --checkpoint OUTPUT"};
        // Of MODEL that is one checkpoint: another one of the same run.
        model.checkpoint = is_checkpoint(found.run) ? plain(fs::absolute(found.run)).parent_path() : found.run;
    } else {
        model.step.reset();
        if (!is_there(settings.checkpoint))
            refuse("there is no run or checkpoint '" + settings.checkpoint + "'",
                   "give a step, a run's output directory, or the folder of one checkpoint behind --checkpoint");
        model.checkpoint = settings.checkpoint;
    }
    if (model.checkpoint.empty() && (settings.ema || settings.masters))
        throw Error{Errc::bad_argument,
                    std::string{settings.ema ? "--ema" : "--masters"} + " is of a checkpoint, and " +
                        settings.model.string() + " is no run",
                    "name the output directory of a run: --checkpoint OUTPUT"};
    // The denoiser gets other weights than those that it was published with, which then need not be there. Of a checkpoint its manifest tells.
    if (!model.weights.empty()) model.settings.from_scratch = true;
    return model;
}

}  // namespace strata::tools
