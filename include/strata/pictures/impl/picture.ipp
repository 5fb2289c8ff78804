#pragma once
// strata/pictures/impl/picture.ipp - the words of a refusal.

#include <string>

#include <strata/core/error.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures::detail {

STRATA_INLINE void throw_bad_picture(std::string_view source, std::string_view why) {
    throw Error{Errc::bad_picture, std::string{source} + " cannot be decoded: " + std::string{why},
                "mend or remove the file"};
}

STRATA_INLINE void require_within(const DecodeLimits& limits, const PictureSize& claimed, std::string_view source) {
    if (claimed.width < 1 || claimed.height < 1) throw_bad_picture(source, "it claims to have no pixels");
    if (claimed.width > limits.edge || claimed.height > limits.edge || claimed.width > limits.pixels / claimed.height)
        throw_bad_picture(source, "it claims " + std::to_string(claimed.width) + " x " +
                                      std::to_string(claimed.height) + " pixels, more than is accepted");
}

}  // namespace strata::pictures::detail

namespace strata::pictures {

STRATA_INLINE void require_file_within(const DecodeLimits& limits, std::uint64_t bytes, std::string_view source) {
    if (bytes > static_cast<std::uint64_t>(limits.file_bytes))
        detail::throw_bad_picture(source,
                                  "it is a file of " + std::to_string(bytes >> 20) + " MiB, more than is accepted");
}

}  // namespace strata::pictures
