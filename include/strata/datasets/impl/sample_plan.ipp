#pragma once
// strata/datasets/impl/sample_plan.ipp - stages of equal epochs, and seeded orders inside them.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/random.hpp>
#include <strata/datasets/impl/epoch_phases.ipp>
#include <strata/datasets/permutation.hpp>
#include <strata/datasets/sample_plan.hpp>

namespace strata::datasets {

namespace detail {

/// What a seeded number is for, so that no two purposes share numbers.
enum Purpose : std::uint64_t { order_of_pass = 1, order_of_round = 2, order_of_epoch = 3, visit = 4, batch = 5 };

/// More than any position or epoch that is reached, and far from overflow.
inline constexpr std::int64_t endless = std::int64_t{1} << 50;

}  // namespace detail

STRATA_INLINE SamplePlan::SamplePlan(std::vector<PlanDataset> datasets, std::uint64_t seed, std::int64_t global_batch)
    : seed_{seed}, global_batch_{global_batch} {
    for (PlanDataset& plan : datasets) {
        if (plan.batch == 0) plan.batch = global_batch_;
        has_weights_ |= plan.weight > 0;
        std::vector<std::int64_t> begins{0};
        for (const PlanBucket& bucket : plan.buckets)
            begins.push_back(begins.back() + (bucket.count * bucket.visits + plan.batch - 1) / plan.batch);
        datasets_.push_back({std::move(plan), std::move(begins)});
    }
    make_stages();
}

STRATA_INLINE bool SamplePlan::is_in_epochs(std::size_t dataset, std::int64_t epoch) const {
    const PlanDataset& plan = datasets_[dataset].plan;
    return epoch + 1 >= plan.start_epoch && (plan.end_epoch == 0 || epoch + 1 <= plan.end_epoch) &&
           datasets_[dataset].batches() > 0;
}

STRATA_INLINE bool SamplePlan::is_in_steps(std::size_t dataset, std::int64_t position) const {
    const PlanDataset& plan = datasets_[dataset].plan;
    const std::int64_t step = position + 1;
    return step >= plan.start_step && (plan.end_step == 0 || step <= plan.end_step);
}

STRATA_INLINE bool SamplePlan::is_on(std::size_t dataset, std::int64_t epoch, std::int64_t position) const {
    return is_in_epochs(dataset, epoch) && is_in_steps(dataset, position);
}

STRATA_INLINE std::int64_t SamplePlan::shown(std::size_t dataset, std::int64_t epoch) const {
    const Dataset& set = datasets_[dataset];
    const auto epochs = static_cast<double>(epoch + 1 - set.plan.start_epoch);
    const double batches = std::ceil(epochs * static_cast<double>(set.batches()) * set.plan.probability);
    return static_cast<std::int64_t>(std::min(batches, static_cast<double>(detail::endless)));
}

STRATA_INLINE std::int64_t SamplePlan::shown(const Stage& stage, const Share& share, std::int64_t epochs) const {
    if (share.per_epoch < 0) return shown(share.dataset, stage.first_epoch + epochs);
    const bool is_endless = share.per_epoch > 0 && epochs > detail::endless / share.per_epoch;
    return is_endless ? detail::endless : share.before + epochs * share.per_epoch;
}

STRATA_INLINE std::int64_t SamplePlan::shown_by(const Stage& stage, std::int64_t epochs) const {
    if (stage.is_cut) return epochs > 0 ? static_cast<std::int64_t>(stage.places.size()) : 0;
    std::int64_t sum = 0;
    for (const Share& share : stage.shares) sum += shown(stage, share, epochs) - shown(stage, share, 0);
    return sum;
}

/// The most epochs of a stage that hold no more than so many batches.
STRATA_INLINE std::int64_t SamplePlan::epochs_within(const Stage& stage, std::int64_t batches) const {
    std::int64_t low = 0;
    std::int64_t high = 1;
    while (high <= stage.epochs && shown_by(stage, high) <= batches) {
        low = high;
        high *= 2;
    }
    high = std::min(high, stage.epochs + 1);
    while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (shown_by(stage, middle) <= batches ? low : high) = middle;
    }
    return low;
}

/// The phases of an epoch of a stage; of a stage that has its own, with what probabilities add in this epoch.
STRATA_INLINE std::vector<EpochPhase> SamplePlan::phases_of(const Stage& stage, std::int64_t epochs) const {
    std::vector<EpochShare> all;
    EpochPhase whole;
    for (const Share& share : stage.shares) {
        const std::int64_t batches = shown(stage, share, epochs + 1) - shown(stage, share, epochs);
        const double weight = datasets_[share.dataset].plan.weight;
        if (batches > 0) whole.steps += batches;
        whole.counts.push_back(batches);
        all.push_back({batches, weight > 0 ? weight : static_cast<double>(batches), 0});
    }
    if (stage.phases.empty()) return has_weights_ ? epoch_phases(all) : std::vector<EpochPhase>{std::move(whole)};
    std::vector<EpochPhase> phases = stage.phases;
    for (const EpochPhase& phase : stage.phases) {
        for (std::size_t i = 0; i < whole.counts.size(); ++i) whole.counts[i] -= phase.counts[i];
        whole.steps -= phase.steps;
    }
    if (whole.steps > 0) phases.push_back(std::move(whole));
    return phases;
}

