#pragma once
// strata/datasets/first_on_machine.hpp - whether this rank is the one that does for its machine what is done once a machine.

#include <algorithm>
#include <string>
#include <vector>

#include <strata/comm/communicator.hpp>
#include <strata/storage/atomic_file.hpp>

namespace strata::datasets {

/// True on the first rank of each machine. Collective.
template <comm::Communicator Comm>
[[nodiscard]] bool is_first_on_machine(Comm& comm) {
    const std::vector<std::string> machines = comm.all_gather_varied(storage::kernel_digits());
    return std::find(machines.begin(), machines.end(), storage::kernel_digits()) - machines.begin() == comm.rank();
}

}  // namespace strata::datasets
