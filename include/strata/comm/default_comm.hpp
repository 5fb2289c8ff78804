#pragma once
// strata/comm/default_comm.hpp - DefaultComm: MpiComm in a build with MPI, else SelfComm.

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

}  // namespace strata::comm
