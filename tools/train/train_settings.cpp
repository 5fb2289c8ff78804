#include "train_settings.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <strata/config/any_config.hpp>
#include <strata/config/document.hpp>
#include <strata/config/intent.hpp>
#include <strata/config/model_settings.hpp>
#include <strata/config/simpletuner.hpp>
#include <strata/core/error.hpp>

namespace strata::tools {

namespace {

namespace fs = std::filesystem;

std::string_view plain(std::string_view key) { return key.starts_with("--") ? key.substr(2) : key; }

/// The key as the file writes it, so that a flag takes its place: with dashes, or by its other name.
std::string spelled(const config::Node& file, const std::string& key) {
    const auto& keys = config::trainer_schema().keys();
    const auto info = std::find_if(keys.begin(), keys.end(),
                                   [&](const config::KeyInfo& one) { return one.key == key || one.alias == key; });
    for (const config::Node::Member& member : file.members()) {
        const std::string_view name = plain(member.key);
        const bool is_other_name = info != keys.end() && (name == info->key || (name == info->alias && !name.empty()));
        if (name == key || is_other_name) return member.key;
    }
    return key;
}

/// The same without a key.
config::Node without(const config::Node& file, const std::string& key) {
    config::DocumentBuilder rest{file.source()};
    rest.begin_object({});
    for (const config::Node::Member& member : file.members()) {
        if (member.key == key) continue;
        rest.key(member.key, member.mark);
        rest.copy(member.value, member.value.mark());
    }
    rest.end();
    return rest.finish().root;
}

/// What a flag says, as a file would say it at that key.
config::Node node_of(const config::Override& flag, const std::string& key, config::KeyKind kind) {
    const std::string source = "--" + flag.name;
    config::DocumentBuilder one{source};
    one.begin_object({});
    one.key(key, {});
    const std::string& first = flag.values.front();
    const bool is_json = kind != config::KeyKind::text && (first.starts_with('{') || first.starts_with('['));
    const bool is_list = kind == config::KeyKind::list && !is_json;
    if (is_json) one.copy(config::parse_json(first, source, config::JsonDialect::strict).root, {});
    if (is_list) one.begin_list({});
    for (const std::string& value : flag.values)
        if (!is_json) one.scalar(config::NodeKind::text, value, {});
    if (is_list) one.end();
    one.end();
    return one.finish().root;
}

/// What a command line says, over a document.
config::Node with_flags(const config::Node& file, const config::Overrides& flags) {
    const auto& keys = config::trainer_schema().keys();
    config::Node rest = file;
    config::Node said = config::document_of({}, "command line").root;
    for (const config::Override& flag : flags) {
        const auto info = std::find_if(keys.begin(), keys.end(), [&](const config::KeyInfo& one) {
            return one.key == flag.name || one.alias == flag.name;
        });
        const config::KeyKind kind = info == keys.end() ? config::KeyKind::word : info->kind;
        const std::string key = spelled(file, flag.name);
        if (rest.find(key) != nullptr) rest = without(rest, key);
        const bool is_left_out = flag.values.front() == "null" && kind != config::KeyKind::text;
        if (!is_left_out) said = config::overlay(said, node_of(flag, key, kind));
    }
    return config::overlay(rest, said);
}

/// A document with the keys of a trainer's configuration, whatever the file is.
config::Document document_of(const fs::path& file) {
    const auto naming = [&](const char* key) {
        return config::document_of({{key, file.string(), file.string()}}, file.string());
    };
    switch (config::look_at_config(file).format) {
        case config::ConfigFormat::deepspeed:
            return naming("deepspeed_config");
        case config::ConfigFormat::accelerate:
            return naming("accelerate_config");
        case config::ConfigFormat::datasets:
            return naming("data_backend_config");
        case config::ConfigFormat::trainer:
        case config::ConfigFormat::launch:  // which no reader of keys takes
            break;
    }
    return config::load_trainer_document(file);
}

void read_datasets(TrainSettings& settings, const fs::path& by) {
    const bool is_named = std::any_of(settings.findings.all().begin(), settings.findings.all().end(),
                                      [](const auto& one) { return plain(one.key) == "data_backend_config"; });
    if (const fs::path found = config::found_from(settings.data_backend_config, by); !found.empty())
        settings.data_backend_config = found;
    if (std::error_code none; !is_named && !fs::exists(settings.data_backend_config, none)) {
        config::Finding finding;
        finding.effect = config::Effect::refused;
        finding.code = Errc::unreadable_config;
        finding.words = "no data sets are named, and there is no " + settings.data_backend_config.string() + " here";
        finding.fix = "give the dataset list as well: --data_backend_config FILE";
        return settings.findings.add(std::move(finding));
    }
    const config::AnyConfig list =
        config::look_at_config(settings.data_backend_config, settings.image_defaults(), config::ConfigFormat::datasets);
    for (const config::Finding& one : list.findings.all()) settings.findings.add(one);
    if (list.datasets) settings.datasets = *list.datasets;
}

/// What a family is called: to people, and as the model of a trainer's type.
struct FamilyNames {
    std::string_view title, type;
};
FamilyNames names_of(std::optional<config::ModelFamily> family) {
    using enum config::ModelFamily;
    if (family == small) return {"SmallFlux", "SmallFlux"};
    if (family == flux) return {"Flux.1", "Flux"};
    if (family == sdxl) return {"SDXL", "SdxlUnet"};
    if (family == sd15) return {"Stable Diffusion 1.5", "Sd15Unet"};
    return {"the model that model_index.json names", "AnyModel"};
}

/// Says what is trained, and refuses what strata does not have.
void name_model(TrainSettings& settings) {
    const config::ModelSettings& asked = settings.model;
    const std::optional<config::ModelFamily> family = asked.kind();
    const auto [title, type] = names_of(family);
    settings.model_type = type;
    settings.model_words = title;
    const bool has_files = !asked.path.empty() || !asked.transformer.empty() || !asked.unet.empty();
    const std::string from = asked.path.empty() ? "the files of its parts" : asked.path;
    settings.model_words += !has_files           ? ", from random weights"
                            : asked.from_scratch ? ", from random weights, in the sizes of " + from
                                                 : ", from " + from;

    config::Findings told;
    for (config::Finding one : settings.findings.all()) {
        const std::string_view key = plain(one.key);
        const bool is_family = key == "model_family";
        const bool is_file = key == "pretrained_model_name_or_path" || key == "model_flavour";
        if (is_family && !family && !asked.family.empty() && one.effect != config::Effect::refused) {
            one.effect = config::Effect::refused;
            one.words = "is " + one.value + ", which strata does not train";
            one.fix = "name one of those that it trains: " + config::model_family_names();
        } else if ((is_family || is_file) && one.effect == config::Effect::mapped) {
            one.effect = config::Effect::acts;
            one.words.clear();
        }
        told.add(std::move(one));
    }
    if (!has_files && family && family != config::ModelFamily::small) {
        config::Finding finding;
        finding.effect = config::Effect::refused;
        finding.words = "nothing says where the files of " + std::string{title} + " are";
        finding.fix =
            "give 'pretrained_model_name_or_path': a folder as the model was published, with model_index.json";
        told.add(std::move(finding));
    }
    settings.findings = std::move(told);
}

}  // namespace

const config::Schema<TrainSettings>& TrainSettings::schema() {
    static const config::Schema<TrainSettings> schema = [] {
        config::Schema<TrainSettings> keys;
        keys.of_base(config::trainer_schema(), [](const config::KeyInfo&) { return true; });
        // load() looks at them all: it knows every key of SimpleTuner's, and the nearest to one that is nobody's.
        keys.family({"", "keys that SimpleTuner documents, and those of update rules"}, &TrainSettings::optimizer);
        return keys;
    }();
    return schema;
}

TrainSettings TrainSettings::load(const fs::path& file, const config::Overrides& overrides) {
    config::Document document = document_of(file);
    if (!document.root.is(config::NodeKind::object))
        throw Error{Errc::bad_value, file.string() + " is not an object of keys and values",
                    "write {\"key\": value, ...}"};
    document.root = with_flags(document.root, overrides);
    TrainSettings settings;
    static_cast<config::TrainerConfig&>(settings) = config::look_at_trainer_config(document);
    settings.findings =
        std::exchange(settings.reading.findings, {});  // told in one table, and not line by line as well
    read_datasets(settings, file);
    name_model(settings);
    settings.findings.throw_if_refused();
    return settings;
}

std::string batch_line(const TrainSettings& settings, int ranks) {
    const std::int64_t micro = settings.train_batch_size;
    const std::int64_t accumulation = settings.options.engine.gradient_accumulation_steps;
    const config::BatchIntent& asked = settings.reading.intent.batch;
    if (asked.global && *asked.global != micro * accumulation * ranks)
        (void)config::batch_on(settings.reading.intent, ranks, micro);  // says it as people know it
    const auto counted = [](std::int64_t number, const char* what) {
        return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
    };
    return std::to_string(micro * accumulation * ranks) + " samples a step: " + counted(ranks, "rank") + " x " +
           counted(micro, "sample") + " x " +
           (accumulation == 1 ? "1 micro-batch" : std::to_string(accumulation) + " micro-batches");
}

}  // namespace strata::tools
