#pragma once
// strata/comm/impl/agree.ipp - what one rank threw, as text for the others.

#include <exception>
#include <filesystem>
#include <optional>

#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/core/text.hpp>

namespace strata::comm::detail {

STRATA_INLINE std::string failure_of(int rank, core::FunctionRef<void()> work) {
    std::optional<Error> mine;
    try {
        work();
    } catch (const Error& error) {
        mine = error;
    } catch (const std::filesystem::filesystem_error& error) {
        mine = Error{Errc::io_failed, error.what(), "check that the disk has room and the folder's permissions"};
    } catch (const std::exception& error) {
        mine = Error{Errc::rank_failed,
                     "rank " + std::to_string(rank) + " failed: " + std::string{core::first_line(error.what())},
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

STRATA_INLINE void throw_first(const std::vector<std::string>& failures) {
    constexpr char separator = '\0';
    for (const std::string& failure : failures) {
        if (failure.empty()) continue;
        const auto first = failure.find(separator);
        const auto second = failure.find(separator, first + 1);
        throw Error{static_cast<Errc>(std::stoul(failure.substr(0, first))),
                    failure.substr(first + 1, second - first - 1), failure.substr(second + 1)};
    }
}

}  // namespace strata::comm::detail
