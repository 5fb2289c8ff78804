#pragma once
// strata/train/step_failure.hpp - StepFailure: what one rank meets alone, and all ranks end together because of it.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>

namespace strata::train {

/// Whether ranks no longer hear one another after an error, so that none can do anything together with the others.
[[nodiscard]] constexpr bool parts_ranks(Errc code) noexcept {
    return code == Errc::rank_failed || code == Errc::rank_mismatch || code == Errc::collective_timeout ||
           code == Errc::comm_busy;
}

/// An exception as an Error: its own, of a GPU with the rank whose it is, else step_failed with the first line of what it says.
///
///   who  what failed: "step 7", "step 7 on rank 1"
[[nodiscard]] Error as_error(const std::exception_ptr& failure, const std::string& who);

/// The first exception of a rank's part of a step, kept until all ranks can hear of it.
class StepFailure {
public:
    explicit StepFailure(std::string who) : who_{std::move(who)} {}

    /// Calls `work` unless something failed before, and keeps what it throws. What parts ranks goes through.
    template <std::invocable Work>
    void guard(Work&& work) {
        if (failure_) return;
        try {
            work();
        } catch (const Error& error) {
            if (parts_ranks(error.code())) throw;
            failure_ = std::current_exception();
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    explicit operator bool() const noexcept { return failure_ != nullptr; }
    [[nodiscard]] const std::exception_ptr& exception() const noexcept { return failure_; }

    /// The failure of the lowest rank that has one, on all ranks; nothing when there is none. Collective: one byte a rank
    /// while nothing fails. When ranks do not come together to hear it, throws this rank's own failure if it has one.
    template <comm::Communicator Comm>
    [[nodiscard]] std::optional<Error> shared(Comm& comm) const {
        try {
            const std::byte mine{failure_ ? std::uint8_t{1} : std::uint8_t{0}};
            std::vector<std::byte> all(static_cast<std::size_t>(comm.world()));
            comm.all_gather(std::span{&mine, 1}, all);
            if (std::find(all.begin(), all.end(), std::byte{1}) == all.end()) return std::nullopt;
            return told(comm);
        } catch (...) {
            if (failure_) std::rethrow_exception(failure_);
            throw;
        }
    }

    /// shared() where all ranks know already that one of them failed. Collective. A rank that is alone throws what it met.
    template <comm::Communicator Comm>
    [[nodiscard]] Error told(Comm& comm) const {
        if (failure_ && comm.world() == 1) std::rethrow_exception(failure_);
        std::optional<Error> error;
        std::string said;
        if (failure_) {
            error = as_error(failure_, who_);
            said = std::to_string(static_cast<unsigned>(error->code())) + '\0' + error->problem() + '\0' + error->fix();
        }
        for (const std::string& text : comm.all_gather_varied(said)) {
            if (text.empty()) continue;
            const auto first = text.find('\0'), second = text.find('\0', first + 1);
            return Error{static_cast<Errc>(std::stoul(text.substr(0, first))),
                         text.substr(first + 1, second - first - 1), text.substr(second + 1)};
        }
        return Error{Errc::rank_mismatch, "ranks disagree on whether " + who_ + " failed", "report this"};
    }

    /// Throws what shared() or told() has given. On a rank that failed with its own exception nested, which says more: its type, and what a program
    /// of one's own put into it. Local.
    [[noreturn]] void throw_as(const Error& error) const {
        if (!failure_) throw error;
        try {
            std::rethrow_exception(failure_);
        } catch (...) {
            std::throw_with_nested(error);
        }
    }

private:
    std::string who_;
    std::exception_ptr failure_;
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/step_failure.ipp>
#endif
