#pragma once
// strata/zero/impl/pass_peaks.ipp - a pass without tensors: gradients that wait, and units that are whole.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

#include <strata/zero/layout.hpp>
#include <strata/zero/parts/pass_peaks.hpp>

namespace strata::zero {

namespace detail {

/// Gradients of buckets, from their first one to the end of their reduction, which the channel does in the order in which it is told.
class GradientsUnderWay {
public:
    struct Reduction {
        std::int64_t bytes = 0;   // that it gives back
        std::int64_t beside = 0;  // while it goes on
    };
    void begin(std::int64_t bytes) {
        live_ += bytes;
        look();
    }
    void post(const Reduction& reduction) {
        posted_.push_back(reduction);
        ++posted_in_all_;
        look();
    }
    /// Until so many are left; until so many of all are done.
    void leave(std::size_t left) {
        for (; posted_.size() > left; posted_.pop_front()) live_ -= posted_.front().bytes;
    }
    void finish(std::size_t done) { leave(posted_in_all_ > done ? posted_in_all_ - done : 0); }
    [[nodiscard]] std::size_t posted() const noexcept { return posted_in_all_; }
    [[nodiscard]] std::int64_t peak() const noexcept { return peak_; }

private:
    void look() {
        peak_ = std::max(peak_, live_);
        std::int64_t live = live_;  // when those before are done
        for (const Reduction& reduction : posted_) {
            peak_ = std::max(peak_, live + reduction.beside);
            live -= reduction.bytes;
        }
    }
    std::deque<Reduction> posted_;
    std::size_t posted_in_all_ = 0;
    std::int64_t live_ = 0;
    std::int64_t peak_ = 0;
};

/// What UnitGathering keeps whole, by the same bounds.
class UnitsUnderWay {
public:
    struct Unit {
        std::int64_t bytes = 0;
        std::int64_t numel = 0;
        std::int64_t packed = 0;  // bytes of its largest flat that is gathered as bytes, in memory until it is filled
        bool whole = false;
        bool ahead = false;
        bool on_its_way = false;  // nobody has waited for it yet
    };
    UnitsUnderWay(std::vector<Unit> units, std::int64_t limit, std::int64_t max_live_numel, bool alone)
        : units_{std::move(units)}, limit_{limit}, max_live_{max_live_numel}, alone_{alone} {
        if (limit_ < 0)
            for (const Unit& unit : units_) limit_ = std::max(limit_, unit.bytes);
    }
    /// A unit is used; what comes after it, one unit further in this direction and so on, is gathered ahead. Calls gathered(unit) for each
    /// that has to come.
    template <class Gathered>
    void use(std::size_t number, int direction, const Gathered& gathered) {
        Unit& used = units_[number];
        if (!used.whole) gather(number, gathered);
        if (used.ahead) ahead_bytes_ -= used.bytes;
        used.ahead = false;
        if (!alone_) gather_ahead(number, direction, gathered);
        for (const Unit& unit : units_) {
            if (unit.on_its_way) peak_ = std::max(peak_, live_bytes_ + unit.packed);
        }
        used.on_its_way = false;
    }
    void drop(std::size_t number) {
        live_bytes_ -= units_[number].bytes;
        live_numel_ -= units_[number].numel;
        units_[number].whole = false;
    }
    [[nodiscard]] std::size_t size() const noexcept { return units_.size(); }
    [[nodiscard]] std::int64_t peak() const noexcept { return peak_; }

private:
    template <class Gathered>
    void gather_ahead(std::size_t number, int direction, const Gathered& gathered) {
        for (std::size_t next = number + static_cast<std::size_t>(direction); next < units_.size();
             next += static_cast<std::size_t>(direction)) {
            Unit& unit = units_[next];
            if (unit.whole) continue;
            if (ahead_bytes_ + unit.bytes > limit_ || (max_live_ > 0 && live_numel_ + unit.numel > max_live_)) return;
            gather(next, gathered);
            unit.ahead = true;
            ahead_bytes_ += unit.bytes;
        }
    }
    template <class Gathered>
    void gather(std::size_t number, const Gathered& gathered) {
        units_[number].whole = units_[number].on_its_way = true;
        live_bytes_ += units_[number].bytes;
        live_numel_ += units_[number].numel;
        peak_ = std::max(peak_, live_bytes_);
        gathered(number);
    }
    std::vector<Unit> units_;
    std::int64_t limit_;
    std::int64_t max_live_;
    bool alone_;
    std::int64_t ahead_bytes_ = 0;
    std::int64_t live_bytes_ = 0;
    std::int64_t live_numel_ = 0;
    std::int64_t peak_ = 0;
};

/// What happens in backward when it comes to a place of the model, in this order.
enum class PassEvent : std::uint8_t { unit_is_used, bucket_begins, bucket_is_complete, unit_is_done };

class BackwardWalk {
public:
    BackwardWalk(const Buckets& buckets, const PassFacts& facts, UnitsUnderWay& units)
        : buckets_{buckets}, facts_{facts}, units_{units}, tickets_(units.size()), complete_(buckets.size()) {}

