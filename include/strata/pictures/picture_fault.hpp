#pragma once
// strata/pictures/picture_fault.hpp - why a picture cannot be used, as error numbers that programs tell apart.

#include <cstdint>
#include <string_view>

#include <strata/core/error.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// True for the numbers that say something of a picture file, and not of the way to it:
///   bad_picture          its bytes are wrong, or it ends early
///   picture_too_large    it claims more than DecodeLimits allow, or than a decoder works off
///   unsupported_picture  a format, or a kind of one, that is not decoded
///   no_picture_library   a format whose library this program was built without
///   picture_undecided    a decoder gave up, and not surely over the file: memory, a complaint without a meaning
[[nodiscard]] constexpr bool is_picture_fault(Errc code) noexcept {
    switch (code) {
        case Errc::bad_picture:
        case Errc::picture_too_large:
        case Errc::unsupported_picture:
        case Errc::no_picture_library:
        case Errc::picture_undecided:
            return true;
        default:
            return false;
    }
}

/// True when the bytes of the file are wrong: what `delete_problematic_images` may delete, and nothing else.
[[nodiscard]] constexpr bool is_damage(Errc code) noexcept { return code == Errc::bad_picture; }

/// Throws Errc::picture_too_large when a picture of this size is beyond the limits, Errc::bad_picture when it has no
/// pixels.
void require_within(const DecodeLimits& limits, const PictureSize& claimed, std::string_view source);

/// Throws Errc::picture_too_large when a file of so many bytes is beyond the limits.
void require_file_within(const DecodeLimits& limits, std::uint64_t bytes, std::string_view source);

namespace detail {

/// Throws one of the numbers above but no_picture_library: "<source> cannot be decoded: <why>", with that number's fix.
[[noreturn]] void throw_fault(Errc kind, std::string_view source, std::string_view why);

/// Throws Errc::bad_picture.
[[noreturn]] void throw_bad_picture(std::string_view source, std::string_view why);

/// Throws Errc::unsupported_picture: "<source> is <what>".
[[noreturn]] void throw_unsupported(std::string_view source, std::string_view what);

}  // namespace detail

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/picture_fault.ipp>
#endif
