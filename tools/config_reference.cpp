// The tables of the pages of docs/config/, made of those that files are read by.

#include <algorithm>
#include <string>
#include <string_view>

#include <strata/config/accelerate.hpp>
#include <strata/config/deepspeed.hpp>
#include <strata/config/format_table.hpp>
#include <strata/config/simpletuner.hpp>

#include "config_output.hpp"

namespace strata::tools {

namespace {

/// "false|0" as "`false`, `0`".
std::string listed(std::string_view words) {
    std::string all;
    while (!words.empty()) {
        const std::size_t end = std::min(words.find('|'), words.size());
        all += (all.empty() ? "`" : ", `") + std::string{words.substr(0, end)} + "`";
        words.remove_prefix(std::min(end + 1, words.size()));
    }
    return all;
}

std::string effect_of(const config::ForeignKey& key) {
    const std::string fine = listed(key.fine);
    switch (key.effect) {
        case config::ForeignEffect::mapped:
            return "**read**: ";
        case config::ForeignEffect::instead:
            return "**no effect**: ";
        case config::ForeignEffect::refused:
            break;
    }
    return fine.empty() ? "**refused**: " : "**refused** but for " + fine + ": ";
}

std::string simpletuner_tables() {
    std::string text = "| key | what strata does |\n| --- | --- |\n";
    for (const config::ForeignKey& key : config::simpletuner_keys())
        text += "| `" + std::string{key.key} + "` | " + effect_of(key) + std::string{key.instead} + " |\n";
    text += "\n## Optimizers\n\n| name | rule |\n| --- | --- |\n";
    for (const std::string_view name : config::simpletuner_optimizer_names()) {
        const config::SimpleTunerOptimizer meaning = *config::simpletuner_optimizer(name);
        const std::string rule =
            "`Optimizer<" + config::type_name(meaning.rule ? *meaning.rule : meaning.nearest) + ">`";
        text += "| `" + std::string{name} + "` | " + (meaning.rule ? rule : "refused; the nearest is " + rule) +
                (meaning.words.empty() ? "" : ": ") + std::string{meaning.words} + " |\n";
    }
    text += "\n## Names in config.env\n\n| name | key |\n| --- | --- |\n";
    for (const config::EnvName& name : config::simpletuner_env_names())
        text += "| `" + std::string{name.name} + "` | " +
                (name.key.empty() ? "none: no setting" : "`" + std::string{name.key} + "`") + " |\n";
    return text;
}

}  // namespace

std::string reference_page(config::ConfigFormat format) {
    if (format == config::ConfigFormat::deepspeed) return config::markdown(config::deepspeed_table());
    if (format == config::ConfigFormat::accelerate) return config::markdown(config::accelerate_table());
    return simpletuner_tables();
}

}  // namespace strata::tools
