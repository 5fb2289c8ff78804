#pragma once
// strata/datasets/picture_fault.hpp - PictureFault: why a picture file cannot be used.

#include <string>

#include <strata/datasets/report.hpp>

namespace strata::datasets {

/// Why a picture file cannot be used, whatever the settings are.
struct PictureFault {
    SkipReason reason = SkipReason::unreadable;
    std::string detail;
    bool damaged = false;  ///< the bytes are wrong, and not a limit, the memory or the way to the file

    friend bool operator==(const PictureFault&, const PictureFault&) = default;
};

}  // namespace strata::datasets
