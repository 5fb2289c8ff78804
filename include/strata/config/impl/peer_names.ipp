#pragma once
// strata/config/impl/peer_names.ipp - the names, one table each.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <strata/config/impl/key.ipp>
#include <strata/config/key.hpp>
#include <strata/config/peer_names.hpp>
#include <strata/core/schedule_shape.hpp>

namespace strata::config {

namespace detail {

/// Names that differ in case, dashes and underscores are one: "one-bit adam", "OneBitAdam".
inline std::string plain_name(std::string_view name) {
    std::string plain;
    for (const char c : name)
        if (c != '_' && c != '-' && c != ' ') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return plain;
}

struct KnownRule {
    std::string_view plain;
    std::string_view name;  ///< as its own program writes it
    std::optional<RuleName> rule;
    std::string_view words;
    std::string_view nearest = {};
};

inline const std::vector<KnownRule>& known_rules() {
    using R = RuleName;
    constexpr std::string_view own = "strata's own kernel, on the CPU or a GPU, wherever the state is";
    constexpr std::string_view eight =
        "strata keeps state in fp32, or in bf16 with Precision<PureBf16>, and not in 8 bits";
    static const std::vector<KnownRule> all{
        {"adamw", "AdamW", R::adamw, ""},
        {"adam", "Adam", R::adam, ""},
        {"adagrad", "Adagrad", R::adagrad, ""},
        {"lamb", "Lamb", R::lamb, ""},
        {"lion", "Lion", R::lion, ""},
        {"sgd", "SGD", R::sgd, ""},
        {"cpuadam", "cpuadam", R::adamw, own},
        {"fusedadam", "fusedadam", R::adamw, own},
        {"deepspeedcpuadam", "DeepSpeedCPUAdam", R::adamw, own},
        {"cpuadamw", "cpuadamw", R::adamw, own},
        {"fusedadamw", "fusedadamw", R::adamw, own},
        {"adamwtorch", "adamw_torch", R::adamw, ""},
        {"adamwhf", "adamw_hf", R::adamw, ""},
        {"adamwtorchfused", "adamw_torch_fused", R::adamw, own},
        {"adamwapexfused", "adamw_apex_fused", R::adamw, own},
        {"adamwbf16", "adamw_bf16", R::adamw, "state in bf16 is Precision<PureBf16>"},
        {"adamw8bit", "adamw_8bit", R::adamw, eight},
        {"adam8bit", "adam_8bit", R::adam, eight},
        {"lion8bit", "lion_8bit", R::lion, eight},
        {"pagedadamw", "paged_adamw", R::adamw, "state leaves the device by OffloadTarget<Cpu>"},
        {"pagedadamw8bit", "paged_adamw_8bit", R::adamw, eight},
        {"pagedadamw32bit", "paged_adamw_32bit", R::adamw, "state leaves the device by OffloadTarget<Cpu>"},
        {"cpuadagrad", "cpuadagrad", R::adagrad, own},
        {"deepspeedcpuadagrad", "DeepSpeedCPUAdagrad", R::adagrad, own},
        {"cpulion", "cpulion", R::lion, own},
        {"fusedlion", "fusedlion", R::lion, own},
        {"deepspeedcpulion", "DeepSpeedCPULion", R::lion, own},
        {"fusedlamb", "fusedlamb", R::lamb, own},

        {"onebitadam",
         "OneBitAdam",
         {},
         "Adam with exchanges of one bit, its second mean frozen after a while",
         "Adam"},
        {"onebitlamb", "OneBitLamb", {}, "Lamb with exchanges of one bit", "Lamb"},
        {"zerooneadam", "ZeroOneAdam", {}, "Adam with exchanges of one bit, and steps without any", "Adam"},
        {"muadam", "MuAdam", {}, "Adam with learning rates by the width of each layer (muP)", "Adam"},
        {"muadamw", "MuAdamW", {}, "AdamW with learning rates by the width of each layer (muP)", "AdamW"},
        {"musgd", "MuSGD", {}, "SGD with learning rates by the width of each layer (muP)", "SGD"},
        {"muon", "Muon", {}, "momentum made orthogonal, matrix by matrix", "Lion"},
        {"adafactor", "Adafactor", {}, "Adam with second means of rows and columns", "AdamW"},
        {"prodigy", "Prodigy", {}, "Adam that finds its learning rate", "AdamW"},
        {"adadelta", "Adadelta", {}, "steps in the units of earlier ones", "Adagrad"},
        {"adamax", "Adamax", {}, "Adam with the largest gradient in place of the second mean", "Adam"},
        {"nadam", "NAdam", {}, "Adam that looks a step ahead", "Adam"},
        {"radam", "RAdam", {}, "Adam that leaves its second mean out at first", "Adam"},
        {"rmsprop", "RMSprop", {}, "gradients over the root of their second mean", "Adam"},
        {"rprop", "Rprop", {}, "steps by the signs of gradients", "Lion"},
        {"asgd", "ASGD", {}, "SGD, and the mean of its weights", "SGD"},
        {"lbfgs", "LBFGS", {}, "a quasi-Newton rule", "AdamW"},
        {"sparseadam", "SparseAdam", {}, "Adam for sparse gradients", "Adam"},
        {"adamwschedulefree",
         "adamw_schedulefree",
         {},
         "AdamW that averages its weights in place of a schedule",
         "AdamW"},
        {"schedulefreeadamw",
         "AdamWScheduleFree",
         {},
         "AdamW that averages its weights in place of a schedule",
         "AdamW"},
        {"sophia", "Sophia", {}, "steps by an estimate of the curvature", "AdamW"},
        {"shampoo", "Shampoo", {}, "gradients preconditioned matrix by matrix", "AdamW"},
        {"soap", "SOAP", {}, "Adam in the basis of Shampoo", "AdamW"},
        {"came", "CAME", {}, "Adafactor with a confidence", "AdamW"},
        {"galoreadamw", "GaLoreAdamW", {}, "AdamW on projected gradients", "AdamW"},
        {"fusedemaadam", "FusedEmaAdam", {}, "Adam, and a moving average of the weights", "Adam"},
    };
    return all;
}

constexpr std::string_view rules_there_are = "Adagrad, Adam, AdamW, Lamb, Lion and SGD";

}  // namespace detail

STRATA_INLINE PeerRule peer_rule(std::string_view name) {
    const std::size_t dot = name.rfind('.');  // torch.optim.Adam
    const std::string plain = detail::plain_name(dot == std::string_view::npos ? name : name.substr(dot + 1));
    std::vector<std::string_view> names;
    for (const detail::KnownRule& known : detail::known_rules()) {
        names.push_back(known.plain);
        if (known.plain != plain) continue;
        if (known.rule) return {known.rule, std::string{known.words}, ""};
        return {{},
                "is a rule that strata does not have: " + std::string{known.words},
                "the nearest is " + std::string{known.nearest} + "; strata has " +
                    std::string{detail::rules_there_are} +
                    (known.plain == "fusedemaadam" ? ", and Ema<> keeps an average" : "")};
    }
    const std::string_view near = nearest_name(plain, names);
    const auto found = std::find_if(detail::known_rules().begin(), detail::known_rules().end(),
                                    [&](const detail::KnownRule& known) { return known.plain == near; });
    if (near.empty()) return {{}, "is no rule that strata knows", "strata has " + std::string{detail::rules_there_are}};
    return {{},
            "is no rule that strata knows",
            "did you mean '" + std::string{found->name} + "'? strata has " + std::string{detail::rules_there_are}};
}

STRATA_INLINE PeerScheduleName peer_schedule(std::string_view name) {
    using S = PeerSchedule;
    struct Known {
        std::string_view plain;
        std::string_view name;
        S schedule;
        std::string_view shape;
    };
    static const std::vector<Known> all{
        {"warmuplr", "WarmupLR", S::warmup, ""},
        {"warmupdecaylr", "WarmupDecayLR", S::warmup_decay, ""},
        {"warmupcosinelr", "WarmupCosineLR", S::warmup_cosine, ""},
        {"onecycle", "OneCycle", S::one_cycle, ""},
        {"onecyclelr", "OneCycle", S::one_cycle, ""},
        {"lrrangetest", "LRRangeTest", S::range_test, ""},
        {"cosineannealinglr", "CosineAnnealingLR", S::cosine_annealing, ""},
        {"constant", "constant", S::shape, "constant"},
        {"constantwithwarmup", "constant_with_warmup", S::shape, "constant_with_warmup"},
        {"linear", "linear", S::shape, "linear"},
        {"cosine", "cosine", S::shape, "cosine"},
        {"cosinewithrestarts", "cosine_with_restarts", S::shape, "cosine_with_restarts"},
        {"polynomial", "polynomial", S::shape, "polynomial"},
        {"sine", "sine", S::shape, "sine"},
    };
    struct Foreign {
        std::string_view plain;
        std::string_view nearest;
    };
    static const std::vector<Foreign> foreign{
        {"linearlr", "WarmupLR"},
        {"steplr", "WarmupDecayLR"},
        {"multisteplr", "WarmupDecayLR"},
        {"exponentiallr", "WarmupDecayLR"},
        {"lambdalr", "WarmupDecayLR"},
        {"polynomiallr", "WarmupDecayLR"},
        {"constantlr", "WarmupLR"},
        {"cycliclr", "OneCycle"},
        {"cosineannealingwarmrestarts", "WarmupCosineLR"},
        {"reducelronplateau", "WarmupDecayLR"},
    };
    const std::size_t dot = name.rfind('.');
    const std::string plain = detail::plain_name(dot == std::string_view::npos ? name : name.substr(dot + 1));
    const std::string there_are =
        "strata has WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle, LRRangeTest and CosineAnnealingLR";
    std::vector<std::string_view> names;
    for (const Known& known : all) {
        if (known.plain == plain) return {known.schedule, std::string{known.shape}, "", ""};
        names.push_back(known.plain);
    }
    for (const Foreign& known : foreign)
        if (known.plain == plain)
            return {S::unknown, "", "is a schedule that strata does not have",
                    "the nearest is " + std::string{known.nearest} + "; " + there_are};
    const std::string_view near = nearest_name(plain, names);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Known& known) { return known.plain == near; });
    return {S::unknown, "", "is no schedule that strata knows",
            (near.empty() ? "" : "did you mean '" + std::string{found->name} + "'? ") + there_are};
}

}  // namespace strata::config
