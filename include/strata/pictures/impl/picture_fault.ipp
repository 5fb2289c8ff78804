#pragma once
// strata/pictures/impl/picture_fault.ipp - the words of a refusal.

#include <string>

#include <strata/core/inline.hpp>
#include <strata/pictures/picture_fault.hpp>

namespace strata::pictures {

namespace detail {

STRATA_INLINE void throw_fault(Errc kind, std::string_view source, std::string_view why) {
    const char* fix = "mend or remove the file";
    if (kind == Errc::picture_too_large) fix = "make the picture smaller, or remove it";
    if (kind == Errc::unsupported_picture) fix = "convert it to PNG, JPEG or WebP, or remove it";
    if (kind == Errc::picture_undecided) fix = "save it anew with another program, or free some memory and start again";
    throw Error{kind, std::string{source} + " cannot be decoded: " + std::string{why}, fix};
}

STRATA_INLINE void throw_bad_picture(std::string_view source, std::string_view why) {
    throw_fault(Errc::bad_picture, source, why);
}

STRATA_INLINE void throw_unsupported(std::string_view source, std::string_view what) {
    throw Error{Errc::unsupported_picture, std::string{source} + " is " + std::string{what},
                "convert it to PNG, JPEG or WebP, or remove it"};
}

}  // namespace detail

STRATA_INLINE void require_within(const DecodeLimits& limits, const PictureSize& claimed, std::string_view source) {
    if (claimed.width < 1 || claimed.height < 1) detail::throw_bad_picture(source, "it claims to have no pixels");
    if (claimed.width > limits.edge || claimed.height > limits.edge || claimed.width > limits.pixels / claimed.height)
        detail::throw_fault(Errc::picture_too_large, source,
                            "it claims " + std::to_string(claimed.width) + " x " + std::to_string(claimed.height) +
                                " pixels, more than is accepted");
}

STRATA_INLINE void require_file_within(const DecodeLimits& limits, std::uint64_t bytes, std::string_view source) {
    if (bytes > static_cast<std::uint64_t>(limits.file_bytes))
        detail::throw_fault(Errc::picture_too_large, source,
                            "it is a file of " + std::to_string(bytes >> 20) + " MiB, more than is accepted");
}

}  // namespace strata::pictures
