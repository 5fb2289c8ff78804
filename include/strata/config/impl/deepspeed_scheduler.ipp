#pragma once
// strata/config/impl/deepspeed_scheduler.ipp - DeepSpeed's scheduler as a schedule of strata's.

#include <concepts>
#include <cstdint>
#include <string>

#include <strata/config/deepspeed.hpp>
#include <strata/config/peer_names.hpp>
#include <strata/config/reading.hpp>

namespace strata::config::detail {

/// Gives members of a rate what the file has for them; the rest of the file's numbers are of other schedules.
class RateReader {
public:
    RateReader(Reading& keys, Intent& intent) : keys_{keys}, intent_{intent} {}

    template <class Number>
    void take(const char* key, Number& member, const char* name) {
        const std::string path = "scheduler.params." + std::string{key};
        if (keys_.at(path) == nullptr) return;
        if constexpr (std::same_as<Number, bool>)
            member = keys_.is_on(path);
        else if constexpr (std::integral<Number>)
            member = *keys_.whole(path);
        else
            member = *keys_.number(path);
        keys_.acts(path, std::string{"schedule's "} + name);
    }
    template <class Rate>
    void take_warmup(Rate& rate) {
        const std::string steps = "scheduler.params.warmup_num_steps";
        if (keys_.whole(steps).value_or(1) < 1) {
            rate.warmup_steps = 1;
            keys_.warn_mapped(steps, "schedule's warmup_steps",
                              "as 1, the shortest warm-up there is, which rises in two steps; DeepSpeed refuses 0",
                              "write 1");
        } else {
            take("warmup_num_steps", rate.warmup_steps, "warmup_steps");
        }
        const std::string curve = keys_.text("scheduler.params.warmup_type");
        if (!curve.empty()) rate.curve = curve == "linear" ? optim::WarmupCurve::linear : optim::WarmupCurve::log;
        keys_.acts("scheduler.params.warmup_type", "schedule's curve");
        if constexpr (requires { rate.max_lr; }) {
            take("warmup_min_lr", rate.min_lr, "min_lr");
            take("warmup_max_lr", rate.max_lr, "max_lr");
            const std::string top = "scheduler.params.warmup_max_lr";  // left out: WarmupDecayLR has 1e-3, as DeepSpeed
            intent_.rate_follows_lr = keys_.is_auto(top) || (std::same_as<Rate, optim::WarmupLr> && !keys_.at(top));
        }
        if constexpr (requires { rate.total_steps; }) {
            take("total_num_steps", rate.total_steps, "total_steps");
            if (rate.total_steps > 0 && rate.total_steps <= rate.warmup_steps &&
                keys_.at("scheduler.params.total_num_steps"))
                keys_.refuse("scheduler.params.total_num_steps", Errc::bad_value,
                             "is " + std::to_string(rate.total_steps) + ", and the warm-up alone has " +
                                 std::to_string(rate.warmup_steps) + " steps",
                             "give more steps, or a shorter warmup_num_steps");
        }
    }

private:
    Reading& keys_;
    Intent& intent_;
};

inline void read_deepspeed_scheduler(Reading& keys, Intent& intent) {
    const std::string params = "scheduler.params.";
    const std::string type = keys.text("scheduler.type");
    if (keys.is_auto("scheduler.type")) return;
    if (type.empty()) return keys.none_within("scheduler.params", "no scheduler.type says of which schedule");
    const PeerScheduleName named = peer_schedule(type);
    RateReader take{keys, intent};
    std::string to = "schedule";
    switch (named.schedule) {
        case PeerSchedule::unknown:
            keys.refuse("scheduler.type", Errc::unsupported_key,
                        "is " + keys.at("scheduler.type")->shown() + ", which " + named.words, named.fix);
            return keys.none_within("scheduler.params", "the schedule is not known");
        case PeerSchedule::warmup: {
            optim::WarmupLr rate;
            take.take_warmup(rate);
            intent.rate = rate;
            to = "WarmupLr";
            break;
        }
        case PeerSchedule::warmup_decay: {
            optim::WarmupDecayLr rate;
            take.take_warmup(rate);
            intent.rate = rate;
            to = "WarmupDecayLr";
            break;
        }
        case PeerSchedule::warmup_cosine: {
            optim::WarmupCosineLr rate;
            take.take_warmup(rate);
            take.take("warmup_min_ratio", rate.warmup_min_ratio, "warmup_min_ratio");
            take.take("cos_min_ratio", rate.cos_min_ratio, "cos_min_ratio");
            intent.rate_follows_lr = true;
            intent.rate = rate;
            to = "WarmupCosineLr";
            break;
        }
        case PeerSchedule::one_cycle: {
            optim::OneCycle rate;
            take.take("cycle_min_lr", rate.min_lr, "min_lr");
            take.take("cycle_max_lr", rate.max_lr, "max_lr");
            take.take("decay_lr_rate", rate.decay_lr_rate, "decay_lr_rate");
            take.take("cycle_first_step_size", rate.first_steps, "first_steps");
            take.take("cycle_second_step_size", rate.second_steps, "second_steps");
            take.take("cycle_first_stair_count", rate.first_stairs, "first_stairs");
            take.take("cycle_second_stair_count", rate.second_stairs, "second_stairs");
            take.take("decay_step_size", rate.decay_steps, "decay_steps");
            if (keys.flag(params + "cycle_momentum").value_or(true))
                keys.warn_none(params + "cycle_momentum", "the momentum stays that of the rule", "write false");
            intent.rate = rate;
            to = "OneCycle";
            break;
        }
        case PeerSchedule::range_test: {
            optim::LrRangeTest rate;
            take.take("lr_range_test_min_lr", rate.min_lr, "min_lr");
            take.take("lr_range_test_step_size", rate.step_size, "step_size");
            take.take("lr_range_test_step_rate", rate.step_rate, "step_rate");
            take.take("lr_range_test_staircase", rate.staircase, "staircase");
            intent.rate = rate;
            to = "LrRangeTest";
            break;
        }
        case PeerSchedule::cosine_annealing:
        case PeerSchedule::shape: {
            const Node& node = *keys.at("scheduler.type");
            const std::string shape = named.shape.empty() ? "cosine" : named.shape;
            intent.set("schedule.shape", shape, node.place());
            const auto give = [&](const std::string& key, const std::string& option) {
                const Node* const value = keys.at(params + key);
                if (value == nullptr) return;
                const bool is_steps = option.ends_with("steps");
                intent.set(
                    option,
                    is_steps ? OptionScalar{*keys.whole(params + key)} : OptionScalar{*keys.number(params + key)},
                    value->place());
                keys.acts(params + key, option);
            };
            give("T_max", "schedule.total_steps");
            give("eta_min", "schedule.end_lr");
            give("total_num_steps", "schedule.total_steps");
            give("warmup_num_steps", "schedule.warmup_steps");
            to = "schedule.shape " + shape;
            break;
        }
    }
    keys.acts("scheduler.type", to);
    for (const KeyRow& row : deepspeed_table().rows())
        if (row.path.starts_with(params) && !keys.is_auto(row.path))
            keys.none(row.path, "a number of other schedules than " + type);
}

}  // namespace strata::config::detail
