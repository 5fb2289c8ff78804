#pragma once
// strata/zero/detail/local_failure.hpp - LocalFailure: what went wrong on this rank only, until all ranks can hear of
// it.

#include <exception>
#include <utility>

#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>

namespace strata::zero::detail {

/// Keeps what work throws that fails on one rank alone, a disk's say, so that this rank goes on with the collectives
/// that the others are waiting in; tell() then makes it a failure of all. It stays: the run is over.
///
///   possible  false: nothing fails alone, and nothing is caught, kept or exchanged
template <bool possible>
class LocalFailure {
public:
    template <class Work>
    void keep(Work&& work) {
        try {
            std::forward<Work>(work)();
        } catch (const std::exception&) {
            if (!failure_) failure_ = std::current_exception();
        }
    }
    /// Throws what was kept. Local.
    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }
    /// Throws on all ranks what was kept on one. Collective.
    template <comm::Communicator Comm>
    void tell(Comm& comm) const {
        comm::agree(comm, [this] { rethrow(); });
    }

private:
    std::exception_ptr failure_;
};
template <>
class LocalFailure<false> {
public:
    template <class Work>
    void keep(Work&& work) {
        std::forward<Work>(work)();
    }
    void rethrow() const noexcept {}
    template <comm::Communicator Comm>
    void tell(Comm&) const noexcept {}
};

}  // namespace strata::zero::detail
