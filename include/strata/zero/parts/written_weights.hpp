#pragma once
// strata/zero/parts/written_weights.hpp - WrittenWeights: which parameters a program has written while it had them whole.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/elements.hpp>
#include <strata/core/error.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/layout.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/state_pass.hpp>

namespace strata::zero {

/// Remembers the versions that libtorch gives to tensors: every operation in place raises them, but for those on `.data()`.
class WrittenWeights {
public:
    /// Trained parameters first, then the frozen ones; both outlive it.
    WrittenWeights(const Buckets& buckets, const std::vector<Parameter>& frozen) : buckets_{buckets}, frozen_{frozen} {
        for (std::size_t i = 0; i < count(); ++i) before_.push_back(version(i));
    }

    /// Whether each parameter was written since; none was where `threw` is true on some rank. Collective. Throws bad_parameter
    /// on all ranks when some wrote one and others did not: nobody could say which values it has.
    [[nodiscard]] std::vector<char> written(Exchange& exchange, bool threw) const {
        std::vector<char> mine(count() + 1);
        for (std::size_t i = 0; i < count(); ++i) mine[i] = version(i) == before_[i] ? 0 : 1;
        mine.back() = threw ? 1 : 0;
        const auto world = static_cast<std::size_t>(exchange.world());
        std::vector<char> all(mine.size() * world);
        exchange.all_gather_bytes(std::as_bytes(std::span{mine}), std::as_writable_bytes(std::span{all}));
        const auto of_rank = [&](std::size_t rank, std::size_t i) { return all[rank * (count() + 1) + i]; };
        mine.pop_back();
        for (std::size_t rank = 0; rank < world; ++rank) {
            if (of_rank(rank, count()) != 0) return std::vector<char>(count(), 0);
        }
        for (std::size_t rank = 1; rank < world; ++rank) {
            for (std::size_t i = 0; i < count(); ++i) {
                if (of_rank(rank, i) == of_rank(0, i)) continue;
                const std::size_t wrote = of_rank(0, i) != 0 ? 0 : rank;
                throw Error{Errc::bad_parameter,
                            "the parameter " + name(i) + " was written on rank " + std::to_string(wrote) +
                                " and not on rank " + std::to_string(wrote == 0 ? rank : 0) +
                                " while the model was whole",
                            "write the same values on every rank, or read only"};
            }
        }
        return mine;
    }
    [[nodiscard]] const at::Tensor& tensor(std::size_t i) const {
        return i < trained() ? buckets_.parameter(i).tensor : frozen_[i - trained()].tensor;
    }

private:
    /// Without what the engine itself has raised.
    [[nodiscard]] std::int64_t version(std::size_t i) const {
        return static_cast<std::int64_t>(tensor(i)._version()) - (i < trained() ? buckets_.bumps() : 0);
    }
    [[nodiscard]] std::size_t trained() const noexcept { return buckets_.parameters().size(); }
    [[nodiscard]] std::size_t count() const noexcept { return trained() + frozen_.size(); }
    [[nodiscard]] const std::string& name(std::size_t i) const {
        return i < trained() ? buckets_.name(i) : frozen_[i - trained()].name;
    }

    const Buckets& buckets_;
    const std::vector<Parameter>& frozen_;
    std::vector<std::int64_t> before_;
};

/// The masters of parameters become what the parameters are. Local; what a disk meets is with the pass's LocalFailure.
///
///   Pass     a StatePass
///   written  one a parameter of the table; others keep their masters, which are more exact than they are
template <class Pass>
void start_masters(Pass& pass, const Buckets& buckets, const std::vector<char>& written) {
    if constexpr (Pass::has_masters) {
        const auto start = [&]<class Part>(const Part& run) {
            if constexpr (!Part::has_master) return;  // the parameters are the weights
            const Bucket& bucket = buckets[run.bucket].bucket;
            for (std::size_t i = bucket.first_parameter; i < bucket.first_parameter + bucket.parameter_count; ++i) {
                const ElementRun piece = buckets.parameter_piece(i, run.begin, run.numel);
                if (written[i] == 0 || piece.numel == 0) continue;
                const auto from = run.parameters.subspan(static_cast<std::size_t>(piece.begin),
                                                         static_cast<std::size_t>(piece.numel));
                std::transform(from.begin(), from.end(), run.weight.begin() + piece.begin,
                               [](auto value) { return to_element<typename Part::Kept>(to_float(value)); });
            }
        };
        pass.on_host(offload::Access::update, {ParameterUse::read, ParameterUse::none}, start);
    }
}

}  // namespace strata::zero
