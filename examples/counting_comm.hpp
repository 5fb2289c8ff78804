#pragma once
// examples/counting_comm.hpp - a communicator of one's own: the one that the build has, and what a rank hands over is
// counted.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/comm/default_comm.hpp>

namespace my {

/// Bytes that this rank gave to each kind of collective. The exchange itself is another communicator's.
class CountingComm {
public:
    //! [calls]
    int rank() const { return ranks_.rank(); }
    int world() const { return ranks_.world(); }
    void barrier() { ranks_.barrier(); }
    void broadcast(std::span<std::byte> bytes, int root) {
        if (rank() == root) broadcast_bytes += bytes.size();
        ranks_.broadcast(bytes, root);
    }
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
        gathered_bytes += mine.size();
        ranks_.all_gather(mine, all);
    }
    //! [calls]
    std::vector<std::string> all_gather_varied(std::string_view mine) {
        gathered_bytes += mine.size();
        return ranks_.all_gather_varied(mine);
    }
    void reduce_scatter(std::span<const float> all, std::span<float> mine) { reduce(all, mine); }
    void reduce_scatter(std::span<const strata::bf16> all, std::span<strata::bf16> mine) { reduce(all, mine); }
    void reduce_scatter(std::span<const strata::bf16> all, std::span<float> mine) { reduce(all, mine); }
    void all_reduce_sum(std::span<double> values) { ranks_.all_reduce_sum(values); }
    [[noreturn]] void abort(int status) noexcept { ranks_.abort(status); }

    std::uint64_t broadcast_bytes = 0, gathered_bytes = 0, reduced_bytes = 0;

private:
    template <class In, class Out>
    void reduce(std::span<const In> all, std::span<Out> mine) {
        reduced_bytes += all.size_bytes();
        ranks_.reduce_scatter(all, mine);
    }
    strata::comm::DefaultComm ranks_;
};
static_assert(strata::comm::Communicator<CountingComm>);

}  // namespace my