    void run(const std::map<std::int32_t, std::size_t>& unit_numbers) {
        struct Event {
            std::int64_t place;
            PassEvent what;
            std::size_t of;
        };
        struct Span {
            std::int64_t first = std::numeric_limits<std::int64_t>::max();
            std::int64_t last = -1;
            void add(std::int64_t place) {
                first = std::min(first, place);
                last = std::max(last, place);
            }
        };
        std::map<const void*, std::int64_t> places;
        std::map<std::int32_t, Span> of_units;
        for (std::size_t i = 0; i < facts_.model.size(); ++i) {
            const auto place = static_cast<std::int64_t>(i);
            places[facts_.model[i].tensor.unsafeGetTensorImpl()] = place;
            if (facts_.model[i].unit >= 0) of_units[facts_.model[i].unit].add(place);
        }
        std::vector<Event> events;
        for (const auto& [unit, number] : unit_numbers) {
            events.push_back({of_units[unit].last, PassEvent::unit_is_used, number});
            events.push_back({of_units[unit].first, PassEvent::unit_is_done, number});
        }
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            const Bucket& b = buckets_[i].bucket;
            Span span;
            for (std::size_t p = 0; p < b.parameter_count; ++p)
                span.add(places.at(buckets_.parameter(b.first_parameter + p).tensor.unsafeGetTensorImpl()));
            if (b.unit >= 0) span = of_units.at(b.unit);
            events.push_back({span.last, PassEvent::bucket_begins, i});
            events.push_back({span.first, PassEvent::bucket_is_complete, i});
        }
        std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
            return std::tuple{-a.place, a.what, b.of} < std::tuple{-b.place, b.what, a.of};
        });
        for (const Event& event : events) meet(event.what, event.of);
        for (const std::size_t bucket : offered_) post(bucket);
    }
    [[nodiscard]] std::int64_t peak() const noexcept { return gradients_.peak(); }

