#pragma once
// strata/comm/agree.hpp - work that may fail on one rank only, reported on all of them.

#include <string>
#include <vector>

#include <strata/comm/communicator.hpp>
#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>

namespace strata::comm {

namespace detail {

/// What `work` throws on this rank, as text for the others; empty when it throws nothing.
[[nodiscard]] std::string failure_of(int rank, core::FunctionRef<void()> work);

/// Throws the first failure there is among those of all ranks, in rank order.
void throw_first(const std::vector<std::string>& failures);

}  // namespace detail

/// Calls `work` on every rank; if it threw anywhere, throws the Error of the lowest such rank on all ranks.
/// A rank that fails alone would otherwise leave the others waiting in their next collective.
///
///   work  a local function; it must not itself be collective, or a rank that throws early hangs the rest
/// Collective. An exception that is no Error becomes one: io_failed from the file system, else rank_failed.
template <Communicator Comm>
void agree(Comm& comm, core::FunctionRef<void()> work) {
    detail::throw_first(comm.all_gather_varied(detail::failure_of(comm.rank(), work)));
}

}  // namespace strata::comm

#ifndef STRATA_COMPILED
#include <strata/comm/impl/agree.ipp>
#endif
