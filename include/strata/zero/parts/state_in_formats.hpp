#pragma once
// strata/zero/parts/state_in_formats.hpp - StateInFormats: masters and states of parameters in two number formats.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/precision.hpp>
#include <strata/zero/tier.hpp>
#include <strata/zero/tier_bytes.hpp>

namespace strata::zero {

/// A run of parameters that keep the other number format.
template <class Run>
struct ExceptedRun : Run {
    static constexpr bool is_excepted = true;
};

/// The `state` of a tier twice: for the parameters of a precision's own format, and behind them for its exceptions. A pass goes
/// over both, in the order of buckets. Calls are those of a TierState, but for sizes: how many buckets are not excepted is said.
///
///   Own, Excepted  TierStates
template <class Own, class Excepted>
class StateInFormats {
    static constexpr bool by_bucket = detail::GivesBuckets<Own> && detail::GivesBuckets<Excepted>;

public:
    static constexpr Place memory = Own::memory;
    static constexpr Place excepted_memory = Excepted::memory;
    static constexpr bool fails_alone = Own::fails_alone || Excepted::fails_alone;
    static constexpr bool wants_folder = Own::wants_folder || Excepted::wants_folder;

    ///   own  how many of the buckets are not excepted
    static PlaceBytes bytes(std::span<const std::int64_t> numels, std::size_t own) {
        return Own::bytes(numels.first(own)) + Excepted::bytes(numels.subspan(own));
    }
    static TierBytes takes(std::span<const std::int64_t> numels, std::size_t own, const TierRoom& room) {
        return taken_by<Own>(numels.first(own), room.part(2)) + taken_by<Excepted>(numels.subspan(own), room.part(2));
    }
    void make(const TierContext& context, const std::vector<std::int64_t>& numels, std::size_t own) {
        own_count_ = own;
        excepted_count_ = numels.size() - own;
        const auto cut = numels.begin() + static_cast<std::ptrdiff_t>(own);
        if (own_count_ > 0) own_.make(context.part("own", 2), std::vector<std::int64_t>(numels.begin(), cut));
        if (excepted_count_ > 0)
            excepted_.make(context.part("excepted", 2), std::vector<std::int64_t>(cut, numels.end()));
    }
    template <std::size_t states, class WeightOf>
    void fill(const std::array<float, states>& initial, WeightOf&& weight_of) {
        if (own_count_ > 0) own_.fill(initial, weight_of);
        if (excepted_count_ > 0)
            excepted_.fill(initial, [&](std::size_t bucket) { return weight_of(own_count_ + bucket); });
    }
    template <class Call>
    void run(offload::Access access, Call&& call) {
        if (own_count_ > 0) own_.run(access, call);
        if (excepted_count_ > 0) excepted_.run(access, behind(call));
    }
    void prefetch() {
        if (own_count_ > 0) own_.prefetch();
        if (excepted_count_ > 0) excepted_.prefetch();
    }
    template <class Call>
    requires(by_bucket) void run_bucket(std::size_t bucket, offload::Access access, Call&& call) {
        if (bucket < own_count_) return own_.run_bucket(bucket, access, call);
        excepted_.run_bucket(bucket - own_count_, access, behind(call));
    }
    void prefetch_bucket(std::size_t bucket) requires(by_bucket) {
        bucket < own_count_ ? own_.prefetch_bucket(bucket) : excepted_.prefetch_bucket(bucket - own_count_);
    }

private:
    /// What is called with runs of the second one.
    template <class Call>
    [[nodiscard]] auto behind(Call& call) const {
        return [this, &call]<class Run>(const Run& run) {
            ExceptedRun<Run> excepted{run};
            excepted.bucket += own_count_;
            call(std::as_const(excepted));
        };
    }

    Own own_;
    Excepted excepted_;
    std::size_t own_count_ = 0;
    std::size_t excepted_count_ = 0;
};

namespace detail {

/// The number format of a tier's run: a precision's own, or that of its exceptions.
template <class Numerics, class Run>
struct FormatOf {
    using type = Numerics;
};
template <class Numerics, class Run>
struct FormatOf<Numerics, ExceptedRun<Run>> {
    using type = strata::detail::excepted_of_t<Numerics>;
};
template <class Numerics, class Run>
using format_of_t = typename FormatOf<Numerics, Run>::type;

template <class Numerics>
inline constexpr bool has_masters_v = [] {
    if constexpr (strata::detail::has_exceptions_v<Numerics>)
        return Numerics::has_master || strata::detail::excepted_of_t<Numerics>::has_master;
    return Numerics::has_master;
}();

/// What keeps the state of a precision's parameters on a tier.
template <class Tier, class Numerics, std::size_t states, class Excepted = strata::detail::excepted_of_t<Numerics>>
struct StateOfPrecision {
    using type = StateInFormats<state_on_t<Tier, typename Numerics::kept, states, Numerics::has_master>,
                                state_on_t<Tier, typename Excepted::kept, states, Excepted::has_master>>;
};
template <class Tier, class Numerics, std::size_t states>
struct StateOfPrecision<Tier, Numerics, states, void> {
    using type = state_on_t<Tier, typename Numerics::kept, states, Numerics::has_master>;
};

}  // namespace detail

}  // namespace strata::zero
