#pragma once
// strata/policy/ranks.hpp - slot::Communication, and Ranks<Comm>: what the ranks of a run exchange bytes with.

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

namespace comm {
class MpiComm;   ///< all ranks of an MPI job; strata/comm/mpi_comm.hpp
class SelfComm;  ///< one process on its own; strata/comm/self_comm.hpp

/// Names the communicator that this build has: MpiComm, or SelfComm in one without MPI. comm/default_comm.hpp
/// knows which.
struct OfTheBuild {};
}  // namespace comm

namespace rule {

template <class P>
struct RanksNameACommunicator {
    static constexpr bool holds = requires { typename P::comm; };
    struct Report {
        static_assert(holds,
                      "[ST0136] A policy of your own for the communicator names none. Fix: let it say `using comm = "
                      "strata::comm::SelfComm;`, with the communicator you mean, or write Ranks<MyComm> "
                      "(docs/write-a-communicator.md).");
    };
};

}  // namespace rule

template <class Comm>
struct Ranks;

namespace slot {

/// What ranks exchange bytes with.
struct Communication {
    static constexpr const char* name = "Communication";
    static constexpr const char* policy = "Ranks<MyComm>";
    template <class... Ps>
    struct Members {
        using ranks = select_t<Communication, Ranks<comm::OfTheBuild>, Ps...>;
    };
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<Communication, Ps...> <= 1;
    template <class P>
    using broken = rule::first_broken_t<rule::RanksNameACommunicator<P>>;
};

}  // namespace slot

/// Names the communicator that a trainer is made for: the one that its Session was made over.
///
///   Comm  comm::MpiComm, comm::SelfComm, or a type of your own that satisfies comm::Communicator for bytes in
///         host memory (docs/write-a-communicator.md)
/// Between GPUs a trainer puts NCCL on top of it: Compute<Cuda>.
template <class Comm>
struct Ranks {
    using slot = slot::Communication;
    using comm = Comm;
};

}  // namespace strata
