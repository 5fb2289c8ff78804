#pragma once
// strata/datasets/ranks_on_machine.hpp - RanksOnMachine: who else runs on this machine, to share its cores and to do once what is done once a machine.

#include <algorithm>
#include <string>
#include <vector>

#include <strata/comm/communicator.hpp>
#include <strata/storage/atomic_file.hpp>

namespace strata::datasets {

/// The ranks of a communicator that run on one machine.
struct RanksOnMachine {
    int before = 0;  ///< of them those with lower numbers than this one
    int count = 1;   ///< with this one

    /// True on one rank of each machine.
    [[nodiscard]] constexpr bool is_first() const noexcept { return before == 0; }
    /// This rank's part of the machine's cores: all are given away, evenly; one at least.
    [[nodiscard]] constexpr int share_of(int cores) const noexcept {
        return std::max(1, cores / count + (before < cores % count ? 1 : 0));
    }
};
static_assert(RanksOnMachine{0, 3}.share_of(8) == 3 && RanksOnMachine{2, 3}.share_of(8) == 2);
static_assert(RanksOnMachine{3, 4}.share_of(2) == 1);

///   machines  of all ranks, whatever tells them apart
[[nodiscard]] inline RanksOnMachine ranks_on_machine(const std::vector<std::string>& machines, int rank) {
    const auto mine = machines.begin() + rank;
    return {static_cast<int>(std::count(machines.begin(), mine, *mine)),
            static_cast<int>(std::count(machines.begin(), machines.end(), *mine))};
}

/// Collective.
template <comm::Communicator Comm>
[[nodiscard]] RanksOnMachine ranks_on_machine(Comm& comm) {
    return ranks_on_machine(comm.all_gather_varied(storage::kernel_digits()), comm.rank());
}

}  // namespace strata::datasets
