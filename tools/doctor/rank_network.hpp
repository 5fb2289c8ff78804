#pragma once
// tools/doctor/rank_network.hpp - what a rank of `strata doctor -n N` measures with the others, by MPI.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace strata::tools::doctor {

/// Nanoseconds of this host's clock, since 1970.
[[nodiscard]] std::int64_t wall_ns();

/// The hosts of all ranks; none where one of them is not reached within 15 s: rank 0 then says which, and MPI is not to be used for more.
/// Collective, and point to point.
[[nodiscard]] std::vector<std::string> meet(const std::string& host, int rank, int world);

/// Pairs of ranks to measure, in the order in which all of them do: one rank a host, every host with every other up to 16 of them, else
/// the first with every other and each with the next; where there is one host, its first two ranks.
[[nodiscard]] std::vector<std::pair<int, int>> pairs_of(const std::vector<std::string>& hosts);

/// Measures one after the other; the first of a pair says what came of it. False where one has not answered: MPI is not to be used for
/// more. Collective.
[[nodiscard]] bool measure_pairs(const std::vector<std::pair<int, int>>& pairs, const std::vector<std::string>& hosts,
                                 int rank);

/// The best of three sums of all ranks, of at most 64 MiB, less where a megabyte takes long. Rank 0 says it. Collective.
void measure_sum(int rank);

}  // namespace strata::tools::doctor
