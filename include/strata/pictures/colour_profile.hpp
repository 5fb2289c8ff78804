#pragma once
// strata/pictures/colour_profile.hpp - the colours of a picture with an ICC profile, as sRGB.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <strata/pictures/header_fields.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

namespace detail {
class ColourTransform;
}

/// What a decoder's samples are to the profile of their picture.
enum class SampleKind : std::uint8_t {
    grey,           ///< of which a decoder made RGB of three equal samples
    colours,        ///< red, green, blue
    inks,           ///< cyan, magenta, yellow, black; 255 is all of it
    inverted_inks,  ///< the same; 0 is all of it, as Adobe stores them in JPEG files
};
[[nodiscard]] SampleKind sample_kind(const ImageHeader& header) noexcept;

/// The way of a picture's samples to sRGB: through its profile with little CMS, in 8 bits, with perceptual intent and
/// without black point compensation, as Pillow's ImageCms does by default. Alpha is left alone.
///
/// A profile that gives sRGB anyway, each of some 200 colours within 1 of itself, does nothing and costs nothing. So
/// does one that is damaged, cut short, or not for such samples; note() says so then. Profiles that were met lately are
/// kept, so that thousands of pictures of one camera cost one; any number of threads may work at once.
class ToSrgb {
public:
    /// Leaves samples as they are.
    ToSrgb() = default;
    /// By the profile of a file. Memory while it works: less than profile_bytes.
    ToSrgb(std::span<const std::byte> file, const ImageHeader& header);

    /// False: there is nothing to do.
    explicit operator bool() const noexcept { return transform_ != nullptr; }
    /// "its colour profile is ...": why a profile is left out of account; else empty.
    [[nodiscard]] const std::string& note() const noexcept { return note_; }

    /// A picture of grey or colours, in place.
    void apply(Picture& picture) const;
    /// A row of inks, 4 bytes a pixel, to RGB. Without a profile by (255 - ink) * (255 - black) / 255, as Pillow.
    void inks_to_rgb(const std::uint8_t* inks, std::uint8_t* rgb, std::size_t pixels, bool inverted) const;

    /// Bytes of memory that a profile may take beside a picture.
    static constexpr std::int64_t profile_bytes = 48 << 20;

private:
    std::shared_ptr<const detail::ColourTransform> transform_;
    std::string note_;
};

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/colour_profile.ipp>
#endif
