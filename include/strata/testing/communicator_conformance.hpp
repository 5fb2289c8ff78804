#pragma once
// strata/testing/communicator_conformance.hpp - does a communicator do what comm::Communicator promises?

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include <strata/comm/communicator.hpp>
#include <strata/core/bf16.hpp>
#include <strata/core/elements.hpp>

namespace strata::testing {
namespace detail {

/// Each rank knows what every rank gives, so that it can tell by itself what it must receive.
template <comm::Communicator Comm>
class CommunicatorLaws {
public:
    explicit CommunicatorLaws(Comm& comm) : comm_{comm}, rank_{comm.rank()}, world_{comm.world()} {}

    std::vector<std::string> run() && {
        law("ranks are numbered from 0", [&] { return rank_ >= 0 && rank_ < world_; });
        if (!failures_.empty()) return std::move(failures_);
        for (const std::size_t size : sizes) {
            const std::string of = " of " + std::to_string(size) + " elements";
            law("broadcast" + of, [&] { return broadcasts(size); });
            law("all_gather" + of, [&] { return gathers(size); });
            law("all_gather in place" + of, [&] { return gathers_in_place(size); });
            law("reduce_scatter of fp32" + of, [&] { return reduces<float, float>(size, false); });
            law("reduce_scatter of fp32 in place" + of, [&] { return reduces<float, float>(size, true); });
            law("reduce_scatter of bf16" + of, [&] { return reduces<bf16, bf16>(size, false); });
            law("reduce_scatter of bf16 in place" + of, [&] { return reduces<bf16, bf16>(size, true); });
            law("reduce_scatter of bf16 into fp32" + of, [&] { return reduces<bf16, float>(size, false); });
            law("all_reduce_sum" + of, [&] { return sums(size); });
        }
        law("all_gather_varied", [&] { return gathers_texts(); });
        law("collectives in a row keep apart", [&] { return keep_apart(); });
        law("barrier waits for every rank", [&] { return waits(); });
        law("rank() and world() stay", [&] { return comm_.rank() == rank_ && comm_.world() == world_; });
        return std::move(failures_);
    }

private:
    static constexpr std::size_t sizes[] = {0, 1, 7, 1000, (std::size_t{1} << 18) + 3};

    template <class Holds>
    void law(const std::string& promise, Holds&& holds) {
        try {
            if (!holds()) failures_.push_back(promise + ": others than were due, on rank " + std::to_string(rank_));
        } catch (const std::exception& error) {
            failures_.push_back(promise + ": threw on rank " + std::to_string(rank_) + ": " + error.what());
        }
    }

    static std::byte byte_of(int rank, std::size_t i) {
        return static_cast<std::byte>((i * 31 + static_cast<std::size_t>(rank) * 101 + 7) % 251);
    }
    static std::vector<std::byte> bytes_of(int rank, std::size_t size) {
        std::vector<std::byte> bytes(size);
        for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_of(rank, i);
        return bytes;
    }
    /// Numbers of which sums have other bits in another order, in three ranks and more.
    static float value_of(int rank, std::size_t i) {
        const auto turn = static_cast<unsigned>((i + static_cast<std::size_t>(rank) * 7) % 5);
        const float sign = (i + static_cast<std::size_t>(rank)) % 2 == 0 ? 1.0F : -1.0F;
        return sign * (1.0F + 0.37F * static_cast<float>(rank) + static_cast<float>(i % 97)) *
               (turn == 0   ? 65536.0F
                : turn == 1 ? 1e-3F
                            : 1.0F);
    }

    bool broadcasts(std::size_t size) {
        for (int root = 0; root < world_; ++root) {
            std::vector<std::byte> bytes = bytes_of(rank_, size);
            comm_.broadcast(bytes, root);
            if (bytes != bytes_of(root, size)) return false;
        }
        return true;
    }
    std::vector<std::byte> everyones(std::size_t size) const {
        std::vector<std::byte> all;
        for (int rank = 0; rank < world_; ++rank) {
            const auto part = bytes_of(rank, size);
            all.insert(all.end(), part.begin(), part.end());
        }
        return all;
    }
    bool gathers(std::size_t size) {
        const auto mine = bytes_of(rank_, size);
        std::vector<std::byte> all(size * static_cast<std::size_t>(world_));
        comm_.all_gather(mine, all);
        return all == everyones(size) && mine == bytes_of(rank_, size);
    }
    bool gathers_in_place(std::size_t size) {
        std::vector<std::byte> all(size * static_cast<std::size_t>(world_));
        const auto mine = std::span{all}.subspan(size * static_cast<std::size_t>(rank_), size);
        std::ranges::copy(bytes_of(rank_, size), mine.begin());
        comm_.all_gather(mine, all);
        return all == everyones(size);
    }

