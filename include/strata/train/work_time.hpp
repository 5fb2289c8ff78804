#pragma once
// strata/train/work_time.hpp - WorkTime: what this rank's passes and updates take, without the time in which it stands still for others.

#include <concepts>
#include <functional>
#include <utility>

#include <strata/comm/wait_listener.hpp>

namespace strata::train {

/// Of a trainer that computes on the CPU: work that is queued on a device takes its time elsewhere. Local.
class WorkTime final : comm::WaitListener {
public:
    ///   seconds  on the rank's clock
    explicit WorkTime(std::function<double()> seconds) : seconds_{std::move(seconds)} {}
    WorkTime(const WorkTime&) = delete;
    WorkTime& operator=(const WorkTime&) = delete;

    /// Calls `work` and returns what it returns; it may ask take().
    template <std::invocable Work>
    decltype(auto) measure(Work&& work) {
        const Measuring measuring{*this};
        return std::forward<Work>(work)();
    }

    /// Seconds that were measured since it was asked last.
    [[nodiscard]] double take() {
        if (works_) count();
        return std::exchange(sum_, 0);
    }

private:
    class Measuring {
    public:
        explicit Measuring(WorkTime& of) : of_{of}, listening_{of} { of_.wait_ends(); }
        ~Measuring() {
            if (of_.works_) of_.wait_begins();
        }
        Measuring(const Measuring&) = delete;
        Measuring& operator=(const Measuring&) = delete;

    private:
        WorkTime& of_;
        comm::ListenToWaits listening_;
    };

    void count() {
        const double now = seconds_();
        sum_ += now - since_;
        since_ = now;
    }
    void wait_begins() noexcept override {
        count();
        works_ = false;
    }
    void wait_ends() noexcept override {
        since_ = seconds_();
        works_ = true;
    }

    std::function<double()> seconds_;
    double sum_ = 0;
    double since_ = 0;
    bool works_ = false;
};

}  // namespace strata::train
