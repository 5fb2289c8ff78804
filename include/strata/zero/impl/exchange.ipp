#pragma once
// strata/zero/impl/exchange.ipp - names of a program's engines.

#include <atomic>

#include <strata/zero/parts/exchange.hpp>

namespace strata::zero {

STRATA_INLINE std::string agreed_name(Exchange& exchange, const std::string& given) {
    static std::atomic<int> made = 0;
    const int number = ++made;
    return exchange.all_gather_texts(given.empty() ? "engine " + std::to_string(number) : given).front();
}

}  // namespace strata::zero