    /// The sum is formed in fp32, in rank order, and rounded once; other ranks' parts stay as they were.
    template <class In, class Out>
    bool reduces(std::size_t size, bool in_place) {
        std::vector<In> all(size * static_cast<std::size_t>(world_));
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = to_element<In>(value_of(rank_, i));
        const std::vector<In> given = all;
        const std::size_t begin = size * static_cast<std::size_t>(rank_);
        std::vector<Out> apart(in_place ? 0 : size);
        std::span<Out> mine = apart;
        if constexpr (std::same_as<In, Out>) {
            if (in_place) mine = std::span{all}.subspan(begin, size);
        }
        comm_.reduce_scatter(std::span<const In>{all}, mine);
        for (std::size_t i = 0; i < size; ++i) {
            float sum = to_float(to_element<In>(value_of(0, begin + i)));
            for (int rank = 1; rank < world_; ++rank) sum += to_float(to_element<In>(value_of(rank, begin + i)));
            if (std::bit_cast<std::uint32_t>(to_float(mine[i])) !=
                std::bit_cast<std::uint32_t>(to_float(to_element<Out>(sum))))
                return false;
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            const bool is_mine = in_place && i >= begin && i < begin + size;
            if (!is_mine && to_float(all[i]) != to_float(given[i])) return false;
        }
        return true;
    }

    bool sums(std::size_t size) {
        std::vector<double> values(size);
        for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<double>(value_of(rank_, i)) / 3;
        comm_.all_reduce_sum(values);
        for (std::size_t i = 0; i < size; ++i) {
            double sum = static_cast<double>(value_of(0, i)) / 3;
            for (int rank = 1; rank < world_; ++rank) sum += static_cast<double>(value_of(rank, i)) / 3;
            if (values[i] != sum) return false;
        }
        return true;
    }

    static std::string text_of(int rank) {
        if (rank % 3 == 1) return {};
        std::string text(static_cast<std::size_t>(rank) * 1000 + 5, static_cast<char>('a' + rank % 26));
        text[2] = '\0';
        return text;
    }
    bool gathers_texts() {
        std::vector<std::string> expected;
        for (int rank = 0; rank < world_; ++rank) expected.push_back(text_of(rank));
        return comm_.all_gather_varied(text_of(rank_)) == expected &&
               comm_.all_gather_varied("") == std::vector<std::string>(static_cast<std::size_t>(world_));
    }

    /// Small ones behind one another, so that a rank may be one ahead.
    bool keep_apart() {
        bool right = true;
        std::vector<std::int32_t> all(static_cast<std::size_t>(world_));
        for (std::int32_t turn = 0; turn < 200; ++turn) {
            const std::int32_t mine = turn * 1000 + rank_;
            comm_.all_gather(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}));
            for (int rank = 0; rank < world_; ++rank)
                right = right && all[static_cast<std::size_t>(rank)] == turn * 1000 + rank;
            double sum = turn;
            comm_.all_reduce_sum(std::span{&sum, 1});
            right = right && sum == static_cast<double>(turn) * world_;
            std::int32_t told = rank_ == turn % world_ ? turn : -1;
            comm_.broadcast(std::as_writable_bytes(std::span{&told, 1}), turn % world_);
            right = right && told == turn;
        }
        return right;
    }

    /// No rank leaves before the last one has come. Ranks of several hosts have several clocks: not looked at then.
    bool waits() {
        const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
        char host[256] = {};
        if (::gethostname(host, sizeof host - 1) != 0) return true;
        const auto hosts = comm_.all_gather_varied(host);
        if (std::ranges::count(hosts, hosts.front()) != world_) return true;
        ::usleep(static_cast<unsigned>(rank_ % 4) * 5000);
        std::int64_t came = now();
        comm_.barrier();
        std::int64_t left = now();
        const auto first_and_last = [&](std::int64_t mine) {
            std::vector<std::int64_t> all(static_cast<std::size_t>(world_));
            comm_.all_gather(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}));
            return std::pair{*std::ranges::min_element(all), *std::ranges::max_element(all)};
        };
        return first_and_last(came).second <= first_and_last(left).first;
    }

    Comm& comm_;
    int rank_;
    int world_;
    std::vector<std::string> failures_;
};

}  // namespace detail

/// What a communicator does otherwise than comm::Communicator promises, a sentence each; empty if it conforms. Spans
/// are host memory. Needs no test framework: `assert(strata::testing::communicator_failures(comm).empty());`
///
/// abort() is not tried, and of failures only that they are exceptions: they are for a test of one's own.
/// Collective. Each rank returns what it met itself.
template <comm::Communicator Comm>
[[nodiscard]] std::vector<std::string> communicator_failures(Comm& comm) {
    static_assert(!comm::takes_device_memory_v<Comm>, "give it host_of(comm): this kit's bytes are in host memory");
    return detail::CommunicatorLaws<Comm>{comm}.run();
}

}  // namespace strata::testing
