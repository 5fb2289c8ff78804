#pragma once
// strata/config/impl/intent.ipp - compositions as C++ has them, intents over each other, batches.

#include <algorithm>
#include <utility>

#include <strata/config/intent.hpp>
#include <strata/core/error.hpp>

namespace strata::config {

STRATA_INLINE std::string type_name(TierName tier) {
    return tier == TierName::device ? "Device" : tier == TierName::cpu ? "Cpu" : "Nvme";
}
STRATA_INLINE std::string type_name(const KeptOn& kept) {
    if (kept.percent == 100 || kept.first == kept.second) return type_name(kept.first);
    return "Split<" + type_name(kept.first) + ", " + type_name(kept.second) + ", " + std::to_string(kept.percent) + ">";
}
STRATA_INLINE std::string type_name(RuleName rule) {
    switch (rule) {
        case RuleName::adagrad:
            return "Adagrad";
        case RuleName::adam:
            return "Adam";
        case RuleName::adamw:
            return "AdamW";
        case RuleName::lamb:
            return "Lamb";
        case RuleName::lion:
            return "Lion";
        case RuleName::sgd:
            break;
    }
    return "Sgd";
}
STRATA_INLINE std::string type_name(FormatName format) {
    switch (format) {
        case FormatName::fp32:
            return "Fp32";
        case FormatName::bf16:
            return "Bf16";
        case FormatName::fp16:
            return "Fp16";
        case FormatName::pure_bf16:
            break;
    }
    return "PureBf16";
}

STRATA_INLINE std::string type_name(AdapterName adapter) {
    return adapter == AdapterName::lora ? "Lora" : adapter == AdapterName::lokr ? "Lokr" : "NoAdapter";
}
STRATA_INLINE std::string type_name(FrozenName frozen) {
    return frozen == FrozenName::int8 ? "Int8" : frozen == FrozenName::nf4 ? "Nf4" : "AsComputed";
}

STRATA_INLINE Composition Composition::under(const Composition& above) const {
    Composition both = *this;
    const auto take = [](auto& to, const auto& from) {
        if (from) to = from;
    };
    take(both.stage, above.stage);
    take(both.state, above.state);
    take(both.parameters, above.parameters);
    take(both.rule, above.rule);
    take(both.precision, above.precision);
    take(both.recompute, above.recompute);
    take(both.average, above.average);
    take(both.gradients, above.gradients);
    take(both.moment, above.moment);
    take(both.adapter, above.adapter);
    take(both.frozen, above.frozen);
    return both;
}

STRATA_INLINE Composition Composition::completed() const {
    const Composition defaults{.stage = 0,
                               .state = KeptOn{},
                               .parameters = KeptOn{},
                               .rule = RuleName::adamw,
                               .precision = FormatName::fp32,
                               .recompute = 0,
                               .average = AverageName::none,
                               .gradients = KeptOn{},
                               .moment = MomentName::after_backward,
                               .adapter = AdapterName::none,
                               .frozen = FrozenName::as_computed};
    return defaults.under(*this);
}

STRATA_INLINE std::string policies(const Composition& composition) {
    const Composition all = composition.completed();
    std::string text;
    const auto add = [&](const std::string& policy) { text += (text.empty() ? "" : ", ") + policy; };
    if (*all.adapter != AdapterName::none) add("Adapter<" + type_name(*all.adapter) + ">");
    if (*all.stage != 0) add("ZeroStage<" + std::to_string(*all.stage) + ">");
    const bool state = *all.state != KeptOn{};
    const bool parameters = *all.parameters != KeptOn{};
    if (state && parameters && *all.state == *all.parameters) {
        add("OffloadTarget<" + type_name(*all.state) + ", OptimizerState, Parameters>");
    } else {
        if (state) add("OffloadTarget<" + type_name(*all.state) + ">");
        if (parameters) add("OffloadTarget<" + type_name(*all.parameters) + ", Parameters>");
    }
    if (*all.gradients != KeptOn{}) add("OffloadTarget<" + type_name(*all.gradients) + ", Gradients>");
    if (*all.rule != RuleName::adamw) add("Optimizer<" + type_name(*all.rule) + ">");
    if (*all.precision != FormatName::fp32) add("Precision<" + type_name(*all.precision) + ">");
    if (*all.frozen != FrozenName::as_computed) add("FrozenWeights<" + type_name(*all.frozen) + ">");
    if (*all.recompute == 1) add("Recompute<Blocks>");
    if (*all.recompute > 1) add("Recompute<EveryOther<" + std::to_string(*all.recompute) + ">>");
    if (*all.moment == MomentName::in_backward) add("Update<InBackward>");
    if (*all.average != AverageName::none) add(*all.average == AverageName::cpu ? "Ema<Cpu>" : "Ema<Device>");
    return text;
}

STRATA_INLINE void Intent::set(std::string path, OptionScalar value, std::string place) {
    const auto found =
        std::find_if(options.begin(), options.end(), [&](const OptionValue& one) { return one.path == path; });
    if (found == options.end())
        options.push_back({std::move(path), std::move(value), std::move(place)});
    else
        *found = {std::move(path), std::move(value), std::move(place)};
}

STRATA_INLINE const OptionValue* Intent::find(std::string_view path) const noexcept {
    const auto found =
        std::find_if(options.begin(), options.end(), [&](const OptionValue& one) { return one.path == path; });
    return found == options.end() ? nullptr : &*found;
}

STRATA_INLINE std::optional<double> Intent::number(std::string_view path) const {
    const OptionValue* const found = find(path);
    if (found == nullptr) return std::nullopt;
    if (const auto* whole = std::get_if<std::int64_t>(&found->value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&found->value)) return *real;
    return std::nullopt;
}

STRATA_INLINE bool Intent::same_as(const Intent& other) const {
    const auto same = [](const auto& a, const auto& b) {
        return std::is_permutation(a.begin(), a.end(), b.begin(), b.end());
    };
    return composition == other.composition && same(options, other.options) && rate == other.rate &&
           rate_follows_lr == other.rate_follows_lr && batch == other.batch && launch == other.launch &&
           same(automatic, other.automatic) && missing_files == other.missing_files;
}

STRATA_INLINE Intent overlay(const Intent& base, const Intent& above) {
    Intent both = base;
    both.composition = base.composition.under(above.composition);
    for (const OptionValue& value : above.options) both.set(value.path, value.value, value.place);
    const bool has_rate = above.rate.index() != 0;
    const bool has_shape = std::any_of(above.options.begin(), above.options.end(),
                                       [](const OptionValue& one) { return one.path == "schedule.shape"; });
    if (has_rate || has_shape) {
        both.rate = above.rate;
        both.rate_follows_lr = above.rate_follows_lr;
    }
    const auto take = [](auto& to, const auto& from) {
        if (from) to = from;
    };
    const auto take_text = [](std::string& to, const std::string& from) {
        if (!from.empty()) to = from;
    };
    take(both.batch.global, above.batch.global);
    take(both.batch.micro, above.batch.micro);
    take(both.launch.ranks, above.launch.ranks);
    take(both.launch.machines, above.launch.machines);
    take(both.launch.machine_rank, above.launch.machine_rank);
    take_text(both.launch.main_address, above.launch.main_address);
    take(both.launch.main_port, above.launch.main_port);
    take_text(both.launch.hostfile, above.launch.hostfile);
    take_text(both.launch.include, above.launch.include);
    take_text(both.launch.exclude, above.launch.exclude);
    take_text(both.launch.gpus, above.launch.gpus);
    both.automatic.insert(both.automatic.end(), above.automatic.begin(), above.automatic.end());
    both.missing_files.insert(both.missing_files.end(), above.missing_files.begin(), above.missing_files.end());
    return both;
}

STRATA_INLINE Batch batch_on(const Intent& intent, std::int64_t ranks, std::int64_t fallback) {
    const std::optional<std::int64_t> global = intent.batch.global;
    const std::optional<std::int64_t> micro = intent.batch.micro;
    std::optional<std::int64_t> steps;
    if (const auto given = intent.number("engine.gradient_accumulation_steps"))
        steps = static_cast<std::int64_t>(*given);
    const auto text = [](std::int64_t number) { return std::to_string(number); };

    Batch batch;
    batch.accumulation = steps.value_or(1);
    batch.micro = micro.value_or(fallback);
    if (global && micro && !steps) batch.accumulation = *global / *micro / ranks;
    if (global && !micro) batch.micro = *global / batch.accumulation / ranks;
    batch.global = batch.micro * batch.accumulation * ranks;
    if (!global || batch.global == *global) return batch;

    // DeepSpeed's words, which people look for.
    const std::string sum =
        text(*global) + " != " + text(batch.micro) + " * " + text(batch.accumulation) + " * " + text(ranks);
    const std::int64_t share = batch.micro * ranks;
    std::string fix = "(1) set train_batch_size to " + text(std::max<std::int64_t>(1, batch.micro) *
                                                            std::max<std::int64_t>(1, batch.accumulation) * ranks);
    const std::int64_t one = batch.accumulation * ranks;
    fix += one > 0 && *global % one == 0
               ? ", (2) set train_micro_batch_size_per_gpu to " + text(*global / one)
               : ", (2) set train_micro_batch_size_per_gpu to what divides train_batch_size over " + text(ranks) +
                     " ranks";
    fix += share > 0 && *global % share == 0 ? ", or (3) set gradient_accumulation_steps to " + text(*global / share)
                                             : ", or (3) leave train_batch_size out and give the other two";
    throw Error{Errc::bad_value,
                "check batch related parameters: train_batch_size is not equal to micro_batch_per_gpu * "
                "gradient_acc_step * world_size, " +
                    sum,
                fix};
}

}  // namespace strata::config