STRATA_INLINE SamplePlan::Turn SamplePlan::turn_at(const Stage& stage, std::int64_t epoch, std::int64_t place) const {
    const std::vector<EpochPhase> phases = phases_of(stage, epoch - stage.first_epoch);
    std::vector<std::int64_t> before;
    for (const Share& share : stage.shares) before.push_back(shown(stage, share, epoch - stage.first_epoch));
    std::size_t p = 0;
    for (; place >= phases[p].steps; ++p) {
        place -= phases[p].steps;
        for (std::size_t i = 0; i < before.size(); ++i) before[i] += phases[p].counts[i];
    }
    std::uint64_t key = core::combine({seed_, detail::order_of_epoch, static_cast<std::uint64_t>(epoch)});
    if (p > 0) key = core::combine({key, p});
    std::int64_t left = Permutation{phases[p].steps, key}.at(place);
    std::size_t i = 0;
    for (; left >= phases[p].counts[i]; ++i) left -= phases[p].counts[i];
    return {stage.shares[i].dataset, before[i] + left};
}

/// Gives a stage its data sets, and their phases where the weight of one of them falls.
STRATA_INLINE void SamplePlan::add_shares(Stage& stage, const std::vector<std::size_t>& datasets) const {
    std::vector<EpochShare> all;
    bool falls = false;
    for (const std::size_t dataset : datasets) {
        const Dataset& set = datasets_[dataset];
        std::int64_t before = 0;
        for (const Stage& earlier : stages_)
            for (const Share& share : earlier.shares)
                if (share.dataset == dataset) before += std::max<std::int64_t>(0, share.per_epoch) * earlier.epochs;
        const double batches = static_cast<double>(set.batches()) * set.plan.probability;
        EpochShare share{set.batches(), set.plan.weight > 0 ? set.plan.weight : batches, set.plan.last_step_of_epoch};
        if (set.plan.probability < 1)  // what every epoch has at the least; of one that falls, all it can have
            share.batches = std::max<std::int64_t>(share.last_step > 0 ? 1 : 0,
                                                   static_cast<std::int64_t>(std::floor(batches - 1e-6)));
        falls |= share.last_step > 0;
        all.push_back(share);
        stage.shares.push_back({dataset, before, -1});
    }
    if (!falls) return;
    stage.phases = epoch_phases(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].last_step == 0) continue;
        stage.shares[i].per_epoch = 0;
        for (const EpochPhase& phase : stage.phases) stage.shares[i].per_epoch += phase.counts[i];
    }
}

STRATA_INLINE void SamplePlan::make_stages() {
    std::int64_t epoch = 0;
    std::int64_t position = 0;
    while (true) {
        Stage stage{epoch, position, detail::endless, {}, {}, false, {}};
        std::vector<std::size_t> taking_part;
        std::int64_t next_epoch = detail::endless;     // at which data sets begin or end by their epochs
        std::int64_t next_position = detail::endless;  // and by their steps
        std::int64_t next_begin = detail::endless;     // the next epoch of a data set that is in its steps
        for (std::size_t d = 0; d < datasets_.size(); ++d) {
            const PlanDataset& plan = datasets_[d].plan;
            if (is_on(d, epoch, position)) taking_part.push_back(d);
            for (const std::int64_t begin : {plan.start_epoch - 1, plan.end_epoch})
                if (begin > epoch) next_epoch = std::min(next_epoch, begin);
            for (const std::int64_t begin : {plan.start_step - 1, plan.end_step})
                if (begin > position) next_position = std::min(next_position, begin);
            if (plan.start_epoch - 1 > epoch && is_in_steps(d, position) && datasets_[d].batches() > 0)
                next_begin = std::min(next_begin, plan.start_epoch - 1);
        }
        if (taking_part.empty()) {
            if (next_begin == detail::endless) break;
            epoch = next_begin;  // epochs without batches take no step
            continue;
        }
        add_shares(stage, taking_part);
        stage.epochs = next_epoch - epoch;
        const bool is_last = next_epoch == detail::endless && next_position == detail::endless;
        if (next_position != detail::endless) {  // epochs that begin before it and end no later
            const std::int64_t left = next_position - position;
            const std::int64_t before = epochs_within(stage, left - 1);
            stage.epochs = before < stage.epochs && shown_by(stage, before + 1) == left ? before + 1 : before;
        }
        if (stage.epochs == 0) {  // a data set begins or ends inside of this epoch
            stage = {epoch, position, 1, {}, {}, false, {}};
            taking_part.clear();
            for (std::size_t d = 0; d < datasets_.size(); ++d) {
                const std::int64_t end_step = datasets_[d].plan.end_step;
                if (is_in_epochs(d, epoch) && (end_step == 0 || position + 1 <= end_step)) taking_part.push_back(d);
            }
            add_shares(stage, taking_part);
            const std::int64_t all = shown_by(stage, 1);
            for (std::int64_t place = 0; place < all; ++place) {
                const auto taken = static_cast<std::int64_t>(stage.places.size());
                if (is_in_steps(turn_at(stage, epoch, place).dataset, position + taken)) stage.places.push_back(place);
            }
            stage.is_cut = true;
        }
        stages_.push_back(std::move(stage));
        if (is_last) return;
        position += shown_by(stages_.back(), stages_.back().epochs);
        epoch += stages_.back().epochs;
    }
    size_ = position;
}

