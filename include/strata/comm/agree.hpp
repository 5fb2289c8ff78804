#pragma once
// strata/comm/agree.hpp - work that may fail on one rank only, reported on all of them.

#include <concepts>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/communicator.hpp>
#include <strata/core/error.hpp>

namespace strata::comm {

namespace detail {

/// What `work` throws on this rank, as text for the others; empty when it throws nothing.
template <std::invocable Work>
std::string failure_of(int rank, Work&& work) {
    std::optional<Error> mine;
    try {
        work();
    } catch (const Error& error) {
        mine = error;
    } catch (const std::filesystem::filesystem_error& error) {
        mine = Error{Errc::io_failed, error.what(), "check that the disk has room and the folder's permissions"};
    } catch (const std::exception& error) {
        const std::string why = error.what();
        mine = Error{
            Errc::rank_failed,
            "rank " + std::to_string(rank) + " failed: " + why.substr(0, why.find('\n')),  // libtorch appends a trace
            "mend that cause; the other ranks stopped because of it"};
    } catch (...) {
        mine = Error{Errc::rank_failed,
                     "rank " + std::to_string(rank) + " failed with an exception that is no std::exception",
                     "let it throw what derives from std::exception, so that its words can be shown"};
    }
    constexpr char separator = '\0';
    if (!mine) return {};
    return std::to_string(static_cast<unsigned>(mine->code())) + separator + mine->problem() + separator + mine->fix();
}

/// Throws the first failure there is among those of all ranks, in rank order.
inline void throw_first(const std::vector<std::string>& failures) {
    constexpr char separator = '\0';
    for (const std::string& failure : failures) {
        if (failure.empty()) continue;
        const auto first = failure.find(separator);
        const auto second = failure.find(separator, first + 1);
        throw Error{static_cast<Errc>(std::stoul(failure.substr(0, first))),
                    failure.substr(first + 1, second - first - 1), failure.substr(second + 1)};
    }
}

}  // namespace detail

/// Calls `work` on every rank; if it threw anywhere, throws the Error of the lowest such rank on all ranks.
/// A rank that fails alone would otherwise leave the others waiting in their next collective.
///
///   work  a local function; it must not itself be collective, or a rank that throws early hangs the rest
/// Collective. An exception that is no Error becomes one: io_failed from the file system, else rank_failed.
template <Communicator Comm, std::invocable Work>
void agree(Comm& comm, Work&& work) {
    detail::throw_first(comm.all_gather_varied(detail::failure_of(comm.rank(), std::forward<Work>(work))));
}

}  // namespace strata::comm
