#pragma once
// strata/config/impl/deepspeed_precision.ipp - number formats and the loss scale of a DeepSpeed file.

#include <cmath>
#include <optional>
#include <string>

#include <strata/config/impl/key.ipp>
#include <strata/config/reading.hpp>

namespace strata::config::detail {

/// The blocks fp16, bf16, amp and torch_autocast.
class PrecisionRules {
public:
    PrecisionRules(Reading& keys, Intent& intent) : keys_{keys}, intent_{intent} {}

    void read() {
        const bool fp16 = keys_.is_on("fp16.enabled");
        const bool bf16 = keys_.is_on("bf16.enabled");
        std::optional<FormatName>& format = intent_.composition.precision;
        if (fp16 && bf16) {
            keys_.refuse("bf16.enabled", Errc::bad_value, "is true, and so is fp16.enabled",
                         "enable one of them: bf16 where the hardware has it, since it needs no loss scale");
        } else if (fp16) {
            format = FormatName::fp16;
            keys_.acts("fp16.enabled", "Precision<Fp16>");
        } else if (bf16) {
            format = FormatName::bf16;
            keys_.acts("bf16.enabled", "Precision<Bf16>");
        } else if (keys_.flag("fp16.enabled") && keys_.flag("bf16.enabled")) {
            format = FormatName::fp32;
        }
        for (const char* block : {"fp16", "bf16"})
            if (keys_.flag(std::string{block} + ".enabled"))
                keys_.none(std::string{block} + ".enabled", "off, which leaves the other formats");
        pure_bf16(bf16);
        apex_and_autocast(format);
        if (fp16 || keys_.is_auto("fp16.enabled"))
            loss_scale();
        else
            keys_.none_within("fp16", "fp16 is not enabled");
        if (!bf16 && !keys_.is_auto("bf16.enabled")) keys_.none_within("bf16", "bf16 is not enabled");
        if (const auto skips = keys_.flag("bf16.check_grad_overflow"); skips && bf16) {
            intent_.set("engine.on_non_finite", std::string{*skips ? "skip" : "stop"},
                        keys_.at("bf16.check_grad_overflow")->place());
            keys_.mapped("bf16.check_grad_overflow", "engine.on_non_finite",
                         *skips ? "skip: such a step leaves everything as it was"
                                : "stop: strata goes on with no weights that are not finite");
        }
    }

private:
    void pure_bf16(bool bf16) {
        const bool weights = keys_.is_on("bf16.bf16_master_weights_and_grads");
        const bool states = keys_.is_on("bf16.bf16_optimizer_states");
        if (states && !weights) {
            keys_.refuse("bf16.bf16_optimizer_states", Errc::bad_value,
                         "is true without bf16_master_weights_and_grads, which it needs", "set both, or none");
        } else if (weights && bf16) {
            intent_.composition.precision = FormatName::pure_bf16;
            const std::string words = "weights and state in bf16, rounded by chance so that small updates add up";
            keys_.mapped("bf16.bf16_master_weights_and_grads", "Precision<PureBf16>", words);
            keys_.mapped("bf16.bf16_optimizer_states", "Precision<PureBf16>", words);
        } else {
            for (const char* key : {"bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states"})
                keys_.none(key, "off: master weights and state are fp32");
        }
    }
    void apex_and_autocast(std::optional<FormatName>& format) {
        if (keys_.is_on("amp.enabled")) {
            if (keys_.whole("zero_optimization.stage").value_or(0) > 0)
                keys_.refuse("amp.enabled", Errc::bad_value, "is true, and apex cannot shard, in DeepSpeed either",
                             "enable fp16 or bf16 instead");
            else if (!format)
                format = keys_.text("amp.opt_level") == "O0" ? FormatName::fp32 : FormatName::fp16;
            keys_.warn_mapped("amp.enabled", "Precision<" + type_name(format.value_or(FormatName::fp16)) + ">",
                              "strata's own mixed precision in place of apex", "write \"fp16\": {\"enabled\": true}");
        } else {
            keys_.none("amp.enabled", "off");
        }
        if (keys_.is_on("torch_autocast.enabled")) {
            const std::string dtype = keys_.text("torch_autocast.dtype");
            if (!format)
                format = dtype.find("float16") != std::string::npos && dtype.find("bfloat16") == std::string::npos
                             ? FormatName::fp16
                             : FormatName::bf16;
            keys_.warn_mapped("torch_autocast.enabled", "Precision<" + type_name(*format) + ">",
                              "parameters and activations are kept in that format, with master weights in fp32",
                              "enable fp16 or bf16 instead");
        } else {
            keys_.none("torch_autocast.enabled", "off");
        }
    }
    void loss_scale() {
        const double fixed = keys_.number("fp16.loss_scale").value_or(0);
        if (keys_.at("fp16.loss_scale") != nullptr) {
            const std::string place = keys_.at("fp16.loss_scale")->place();
            intent_.set("engine.loss_scale.dynamic", fixed == 0, place);
            if (fixed != 0) intent_.set("engine.loss_scale.initial", fixed, place);
            keys_.acts("fp16.loss_scale", fixed == 0 ? "engine.loss_scale.dynamic" : "engine.loss_scale.initial",
                       fixed == 0 ? "" : "the scale stays there");
        }
        if (const auto power = keys_.whole("fp16.initial_scale_power")) {
            if (fixed != 0) {
                keys_.none("fp16.initial_scale_power", "loss_scale says a scale that stays");
            } else {
                intent_.set("engine.loss_scale.initial", std::exp2(static_cast<double>(*power)),
                            keys_.at("fp16.initial_scale_power")->place());
                keys_.acts("fp16.initial_scale_power", "engine.loss_scale.initial");
            }
        }
        const double initial = intent_.number("engine.loss_scale.initial").value_or(65536.0);
        if (const auto least = keys_.number("fp16.min_loss_scale"); least && fixed == 0 && *least > initial)
            keys_.refuse("fp16.min_loss_scale", Errc::bad_value,
                         "is " + shown(*least) + ", above the scale that the run begins with, " + shown(initial),
                         "raise initial_scale_power, or lower min_loss_scale");
    }

    Reading& keys_;
    Intent& intent_;
};

}  // namespace strata::config::detail