STRATA_INLINE std::int64_t SamplePlan::batches_before(std::int64_t epoch) const {
    const auto behind =
        std::upper_bound(stages_.begin(), stages_.end(), epoch,
                         [](std::int64_t wanted, const Stage& stage) { return wanted < stage.first_epoch; });
    if (behind == stages_.begin()) return 0;
    const Stage& stage = *std::prev(behind);
    return stage.first_position + shown_by(stage, std::min(epoch - stage.first_epoch, stage.epochs));
}

STRATA_INLINE SamplePlan::Place SamplePlan::place_of(std::int64_t position) const {
    if (size_ && position >= *size_)
        throw Error{Errc::no_samples, "no data set takes part in training after step " + std::to_string(*size_),
                    "train for fewer steps, or give a data set a later end_epoch or end_step"};
    const auto behind =
        std::upper_bound(stages_.begin(), stages_.end(), position,
                         [](std::int64_t wanted, const Stage& stage) { return wanted < stage.first_position; });
    const Stage& stage = *std::prev(behind);
    const std::int64_t epochs = stage.is_cut ? 0 : epochs_within(stage, position - stage.first_position);
    const std::int64_t epoch = stage.first_epoch + epochs;
    const std::int64_t index = position - stage.first_position - shown_by(stage, epochs);
    return {epoch, index, turn_at(stage, epoch, stage.is_cut ? stage.places[static_cast<std::size_t>(index)] : index)};
}

STRATA_INLINE GlobalBatch SamplePlan::batch(std::int64_t position, std::int64_t first, std::int64_t count) const {
    return visits_of(place_of(position), first, count);
}

STRATA_INLINE GlobalBatch SamplePlan::part(std::int64_t position, std::int64_t index, std::int64_t parts) const {
    const Place place = place_of(position);
    const std::int64_t count = datasets_[place.turn.dataset].plan.batch / parts;
    return visits_of(place, index * count, count);
}

STRATA_INLINE GlobalBatch SamplePlan::visits_of(const Place& place, std::int64_t first, std::int64_t count) const {
    const Turn& turn = place.turn;
    const Dataset& set = datasets_[turn.dataset];
    const std::int64_t round = turn.number / set.batches();
    const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };

    const Permutation batches{set.batches(),
                              core::combine({seed_, detail::order_of_round, turn.dataset, number(round)})};
    const std::int64_t in_round = batches.at(turn.number % set.batches());
    const auto bucket = static_cast<std::size_t>(std::upper_bound(set.begins.begin(), set.begins.end(), in_round) -
                                                 set.begins.begin() - 1);
    const PlanBucket& samples = set.plan.buckets[bucket];
    const std::int64_t turns = samples.count * samples.visits;
    const std::int64_t begin = (in_round - set.begins[bucket]) * set.plan.batch;

    const std::uint64_t random = core::combine({seed_, detail::visit, number(place.epoch), number(place.index)});
    GlobalBatch batch{place.epoch,
                      static_cast<std::int64_t>(turn.dataset),
                      static_cast<std::int64_t>(bucket),
                      core::combine({random, detail::batch}),
                      {},
                      std::clamp<std::int64_t>(turns - begin - first, 0, count)};
    batch.visits.reserve(static_cast<std::size_t>(count));
    std::optional<Permutation> order;
    std::int64_t pass = -1;
    for (std::int64_t i = first; i < first + count; ++i) {
        const std::int64_t at = (begin + i) % turns;  // the remainder rule
        if (at / samples.count != pass) {
            pass = at / samples.count;
            order.emplace(samples.count, core::combine({seed_, detail::order_of_pass, turn.dataset, bucket,
                                                        number(round), number(pass)}));
        }
        batch.visits.push_back({order->at(at % samples.count), core::combine({random, detail::visit, number(i)})});
    }
    return batch;
}

}  // namespace strata::datasets
