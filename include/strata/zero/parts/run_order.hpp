#pragma once
// strata/zero/parts/run_order.hpp - RunOrder: does a pass of a tier visit every element once, and in order?

#include <cstddef>
#include <cstdint>
#include <string>

#include <strata/core/error.hpp>

namespace strata::zero {

/// Follows one pass. Costs a few comparisons a run, and a tier that loses a run would train on without a word.
class RunOrder {
public:
    ///   whole_buckets  a run is a bucket, because every rank has all of it: ZeroStage<0>
    ///   first          the bucket that it begins with
    explicit RunOrder(bool whole_buckets, std::size_t first = 0) : whole_buckets_{whole_buckets}, bucket_{first} {}

    /// Throws wrong_call_order for a run that is not the next one.
    ///
    ///   numel  of this rank's part of the run's bucket; 0 if there is no such bucket
    template <class Run>
    void next(const Run& run, std::int64_t numel) {
        const std::int64_t end = run.begin + run.numel;
        if (run.bucket != bucket_ || run.begin != begin_ || run.numel <= 0 || end > numel) {
            refuse("gave " + text_of(run.bucket, run.begin));
        }
        if (run.last != (end == numel)) refuse("was wrong about what is the last of its bucket");
        if (whole_buckets_ && !run.last) refuse("gave a part of a bucket under ZeroStage<0>");
        bucket_ += run.last ? 1 : 0;
        begin_ = run.last ? 0 : end;
    }
    /// Throws wrong_call_order when runs of buckets before this one are missing, or there were more.
    void end(std::size_t buckets) const {
        if (bucket_ != buckets) refuse("ended");
    }

private:
    static std::string text_of(std::size_t bucket, std::int64_t begin) {
        return "element " + std::to_string(begin) + " of bucket " + std::to_string(bucket);
    }
    [[noreturn]] void refuse(const std::string& what) const {
        throw Error{
            Errc::wrong_call_order,
            "a pass of the tier that keeps the state " + what + " where " + text_of(bucket_, begin_) + " was due",
            "let run() of its class `state` visit every element once, in the order of buckets and elements, and "
            "try it with testing::tier_failures()"};
    }

    bool whole_buckets_;
    std::size_t bucket_;
    std::int64_t begin_ = 0;
};

}  // namespace strata::zero