private:
    void meet(PassEvent what, std::size_t of) {
        switch (what) {
            case PassEvent::unit_is_used:
                units_.use(of, -1, [this](std::size_t unit) {
                    for (const std::size_t bucket : offered_) post(bucket);
                    offered_.clear();
                    tickets_[unit] = gradients_.posted();
                });
                gradients_.finish(tickets_[of]);
                break;
            case PassEvent::bucket_begins:
                if (facts_.gradients.sharded) gradients_.begin(bytes_of(of));
                break;
            case PassEvent::bucket_is_complete:
                completed(of);
                break;
            case PassEvent::unit_is_done:
                units_.drop(of);
        }
    }
    void completed(std::size_t bucket) {
        if (buckets_.shards_units()) return offered_.push_back(bucket);
        complete_[bucket] = 1;
        for (; unreduced_ > 0 && complete_[unreduced_ - 1] != 0; --unreduced_) {
            gradients_.leave(static_cast<std::size_t>(facts_.gradients.buckets_in_flight) - 1);
            post(unreduced_ - 1);
        }
    }
    void post(std::size_t bucket) {
        const GradientReduction::Options& options = facts_.gradients;
        const bool adds_up = options.micro_batches > 1 && !options.once_a_step && !options.used_at_once;
        const bool leaves = options.sums_on_tier && !facts_.device_is_host;
        const auto sum = static_cast<std::int64_t>(
            c10::elementSize(GradientReduction::sum_dtype_of(options, buckets_.excepted(bucket))));
        gradients_.post(
            {options.sharded ? bytes_of(bucket) : 0, adds_up || leaves ? buckets_.share_of(bucket) * sum : 0});
        if (buckets_.world() == 1) gradients_.leave(0);
    }
    [[nodiscard]] std::int64_t bytes_of(std::size_t bucket) const {
        return buckets_.padded_of(bucket) *
               static_cast<std::int64_t>(c10::elementSize(buckets_.excepted(bucket) ? facts_.gradients.excepted_dtype
                                                                                    : facts_.gradients.dtype));
    }

    const Buckets& buckets_;
    const PassFacts& facts_;
    UnitsUnderWay& units_;
    GradientsUnderWay gradients_;
    std::vector<std::size_t> tickets_;  // of units: reductions that were posted before
    std::vector<std::size_t> offered_;
    std::vector<char> complete_;
    std::size_t unreduced_ = buckets_.size();
};

}  // namespace detail

STRATA_INLINE PassPeaks pass_peaks(const Buckets& buckets, const std::vector<FrozenUnit>& frozen,
                                   const PassFacts& facts) {
    const auto element = [&](bool excepted) {
        return static_cast<std::int64_t>(c10::elementSize(excepted ? facts.excepted_dtype : facts.dtype));
    };
    std::map<std::int32_t, detail::UnitsUnderWay::Unit> by_unit;
    const auto add = [&](std::int32_t unit, std::int64_t numel, bool excepted) {
        by_unit[unit].numel += numel;
        by_unit[unit].bytes += numel * element(excepted);
    };
    for (std::size_t i = 0; i < buckets.size(); ++i) {
        if (buckets[i].sharded) add(buckets[i].bucket.unit, buckets.padded_of(i), buckets.excepted(i));
    }
    for (const FrozenUnit& unit : frozen) {
        if (!unit.packed) {
            add(unit.unit, share_numel(unit.numel, buckets.world()) * buckets.world(), unit.excepted);
            continue;
        }
        add(unit.unit, unit.numel, unit.excepted);
        // Alone on the host a unit is dequantised out of its shard.
        if (buckets.world() == 1 && facts.device_is_host) continue;
        std::int64_t& packed = by_unit[unit.unit].packed;
        packed = std::max(packed, share_numel(unit.packed->bytes(), buckets.world()) * buckets.world());
    }
    std::map<std::int32_t, std::size_t> numbers;
    std::vector<detail::UnitsUnderWay::Unit> all;
    for (const auto& [unit, of_unit] : by_unit) {
        numbers[unit] = all.size();
        all.push_back(of_unit);
    }

    detail::UnitsUnderWay units{std::move(all), facts.prefetch_bytes, facts.max_live_numel, buckets.world() == 1};
    for (std::size_t i = 0; i < units.size(); ++i) {
        units.use(i, 1, [](std::size_t) {});
        if (i + 1 < units.size()) units.drop(i);  // the last one stays for backward
    }
    PassPeaks peaks;
    detail::BackwardWalk backward{buckets, facts, units};
    backward.run(numbers);
    peaks.gradients = backward.peak();
    peaks.gathered = units.peak();
    if (buckets.replicates_state() && facts.gradients.micro_batches > 1 && !facts.gradients.once_a_step &&
        !facts.gradients.used_at_once) {
        for (std::size_t i = 0; i < buckets.size(); ++i) {  // sums are gathered one bucket ahead
            const std::int64_t next = i + 1 < buckets.size() ? buckets.padded_of(i + 1) : 0;
            peaks.buffers =
                std::max(peaks.buffers, (buckets.padded_of(i) + next) * static_cast<std::int64_t>(sizeof(float)));
        }
    }
    return peaks;
}

}  // namespace strata::zero
