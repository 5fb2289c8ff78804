#pragma once
// strata/train/config_for.hpp - ConfigFor<Trainer>: config.json of a program whose update rule is known, with the rule's own keys.

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <strata/config/schema.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/train/options_from_config.hpp>

namespace strata::train {

/// What strata::run<ConfigFor<MyTrainer>>() reads: a TrainerConfig whose keys optimizer_... are those that the trainer's
/// update rule describes, and, where it keeps an average of one's own, whose keys ema_... are those that this describes.
/// --help lists them, and a typing error in one is found before ranks start. Usual ones that the rule does not have are
/// passed over. With config::TrainerConfig itself those of the rule are looked at by options_from().
///
///   Composition  Trainer<...>, or its Setup<...>
template <class Composition>
struct ConfigFor : config::TrainerConfig {
    using Setup = typename detail::SetupOf<Composition>::type;
    using Rule = typename Setup::optimizer::rule;

    [[nodiscard]] static const config::Schema<ConfigFor>& schema() {
        static const config::Schema<ConfigFor> keys = [] {
            config::Schema<ConfigFor> schema;
            const auto& of_average = detail::average_keys<typename Setup::averaging>();
            constexpr bool own_average = detail::has_own_average_v<Setup>;
            schema.of_base(config::trainer_schema(), [&](const config::KeyInfo& key) {
                const auto is_this = [&](const config::KeyInfo& own) { return own.key == key.key; };
                const bool is_another_average =
                    own_average && (detail::is_of_ema(key) ||
                                    std::any_of(of_average.keys().begin(), of_average.keys().end(), is_this));
                return !key.key.starts_with("optimizer_") && !is_another_average;
            });
            if constexpr (own_average)
                schema.read_by(of_average, [](ConfigFor& config, const config::Value& value) {
                    config.average.put(config::detail::given(value));
                });
            const auto& of_rule = detail::rule_keys<Rule>();
            schema.read_by(of_rule, [](ConfigFor& config, const config::Value& value) {
                config.optimizer.put(config::detail::given(value));
            });
            std::vector<config::IdleKey> passed_over;
            for (const std::string_view name : config::usual_rule_keys()) {
                const auto is_this = [name](const config::KeyInfo& info) {
                    return info.key == name || info.alias == name;
                };
                if (std::none_of(of_rule.keys().begin(), of_rule.keys().end(), is_this))
                    passed_over.push_back({name, "the program's update rule does not have it"});
            }
            schema.idle(std::move(passed_over));
            return schema;
        }();
        return keys;
    }

    /// Throws what load_trainer_config() throws.
    [[nodiscard]] static ConfigFor load(const std::filesystem::path& file, const config::Overrides& overrides) {
        ConfigFor config;
        config::read_trainer_config(config::load_trainer_document(file), overrides,
                                    [&](const nlohmann::json& object, const config::Source& source,
                                        config::Problems& problems) -> config::TrainerConfig& {
                                        schema().read(object, source, "", config, overrides, problems);
                                        return config;
                                    });
        config.reading.findings.throw_if_refused();
        return config;
    }
};

}  // namespace strata::train
