#pragma once
// strata/train/options_from_config.hpp - the numbers of a configuration file as a trainer's options.

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <strata/config/composition_of.hpp>
#include <strata/config/schema.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/error.hpp>
#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>
#include <strata/options/adapter_options.hpp>
#include <strata/options/ema_options.hpp>
#include <strata/options/run_length.hpp>
#include <strata/policy/adapter.hpp>
#include <strata/policy/optimizer.hpp>
#include <strata/policy/precision.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/options.hpp>
#include <strata/train/validate.hpp>

namespace strata::train {

namespace detail {

/// The Setup of a trainer; a Setup's is itself.
template <class Composition>
struct SetupOf {
    using type = Composition;
};
template <class Composition>
requires requires { typename Composition::setup; }
struct SetupOf<Composition> {
    using type = typename Composition::setup;
};

/// Optimizer steps of the whole run, and what a message calls them. Throws Errc::bad_value when epochs make none, or more
/// than can be counted.
inline optim::RunLength run_length(const config::TrainerConfig& config, std::int64_t micro_batches_per_epoch) {
    const std::int64_t given = config.max_train_steps;
    if (given != 0 || config.num_train_epochs == 0) return {given, "'max_train_steps' = " + std::to_string(given)};
    OptionCheck check{OptionCheck::Names{{"micro_batches_per_epoch", "the data's number of micro-batches an epoch"}}};
    check.number("'num_train_epochs'", config.num_train_epochs, {1});
    check.number("micro_batches_per_epoch", micro_batches_per_epoch, {1});
    const std::int64_t accumulation = config.options.engine.gradient_accumulation_steps;
    check.number("'gradient_accumulation_steps'", accumulation, ranges::accumulation_steps);
    check.finish();
    std::int64_t micro_batches = 0;
    if (__builtin_mul_overflow(config.num_train_epochs, micro_batches_per_epoch, &micro_batches))
        throw Error{Errc::bad_value,
                    "'num_train_epochs' is " + std::to_string(config.num_train_epochs) + ", and with " +
                        std::to_string(micro_batches_per_epoch) +
                        " micro-batches an epoch that is more than can be counted",
                    "use fewer epochs, or give 'max_train_steps'"};
    const std::int64_t steps = micro_batches / accumulation + (micro_batches % accumulation != 0 ? 1 : 0);
    return {steps, "the " + std::to_string(steps) + " steps of 'num_train_epochs'"};
}

/// The keys of a rule's own options. A rule that describes none has none.
template <class Rule>
[[nodiscard]] const config::Schema<typename Rule::Options>& rule_keys() {
    static const config::Schema<typename Rule::Options> keys = [] {
        config::Schema<typename Rule::Options> schema;
        if constexpr (DescribedOptions<typename Rule::Options>) schema.described("optimizer_");
        return schema;
    }();
    return keys;
}

/// Whether a composition's average has options of its own, and not those of an exponential one.
template <class Setup>
inline constexpr bool has_own_average_v =
    !std::same_as<zero::average_options_t<typename Setup::averaging>, optim::EmaOptions>;

/// Whether a key of the usual configuration is about an exponential average.
[[nodiscard]] inline bool is_of_ema(const config::KeyInfo& key) {
    return key.path.starts_with("engine.ema.") || key.key == "ema_warmup_steps";
}

/// The keys of an average of the program's own, by what its options describe.
template <class Averaging>
[[nodiscard]] const config::Schema<zero::average_options_t<Averaging>>& average_keys() {
    using Options = zero::average_options_t<Averaging>;
    static const config::Schema<Options> keys = [] {
        config::Schema<Options> schema;
        if constexpr (DescribedOptions<Options>) schema.described("ema_");
        return schema;
    }();
    return keys;
}

/// What the file calls the options that come from it.
template <class Setup>
[[nodiscard]] OptionCheck::Names keys_of_options(const config::TrainerConfig& config) {
    using Rule = typename Setup::optimizer::rule;
    const auto quoted = [](const std::string& key) { return "'" + key + "'"; };
    OptionCheck::Names names{{"max_steps", "'max_train_steps'"}};
    for (const config::KeyInfo& key : config::trainer_schema().keys())
        if (!key.path.empty() && !(has_own_average_v<Setup> && is_of_ema(key))) names[key.path] = quoted(key.key);
    if constexpr (has_own_average_v<Setup>)
        for (const config::KeyInfo& key : average_keys<typename Setup::averaging>().keys())
            names["engine.ema." + key.path] = quoted(key.key);
    for (const config::KeyInfo& key : rule_keys<Rule>().keys()) names["engine.update." + key.path] = quoted(key.key);
    for (const auto& [path, key] :
         {std::pair{"rank", "lora_rank"}, std::pair{"alpha", "lora_alpha"}, std::pair{"dropout", "lora_dropout"}})
        names["adapter.kind." + std::string{path}] = quoted(key);
    names["adapter.init"] = "'init_lora'";
    names["adapter.targets"] = "'peft_lora_target_modules'";
    names["adapter.excluded"] = "'lora_exclude_modules'";
    if (config.grad_clip_method == config::GradClipMethod::value) {
        names["engine.max_grad_value"] = "'max_grad_norm'";
        names.erase("engine.max_grad_norm");
    }
    return names;
}

/// Throws Errc::bad_value when the file asks for another update rule, number format, adapter or form of frozen weights than
/// the program composes.
/// Stages, tiers and recomputation change no bit of the result, and are the program's alone.
template <class Setup>
void check_composition(const config::TrainerConfig& config) {
    const auto refuse = [](const std::string& policy, const std::string& asked, const std::string& composed) {
        throw Error{Errc::bad_value,
                    "the configuration asks for " + policy + "<" + asked + ">, and this program's trainer has " +
                        policy + "<" + composed + ">",
                    "compose its Trainer with " + policy + "<" + asked + "> and build it again, or remove the key"};
    };
    const config::Composition& asked = config.reading.intent.composition;
    if constexpr (constexpr auto own = config::detail::rule_of<typename Setup::optimizer::rule>; own)
        if (asked.rule && *asked.rule != *own)
            refuse("Optimizer", config::type_name(*asked.rule), config::type_name(*own));
    if constexpr (requires { typename Setup::precision::format; })  // a policy of the program's may have no such name
        if constexpr (constexpr auto own = config::detail::number_format_of<typename Setup::precision::format>; own)
            if (asked.precision && *asked.precision != *own)
                refuse("Precision", config::type_name(*asked.precision), config::type_name(*own));
    constexpr config::Composition composed = config::composition_of<Setup>();
    const auto refuse_base = [](const std::string& asks, const std::string& has) {
        throw Error{Errc::bad_value, "the configuration asks for " + asks + ", and this program's trainer has " + has,
                    "compose its Trainer with what the configuration asks for and build it again, or remove the key"};
    };
    using config::AdapterName, config::FrozenName, config::type_name;
    if (asked.adapter && composed.adapter && *asked.adapter != *composed.adapter)
        refuse_base(
            *asked.adapter == AdapterName::none ? "the training of every weight ('model_type' full)"
                                                : "Adapter<" + type_name(*asked.adapter) + "> ('model_type' lora)",
            *composed.adapter == AdapterName::none ? "no adapter" : "Adapter<" + type_name(*composed.adapter) + ">");
    if (asked.frozen && composed.frozen && *asked.frozen != *composed.frozen)
        refuse_base("weights kept as " + type_name(*asked.frozen) + " under the adapter ('base_model_precision')",
                    *composed.frozen == FrozenName::as_computed ? "none that are quantised"
                                                                : "FrozenWeights<" + type_name(*composed.frozen) + ">");
}

/// Throws Errc::bad_value when the file expects another moving average than the program composes.
template <class Averaging>
void check_averaging(const config::TrainerConfig& config) {
    const auto refuse = [](const std::string& what, const std::string& fix) {
        throw Error{Errc::bad_value, what, fix + ", and build it again; or remove the key"};
    };
    if constexpr (!Averaging::enabled) {
        if (config.use_ema.value_or(false))
            refuse("'use_ema' is true, and this program's trainer keeps no moving average of the weights",
                   "add Ema<> to the policies of its Trainer");
    } else {
        if (!config.use_ema.value_or(true))
            refuse("'use_ema' is false, and this program's trainer keeps a moving average of the weights",
                   "remove Ema<> from the policies of its Trainer");
        if constexpr (requires { typename Averaging::tier; }) {
            constexpr bool on_cpu = std::same_as<typename Averaging::tier, Cpu>;
            if (config.ema_device && (*config.ema_device == config::EmaDevice::cpu) != on_cpu)
                refuse(std::string{"'ema_device' is '"} + (on_cpu ? "accelerator" : "cpu") +
                           "', and this program's trainer keeps the moving average with " +
                           (on_cpu ? "Ema<Cpu>" : "Ema<Device>"),
                       std::string{"compose its Trainer with "} + (on_cpu ? "Ema<Device>" : "Ema<Cpu>"));
        }
        if constexpr (!std::same_as<zero::average_options_t<Averaging>, optim::EmaOptions>) {
            const config::TrainerConfig silent;
            if (config.options.engine.ema != silent.options.engine.ema ||
                config.ema_warmup_steps != silent.ema_warmup_steps)
                throw Error{
                    Errc::bad_value,
                    "a key ema_... is about an exponential average, and this program's trainer keeps another one",
                    "remove it, or read the file as train::ConfigFor<MyTrainer>, which has the keys of that average"};
        }
    }
}

template <class Options>
[[nodiscard]] Options lora_of(const config::LycorisConfig& lycoris) {
    return {
        .rank = lycoris.rank, .alpha = lycoris.alpha, .dropout = lycoris.dropout, .use_dora = lycoris.weight_decompose};
}
template <class Options>
[[nodiscard]] Options lokr_of(const config::LycorisConfig& lycoris) {
    return {.rank = lycoris.rank,
            .alpha = lycoris.alpha,
            .factor = lycoris.factor,
            .decompose_both = lycoris.decompose_both,
            .full_matrix = lycoris.full_matrix};
}

/// A layer's rank is that of the first pattern of ranks that fits it, and its alpha that of the first pattern of alphas: both have to fit
/// where both are another. Where no alpha is given, nothing is scaled, whatever a layer's rank.
template <class Options>
[[nodiscard]] std::vector<LayerOptions<Options>> by_pattern(const config::AdapterSettings& settings,
                                                            const Options& rest) {
    std::vector<LayerOptions<Options>> found;
    Options own = rest;
    for (const auto& [layers, rank] : settings.rank_pattern) {
        own.rank = rank;
        for (const auto& [also, alpha] : settings.alpha_pattern) {
            own.alpha = alpha;
            found.push_back({layers, own, also});
        }
        own.alpha = rest.alpha;
        found.push_back({layers, own});
    }
    own = rest;
    for (const auto& [layers, alpha] : settings.alpha_pattern) {
        own.alpha = alpha;
        found.push_back({layers, own});
    }
    return found;
}

/// The options of an adapter by the keys of a configuration, where that trains one. Those of a kind of the program's own stay as they are.
///
///   family  of the model, for the layers that words stand for; nothing: of no family, so that layers are named
template <class Setup>
void take_adapter(const config::AdapterSettings& settings, const std::optional<config::ModelFamily>& family,
                  adapter_options_t<typename Setup::adaptation>& options) {
    if constexpr (Setup::adaptation::enabled) {
        using Kind = typename Setup::adaptation::kind;
        if (!settings.is_on()) return;
        const bool is_lycoris = settings.library == config::AdapterLibrary::lycoris;
        if constexpr (std::same_as<Kind, Lora>) {
            if (is_lycoris) {
                options.kind = lora_of<typename Kind::Options>(settings.lycoris);
            } else {
                options.kind.rank = settings.rank;
                options.kind.alpha = settings.alpha.value_or(0);
                options.kind.dropout = settings.dropout;
                options.kind.use_dora = settings.use_dora;
                using Start = decltype(options.kind.start);
                options.kind.start = settings.init == config::LoraInit::gaussian ? Start::gaussian : Start::usual;
                options.by_layer = by_pattern(settings, options.kind);
            }
        } else if constexpr (std::same_as<Kind, Lokr>) {
            options.kind = lokr_of<typename Kind::Options>(settings.lycoris);
        }
        options.init = settings.init_file;
        options.names = settings.format == config::LoraFormat::comfyui ? AdapterNames::comfyui
                        : settings.format == config::LoraFormat::kohya ? AdapterNames::kohya
                                                                       : AdapterNames::diffusers;
        const auto joined = [](const std::vector<std::string>& patterns) {
            std::string all;
            for (const std::string& one : patterns) all += (all.empty() ? "" : ",") + one;
            return all;
        };
        if (!family && settings.targets.empty()) return;
        const config::ModelFamily known = family.value_or(config::ModelFamily::small);
        const config::AdapterTargets layers = config::adapter_targets(settings, known);
        options.targets = joined(layers.targets);
        options.excluded = joined(layers.excluded);
        if (!is_lycoris) return;
        for (const config::LycorisLayers& own : config::lycoris_exceptions(settings.lycoris, known)) {
            if constexpr (std::same_as<Kind, Lora>)
                options.by_layer.push_back({joined(own.layers), lora_of<typename Kind::Options>(own.arguments)});
            else if constexpr (std::same_as<Kind, Lokr>)
                options.by_layer.push_back({joined(own.layers), lokr_of<typename Kind::Options>(own.arguments)});
        }
    }
}

/// Throws Errc::bad_reference when the file names others that are not there: what they say is missing in the options.
inline void check_files(const config::TrainerConfig& config) {
    std::string names;
    for (const std::string& file : config.reading.intent.missing_files)
        names += (names.empty() ? "'" : ", '") + file + "'";
    if (!names.empty())
        throw Error{Errc::bad_reference, "the configuration names what is not there: " + names,
                    "correct the path, or run in the folder that it is relative to"};
}

}  // namespace detail

/// Options for a trainer. What the file leaves out keeps the options' own defaults, and the update rule's.
///
///   Composition              Trainer<...>, or its Setup<...>
///   micro_batches_per_epoch  of the data source; turns num_train_epochs into steps, rounded up
///   family                   of the model, where model_index.json says it and not the file
/// A usual number that the rule does not have (Lion's epsilon, Sgd's betas, AdamW's momentum) is not used. Local. Throws
/// Errc::unknown_key for another key optimizer_... than the rule describes; bad_value, naming keys, for what validate()
/// refuses, for epochs that make more steps than can be counted, and when `optimizer`, `mixed_precision`, `model_type`,
/// `base_model_precision`, `use_ema` or `ema_device` say something else than the composition; bad_reference for files that it names and that are not there
/// (`deepspeed_config`, `accelerate_config`, `user_prompt_library`). An average of the program's own has its numbers from
/// a file that was read as ConfigFor.
template <class Composition, class Setup = typename detail::SetupOf<Composition>::type>
[[nodiscard]] train_options_t<Setup> options_from(const config::TrainerConfig& config,
                                                  std::int64_t micro_batches_per_epoch,
                                                  std::optional<config::ModelFamily> family = {}) {
    using Rule = typename Setup::optimizer::rule;
    detail::check_files(config);
    detail::check_composition<Setup>(config);
    detail::check_averaging<typename Setup::averaging>(config);
    const optim::RunLength run = detail::run_length(config, micro_batches_per_epoch);
    train_options_t<Setup> options;
    const auto average = options.engine.ema;
    take_options(config.options, options);
    if constexpr (detail::has_own_average_v<Setup>)
        options.engine.ema = detail::average_keys<typename Setup::averaging>().read(config.average, average);
    options.max_steps = run.steps;
    detail::take_adapter<Setup>(config.adapter, family ? family : config.model.kind(), options.adapter);
    const auto& rule_keys = detail::rule_keys<Rule>();
    config::detail::check_given(config.optimizer, rule_keys.keys(), config::usual_rule_keys());
    options.engine.update = rule_keys.read(config.optimizer, options.engine.update);
    if (config.grad_clip_method == config::GradClipMethod::value)
        std::swap(options.engine.max_grad_norm, options.engine.max_grad_value);
    if constexpr (!detail::has_own_average_v<Setup>) {
        optim::EmaOptions& ema = options.engine.ema;
        if (config.ema_warmup_steps !=
            0) {  // as SimpleTuner has it: the weights, and from that step on the whole decay
            ema.min_decay = ema.decay;
            ema.update_after_step = config.ema_warmup_steps - 2;
        }
    }
    return validate(std::move(options), detail::keys_of_options<Setup>(config), run);
}

}  // namespace strata::train
