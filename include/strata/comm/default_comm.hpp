#pragma once
// strata/comm/default_comm.hpp - DefaultComm: MpiComm in a build with MPI, else SelfComm.

#include <strata/policy/ranks.hpp>

#ifdef STRATA_WITH_MPI
#include <strata/comm/mpi_comm.hpp>
#else
#include <strata/comm/self_comm.hpp>
#endif

namespace strata::comm {

#ifdef STRATA_WITH_MPI
using DefaultComm = MpiComm;
#else
using DefaultComm = SelfComm;
#endif

namespace detail {
template <class Named>
struct CommOf {
    using type = Named;
};
template <>
struct CommOf<OfTheBuild> {
    using type = DefaultComm;
};
}  // namespace detail

/// The communicator that Ranks<Named> stands for.
template <class Named>
using comm_of_t = typename detail::CommOf<Named>::type;

}  // namespace strata::comm
