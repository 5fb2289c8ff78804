#pragma once
// strata/zero/parts/local_failure.hpp - LocalFailure: what went wrong on this rank only, until all ranks can hear of it.

#include <exception>

#include <strata/core/function_ref.hpp>
#include <strata/zero/parts/exchange.hpp>

namespace strata::zero {

/// Keeps what work throws that fails on one rank alone, a disk's say, so that this rank goes on with the collectives
/// that the others are waiting in; tell() then makes it a failure of all. It stays: the run is over.
class LocalFailure {
public:
    ///   may_happen  false: nothing fails alone, and nothing is caught, kept or exchanged
    explicit LocalFailure(bool may_happen) noexcept : may_happen_{may_happen} {}

    void keep(core::FunctionRef<void()> work) {
        if (!may_happen_) return work();
        try {
            work();
        } catch (...) {
            if (!failure_) failure_ = std::current_exception();
        }
    }
    /// Throws what was kept. Local.
    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }
    /// Throws on all ranks what was kept on one. Collective.
    void tell(Exchange& exchange) const {
        if (may_happen_) exchange.agree([this] { rethrow(); });
    }

private:
    bool may_happen_;
    std::exception_ptr failure_;
};

}  // namespace strata::zero
