#pragma once
// strata/zero/parts/state_transfer.hpp - StateTransfer: the state's way out of an engine and back in, for checkpoints.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <strata/core/elements.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/layout.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/local_failure.hpp>
#include <strata/zero/parts/sharded_average.hpp>
#include <strata/zero/parts/staging.hpp>
#include <strata/zero/parts/state_pass.hpp>
#include <strata/zero/state.hpp>

namespace strata::zero {

///   Pass  a StatePass
template <class Pass>
class StateTransfer {
public:
    using Sink = std::function<void(std::string_view kind, std::int64_t begin, std::span<const float> values)>;
    using Source = std::function<void(std::string_view kind, std::int64_t begin, std::span<float> values)>;

    /// kinds    weight_kind, and the names of the rule's states
    /// average  where there is one, else nullptr
    /// The others outlive this object.
    StateTransfer(Pass& pass, std::vector<std::string_view> kinds, ShardedAverage* average, const Buckets& buckets,
                  Exchange& exchange, detail::BufferPool& pool, LocalFailure& failure)
        : pass_{pass},
          kinds_{std::move(kinds)},
          average_{average},
          buckets_{buckets},
          exchange_{exchange},
          pool_{pool},
          failure_{failure} {}

    /// The runs that read() gives, in its order by kind. Local.
    [[nodiscard]] std::vector<StateOutline> outline() const {
        std::vector<std::string_view> kinds = kinds_;
        if (average_ != nullptr) kinds.push_back(average_kind);
        return outline_of(kinds, buckets_);
    }

    /// Local. Throws what the disk meets.
    void read(const Sink& sink) {
        std::vector<float> copy;
        const auto give = [&]<class Part>(const Part& run) {
            const ElementRun own = own_elements(run);
            if (own.numel == 0) return;
            for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
                const std::span<const typename Part::Kept> values =
                    pass_.own_part(run, values_of(run, kind)).first(static_cast<std::size_t>(own.numel));
                sink(kinds_[kind], own.begin, as_floats(values, copy));
            }
        };
        pass_.on_host(offload::Access::read, {ParameterUse::none, ParameterUse::read}, give);
        failure_.rethrow();
        if (average_ == nullptr) return;
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            const ElementRun own = buckets_.own(i);
            Staging staging{pool_};
            const std::span<const float> values =
                staging.take(std::span<const float>{average_->values(i)}, average_memory(), Place::host, true);
            if (own.numel > 0) sink(average_kind, own.begin, values.first(static_cast<std::size_t>(own.numel)));
        }
    }

    /// Fills this rank's part, and where every rank has all of the state, the others' too. Collective; throws on all ranks
    /// what `source` threw on one.
    ///
    ///   average  false: the average is not asked for
    void write(const Source& source, bool average) {
        exchange_.agree([&] {
            fill(source);
            failure_.rethrow();
            if (average && average_ != nullptr) fill_average(source);
        });
        if (buckets_.replicates_state()) gather();
    }

private:
    void fill(const Source& source) {
        std::vector<float> copy;
        const auto take = [&]<class Part>(const Part& run) {
            using Kept = typename Part::Kept;
            const ElementRun own = own_elements(run);
            for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
                const std::span<Kept> values = pass_.own_part(run, values_of(run, kind));
                copy.assign(values.size(), 0.0F);  // padding
                source(kinds_[kind], own.begin, std::span{copy}.first(static_cast<std::size_t>(own.numel)));
                std::transform(copy.begin(), copy.end(), values.begin(),
                               [](float value) { return to_element<Kept>(value); });
            }
            if constexpr (Part::has_master) round(pass_.own_part(run, run.weight), pass_.own_part(run, run.parameters));
        };
        pass_.on_host(offload::Access::write, ParameterUse::write, take);
    }
    void fill_average(const Source& source) {
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            const ElementRun own = buckets_.own(i);
            if (own.numel == 0) continue;
            Staging staging{pool_};
            const std::span<float> values = average_->values(i).first(static_cast<std::size_t>(own.numel));
            source(average_kind, own.begin, staging.take(values, average_memory(), Place::host, false, true));
            staging.put_back();
        }
    }
    /// The other ranks' parts of a state that every rank has all of.
    void gather() {
        const auto exchange = [&]<class Part>(const Part& run) {
            for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
                const std::span<typename Part::Kept> values = values_of(run, kind);
                exchange_.all_gather_bytes(std::as_bytes(pass_.own_part(run, values)), std::as_writable_bytes(values));
            }
            if constexpr (Part::has_master) round(run.weight, run.parameters);
        };
        pass_.on_host(offload::Access::update, {ParameterUse::write, ParameterUse::update}, exchange);
    }

    template <class Part>
    [[nodiscard]] static std::span<typename Part::Kept> values_of(const Part& run, std::size_t kind) {
        return kind == 0 ? run.weight : run.state[kind - 1];
    }
    template <class Kept, class Element>
    static void round(std::span<Kept> from, std::span<Element> to) {
        std::transform(from.begin(), from.end(), to.begin(),
                       [](Kept value) { return to_element<Element>(to_float(value)); });
    }
    template <class Kept>
    static std::span<const float> as_floats(std::span<const Kept> values, std::vector<float>& copy) {
        if constexpr (std::same_as<Kept, float>) {
            return values;
        } else {
            copy.resize(values.size());
            std::transform(values.begin(), values.end(), copy.begin(), [](Kept value) { return to_float(value); });
            return copy;
        }
    }
    [[nodiscard]] Place average_memory() const { return memory_of<typename Pass::Device>(average_->memory()); }
    /// The elements of this rank's share that a run holds, without padding.
    template <class Run>
    [[nodiscard]] ElementRun own_elements(const Run& run) const {
        const ElementRun own = buckets_.own(run.bucket);
        if (buckets_.replicates_state()) return own;
        const std::int64_t from = std::min(run.begin, own.numel);
        return {own.begin + from, std::min(run.numel, own.numel - from)};
    }

    Pass& pass_;
    std::vector<std::string_view> kinds_;
    ShardedAverage* average_;
    const Buckets& buckets_;
    Exchange& exchange_;
    detail::BufferPool& pool_;
    LocalFailure& failure_;
};

}  // namespace strata::zero
