#pragma once
// strata/config/impl/deepspeed.ipp - what DeepSpeed's keys mean to strata, and the rules between them.

#include <algorithm>
#include <cstdint>
#include <string>

#include <strata/config/deepspeed.hpp>
#include <strata/config/impl/deepspeed_optimizer.ipp>
#include <strata/config/impl/deepspeed_precision.ipp>
#include <strata/config/impl/deepspeed_scheduler.ipp>
#include <strata/config/impl/deepspeed_table_more.ipp>
#include <strata/config/impl/deepspeed_table_training.ipp>
#include <strata/config/impl/deepspeed_table_zero.ipp>
#include <strata/config/impl/deepspeed_zero.ipp>
#include <strata/config/reading.hpp>

namespace strata::config {

namespace detail {

/// How many samples make a step, and on how many ranks.
inline void read_deepspeed_batch(Reading& keys, Intent& intent, const DeepSpeedContext& context) {
    intent.batch.global = keys.whole("train_batch_size");
    intent.batch.micro = keys.whole("train_micro_batch_size_per_gpu");
    const auto steps = keys.whole("gradient_accumulation_steps");
    if (steps)
        intent.set("engine.gradient_accumulation_steps", *steps, keys.at("gradient_accumulation_steps")->place());
    keys.acts("train_micro_batch_size_per_gpu", "samples of a rank in a micro-batch");
    if (!intent.batch.global) return;
    const std::int64_t share = intent.batch.micro.value_or(1) * steps.value_or(1);
    const std::int64_t ranks = context.ranks.value_or(std::max<std::int64_t>(1, *intent.batch.global / share));
    const bool divides = *intent.batch.global % share == 0;
    const bool is_open = !context.ranks && !(intent.batch.micro && (steps || !divides));
    if (!context.ranks && !intent.batch.micro && !divides)
        keys.warn_mapped("train_batch_size", "samples of a step",
                         "no multiple of gradient_accumulation_steps, and no number of ranks makes so many",
                         "give a multiple of " + std::to_string(share));
    try {
        if (!is_open) (void)batch_on(intent, ranks);
        keys.acts(
            "train_batch_size", "samples of a step",
            !is_open && !context.ranks ? "on " + std::to_string(ranks) + " ranks, which the three numbers fix" : "");
    } catch (const Error& problem) {
        keys.refuse("train_batch_size", problem.code(),
                    "is " + std::to_string(*intent.batch.global) + ": " + problem.problem(), problem.fix());
    }
}

inline void read_deepspeed_keys(Reading& keys, Intent& intent, const DeepSpeedContext& context) {
    PrecisionRules{keys, intent}.read();
    ZeroRules{keys, intent}.read();
    read_deepspeed_optimizer(keys, intent);
    read_deepspeed_scheduler(keys, intent);
    read_deepspeed_batch(keys, intent, context);
    if (keys.text("gradient_allreduce_op") == "sum")
        keys.refuse("gradient_allreduce_op", Errc::unsupported_key,
                    "is \"sum\", and strata takes the mean of the ranks' gradients",
                    "remove it, and multiply the learning rate by the number of ranks where the rule is SGD");
}

}  // namespace detail

STRATA_INLINE const FormatTable& deepspeed_table() {
    static const FormatTable table = [] {
        FormatTable all{"DeepSpeed", "docs/config/deepspeed.md"};
        detail::add_batch_rows(all);
        detail::add_precision_rows(all);
        detail::add_zero_rows(all);
        detail::add_disk_rows(all);
        detail::add_optimizer_rows(all);
        detail::add_scheduler_rows(all);
        detail::add_activation_rows(all);
        detail::add_monitor_rows(all);
        detail::add_method_rows(all);
        return all;
    }();
    return table;
}

STRATA_INLINE Intent read_deepspeed(const Node& root, Findings& findings, const DeepSpeedContext& context) {
    const FormatTable& table = deepspeed_table();
    const bool knows_any = std::any_of(root.members().begin(), root.members().end(),
                                       [&](const Node::Member& member) { return table.find(member.key) != nullptr; });
    if (const Node* const inner = root.find("deepspeed");
        !knows_any && inner != nullptr && inner->is(NodeKind::object)) {
        findings.warn_no_effect(root, "only its object `deepspeed` is DeepSpeed's, and only that is read",
                                "give that object as a file of its own");
        return read_deepspeed(*inner, findings, context);
    }
    Intent intent;
    if (root.is(NodeKind::object) &&
        (root.find("distributed_type") != nullptr || root.find("compute_environment") != nullptr)) {
        findings.refuse(root, Errc::bad_value, "is an Accelerate configuration, and no DeepSpeed configuration",
                        "read it as one; its deepspeed_config is what is DeepSpeed's");
        return intent;
    }
    if (root.find("model_family") != nullptr || root.find("data_backend_config") != nullptr ||
        std::any_of(root.members().begin(), root.members().end(),
                    [](const Node::Member& member) { return member.key.starts_with("--"); })) {
        findings.refuse(root, Errc::bad_value, "is a trainer's configuration, and no DeepSpeed configuration",
                        "name the DeepSpeed file; docs/config/deepspeed.md has its keys");
        return intent;
    }
    Reading keys{root, table, findings};
    detail::read_deepspeed_keys(keys, intent, context);
    keys.finish(intent);
    return intent;
}

STRATA_INLINE Intent load_deepspeed(const std::filesystem::path& file, Findings& findings,
                                    const DeepSpeedContext& context) {
    const Document document = load_document(file);
    findings.take(document);
    return read_deepspeed(document.root, findings, context);
}

}  // namespace strata::config
