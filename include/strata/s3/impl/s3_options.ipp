#pragma once
// strata/s3/impl/s3_options.ipp - a bucket's traffic in one line.

#include <strata/core/amounts.hpp>
#include <strata/core/inline.hpp>
#include <strata/s3/s3_options.hpp>

namespace strata::s3 {

STRATA_INLINE std::string summary(const S3Traffic& traffic) {
    using core::in_megabytes, core::with_commas;
    std::string text = with_commas(traffic.list) + " LIST, " + with_commas(traffic.head) + " HEAD, " +
                       with_commas(traffic.get) + " GET, " + with_commas(traffic.put) + " PUT, " +
                       with_commas(traffic.remove) + " DELETE";
    if (traffic.retries > 0) text += " (" + with_commas(traffic.retries) + " of them again after a failure)";
    return text + ", " + in_megabytes(traffic.bytes_in) + " in, " + in_megabytes(traffic.bytes_out) + " out";
}

}  // namespace strata::s3
