#pragma once
// strata/core/within.hpp - Within: counts that something is under way, whichever way it ends.

namespace strata::core {

class Within {
public:
    ///   depth  of calls that are under way, one inside of another; outlives this
    explicit Within(int& depth) noexcept : depth_{depth} { ++depth_; }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;
    ~Within() { --depth_; }

private:
    int& depth_;
};

}  // namespace strata::core
