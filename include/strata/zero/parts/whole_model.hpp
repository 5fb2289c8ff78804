#pragma once
// strata/zero/parts/whole_model.hpp - WholeModel: a program has all parameters whole, and what it writes to them is kept.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/local_failure.hpp>
#include <strata/zero/parts/take_over.hpp>
#include <strata/zero/parts/unit_gathering.hpp>
#include <strata/zero/parts/weight_gathering.hpp>
#include <strata/zero/parts/written_weights.hpp>

namespace strata::zero {

///   Pass  a StatePass
template <class Pass>
class WholeModel {
public:
    /// gathering  where units are gathered, else nullptr
    /// All of it outlives this object.
    WholeModel(Pass& pass, UnitGathering* gathering, WeightGathering& weights, const Buckets& buckets,
               const std::vector<Parameter>& frozen, Exchange& exchange, LocalFailure& failure)
        : pass_{pass},
          gathering_{gathering},
          weights_{weights},
          buckets_{buckets},
          frozen_{frozen},
          exchange_{exchange},
          failure_{failure} {}

    /// Engine::with_whole_model(). Collective, though `body` need not be.
    ///
    ///   before_keeping  called where something was written, and may throw
    void lend(const std::function<void()>& body, const std::function<void()>& before_keeping) {
        const WrittenWeights weights{buckets_, frozen_};
        if (gathering_ != nullptr) gathering_->hold_all(true);
        std::exception_ptr failure;
        try {
            body();
        } catch (...) {
            failure = std::current_exception();
        }
        try {
            exchange_.wait();  // the body may have used another engine's model, which gathers ahead
            const std::vector<char> written = weights.written(exchange_, failure != nullptr);
            if (std::find(written.begin(), written.end(), 1) != written.end()) {
                before_keeping();
                keep(weights, written);
            }
        } catch (...) {
            if (!failure) failure = std::current_exception();
        }
        if (gathering_ != nullptr) gathering_->hold_all(false);
        if (failure) std::rethrow_exception(failure);
    }

    /// Engine::write_frozen(), of parameters that `hold` makes whole. Collective.
    void write_frozen(const std::function<bool(std::string_view name)>& wanted,
                      const std::function<void(const std::string& name, at::Tensor values)>& fill,
                      const std::function<void(const at::Tensor&)>& hold) {
        for (const Parameter& parameter : frozen_) {
            if (!wanted(parameter.name)) continue;
            hold(parameter.tensor);
            exchange_.agree([&] { fill(parameter.name, parameter.tensor.detach()); });
            if (gathering_ == nullptr || !shards_frozen(parameter)) continue;
            failure_.keep([&] {
                gathering_->reshard([&](const at::Tensor& tensor) { return tensor.is_same(parameter.tensor); });
            });
        }
        failure_.tell(exchange_);
    }

private:
    void keep(const WrittenWeights& weights, const std::vector<char>& written) {
        const at::NoGradGuard no_grad;
        failure_.keep([&] { reshard(weights, written); });
        const std::size_t trained = buckets_.parameters().size();
        std::set<std::size_t> whole;  // buckets
        for (std::size_t i = 0; i < trained; ++i) {
            const std::size_t bucket = buckets_.parameter(i).bucket;
            if (written[i] != 0 && !buckets_[bucket].sharded) whole.insert(bucket);
        }
        for (const std::size_t bucket : whole) weights_.gather(bucket);
        exchange_.wait();
        for (std::size_t i = trained; i < written.size(); ++i) {
            const Parameter& frozen = frozen_[i - trained];
            const bool is_shard = gathering_ != nullptr && shards_frozen(frozen);
            if (written[i] != 0 && !is_shard) exchange_.broadcast(frozen.tensor);
        }
        start_masters(pass_, buckets_, written);
        failure_.tell(exchange_);
    }
    void reshard(const WrittenWeights& weights, const std::vector<char>& written) {
        if (gathering_ == nullptr) return;
        std::set<const void*> tensors;
        for (std::size_t i = 0; i < written.size(); ++i) {
            if (written[i] != 0) tensors.insert(weights.tensor(i).unsafeGetTensorImpl());
        }
        gathering_->reshard([&](const at::Tensor& tensor) { return tensors.contains(tensor.unsafeGetTensorImpl()); });
    }

    Pass& pass_;
    UnitGathering* gathering_;
    WeightGathering& weights_;
    const Buckets& buckets_;
    const std::vector<Parameter>& frozen_;
    Exchange& exchange_;
    LocalFailure& failure_;
};

}  // namespace strata::zero
