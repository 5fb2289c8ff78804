#pragma once
// strata/zero/impl/staying_parameters.ipp - intersections of two tables.

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include <strata/zero/parts/staying_parameters.hpp>

namespace strata::zero {

STRATA_INLINE StayingParameters::StayingParameters(const Buckets& before, const Buckets& after)
    : before_{before}, after_{after}, now_(before.parameters().size(), none), stayed_(after.parameters().size(), 0) {
    std::unordered_map<const void*, std::size_t> numbers;
    for (std::size_t i = 0; i < stayed_.size(); ++i)
        numbers.emplace(after.parameter(i).tensor.unsafeGetTensorImpl(), i);
    for (std::size_t i = 0; i < now_.size(); ++i) {
        const auto found = numbers.find(before.parameter(i).tensor.unsafeGetTensorImpl());
        if (found == numbers.end()) continue;
        now_[i] = found->second;
        stayed_[found->second] = 1;
    }
}

STRATA_INLINE bool StayingParameters::any_of(std::size_t bucket) const {
    const Bucket& b = before_[bucket].bucket;
    const auto first = now_.begin() + static_cast<std::ptrdiff_t>(b.first_parameter);
    return std::any_of(first, first + static_cast<std::ptrdiff_t>(b.parameter_count),
                       [](std::size_t now) { return now != none; });
}

STRATA_INLINE bool StayingParameters::keeps_shares(std::size_t bucket) const {
    const Bucket& b = before_[bucket].bucket;
    const std::size_t first = now_[b.first_parameter];
    if (first == none) return false;
    const Bucket& now = after_[after_.parameter(first).bucket].bucket;
    if (now.first_parameter != first || now.parameter_count != b.parameter_count) return false;
    for (std::size_t i = 0; i < b.parameter_count; ++i) {
        if (now_[b.first_parameter + i] != first + i) return false;
    }
    return true;
}

STRATA_INLINE std::vector<ElementRun> StayingParameters::kept_of(std::size_t bucket, bool all) const {
    std::vector<ElementRun> runs;
    const Bucket& b = before_[bucket].bucket;
    for (std::size_t i = b.first_parameter; i < b.first_parameter + b.parameter_count; ++i) {
        if (now_[i] == none) continue;
        const TrainedParameter& was = before_.parameter(i);
        const TrainedParameter& is = after_.parameter(now_[i]);
        const std::int64_t share = after_.share_of(is.bucket);
        const std::int64_t from = all ? 0 : share * after_.rank() - is.offset;  // in the parameter
        const std::int64_t begin = std::max<std::int64_t>(0, from);
        const std::int64_t end = all ? is.tensor.numel() : std::min(is.tensor.numel(), from + share);
        if (begin < end) runs.push_back({was.offset + begin, end - begin});
    }
    return runs;
}

STRATA_INLINE std::vector<ElementRun> StayingParameters::staying_in(std::size_t bucket, std::int64_t begin,
                                                                    std::int64_t numel) const {
    std::vector<ElementRun> runs;
    const Bucket& b = after_[bucket].bucket;
    for (std::size_t i = b.first_parameter; i < b.first_parameter + b.parameter_count; ++i) {
        if (stayed_[i] == 0) continue;
        const TrainedParameter& is = after_.parameter(i);
        const std::int64_t from = std::max(begin, is.offset);
        const std::int64_t end = std::min(begin + numel, is.offset + is.tensor.numel());
        if (from < end) runs.push_back({from - begin, end - from});
    }
    return runs;
}

}  // namespace strata::zero
