#pragma once
// strata/pictures/impl/colour_profile.ipp - little CMS, and the profiles that were met lately.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <vector>

#include <lcms2.h>
#include <zlib.h>

#include <strata/core/inline.hpp>
#include <strata/pictures/colour_profile.hpp>
#include <strata/pictures/detail/header_bytes.hpp>

namespace strata::pictures {

namespace detail {

inline constexpr std::size_t most_profile_bytes = std::size_t{8} << 20;

// cmsHPROFILE and cmsHTRANSFORM are void*.
struct CloseProfile {
    void operator()(void* profile) const noexcept { ::cmsCloseProfile(profile); }
};
struct DeleteTransform {
    void operator()(void* transform) const noexcept { ::cmsDeleteTransform(transform); }
};
using Profile = std::unique_ptr<void, CloseProfile>;
using Transform = std::unique_ptr<void, DeleteTransform>;

/// A profile, made ready for 8-bit samples. With `rgb` null it does nothing.
class ColourTransform {
public:
    Transform rgb;   ///< RGB or grey of three samples to RGB; or inks to RGB
    Transform rgba;  ///< the same of pixels with alpha, which is left alone
};

inline void* new_transform(const Profile& from, SampleKind kind, int channels) {
    const Profile srgb{::cmsCreate_sRGBProfile()};
    constexpr cmsUInt32Number one_byte = BYTES_SH(1);
    cmsUInt32Number in = 0;
    switch (kind) {
        case SampleKind::grey:  // the first of the equal samples, beside the others
            in = COLORSPACE_SH(PT_GRAY) | CHANNELS_SH(1) | EXTRA_SH(static_cast<cmsUInt32Number>(channels) - 1U) |
                 one_byte;
            break;
        case SampleKind::colours:
            in = channels == 4 ? TYPE_RGBA_8 : TYPE_RGB_8;
            break;
        case SampleKind::inks:
            in = TYPE_CMYK_8;
            break;
        case SampleKind::inverted_inks:
            in = TYPE_CMYK_8_REV;
            break;
    }
    const cmsUInt32Number out = channels == 4 ? TYPE_RGBA_8 : TYPE_RGB_8;
    // Without a memory of the last colour a transform may be used by several threads.
    return ::cmsCreateTransform(from.get(), in, srgb.get(), out, INTENT_PERCEPTUAL, cmsFLAGS_NOCACHE);
}

/// True when a transform of RGB changes no colour by more than 1.
inline bool changes_nothing(void* transform) {
    std::vector<std::uint8_t> before;
    constexpr int steps = 6;
    constexpr int greys = 32;
    for (int i = 0; i < steps * steps * steps; ++i)
        for (const int digit : {i % steps, i / steps % steps, i / steps / steps})
            before.push_back(static_cast<std::uint8_t>(digit * 255 / (steps - 1)));
    for (int i = 0; i < greys; ++i) before.insert(before.end(), 3, static_cast<std::uint8_t>(i * 255 / (greys - 1)));
    std::vector<std::uint8_t> after(before.size());
    ::cmsDoTransform(transform, before.data(), after.data(), static_cast<cmsUInt32Number>(before.size() / 3));
    return std::equal(before.begin(), before.end(), after.begin(),
                      [](std::uint8_t a, std::uint8_t b) { return std::abs(int{a} - int{b}) <= 1; });
}

/// nullptr: the profile cannot be used for such samples.
inline std::shared_ptr<const ColourTransform> transform_of(Bytes bytes, SampleKind kind) {
    constexpr std::size_t header_bytes = 128;
    if (bytes.size() < header_bytes || big_endian(bytes, 0, 4) > bytes.size()) return nullptr;  // cut short
    const Profile profile{::cmsOpenProfileFromMem(bytes.data(), static_cast<cmsUInt32Number>(bytes.size()))};
    if (!profile) return nullptr;
    const bool inks = kind == SampleKind::inks || kind == SampleKind::inverted_inks;
    const cmsColorSpaceSignature wanted = inks                       ? cmsSigCmykData
                                          : kind == SampleKind::grey ? cmsSigGrayData
                                                                     : cmsSigRgbData;
    if (::cmsGetColorSpace(profile.get()) != wanted) return nullptr;
    auto made = std::make_shared<ColourTransform>();
    made->rgb.reset(new_transform(profile, kind, 3));
    if (!made->rgb) return nullptr;
    if (kind == SampleKind::colours && changes_nothing(made->rgb.get())) return std::make_shared<ColourTransform>();
    if (!inks) {
        made->rgba.reset(new_transform(profile, kind, 4));
        if (!made->rgba) return nullptr;
    }
    return made;
}

/// transform_of() the profiles that were met lately.
class LateProfiles {
public:
    [[nodiscard]] std::shared_ptr<const ColourTransform> of(std::vector<std::byte> bytes, SampleKind kind) {
        const auto is_it = [&](const Entry& entry) { return entry.kind == kind && entry.bytes == bytes; };
        {
            const std::lock_guard lock{mutex_};
            const auto found = std::find_if(entries_.begin(), entries_.end(), is_it);
            if (found != entries_.end()) return found->transform;
        }
        std::shared_ptr<const ColourTransform> made = transform_of(bytes, kind);
        constexpr std::size_t most_entries = 8;
        constexpr std::size_t most_bytes = std::size_t{1} << 20;
        if (bytes.size() > most_bytes) return made;
        const std::lock_guard lock{mutex_};
        entries_.push_front({std::move(bytes), kind, made});
        if (entries_.size() > most_entries) entries_.pop_back();
        return made;
    }

private:
    struct Entry {
        std::vector<std::byte> bytes;
        SampleKind kind;
        std::shared_ptr<const ColourTransform> transform;
    };
    std::mutex mutex_;
    std::deque<Entry> entries_;
};

/// The profile out of an iCCP chunk: a name, 0, the method, and a zlib stream. Empty: it is damaged.
inline std::vector<std::byte> unpacked_profile(Bytes chunk) {
    const auto end_of_name = std::find(chunk.begin(), chunk.end(), std::byte{0});
    if (chunk.end() - end_of_name < 2) return {};
    const Bytes packed = chunk.subspan(static_cast<std::size_t>(end_of_name - chunk.begin()) + 2);
    ::z_stream stream{};
    if (::inflateInit(&stream) != Z_OK) return {};
    std::vector<std::byte> profile;
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));  // zlib only reads it
    stream.avail_in = static_cast<uInt>(packed.size());
    int status = Z_OK;
    while (status == Z_OK && profile.size() < most_profile_bytes) {
        const std::size_t before = profile.size();
        profile.resize(std::min(std::max<std::size_t>(before * 2, 16384), most_profile_bytes));
        stream.next_out = reinterpret_cast<Bytef*>(profile.data() + before);
        stream.avail_out = static_cast<uInt>(profile.size() - before);
        status = ::inflate(&stream, Z_NO_FLUSH);
    }
    profile.resize(status == Z_STREAM_END ? stream.total_out : 0);
    ::inflateEnd(&stream);
    return profile;
}

/// The profile of a file. Empty: it is damaged, or too large.
inline std::vector<std::byte> profile_of(Bytes file, const ProfilePlace& place) {
    std::vector<std::byte> profile;
    if (!place.complete) return profile;
    for (const ProfilePlace::Part& part : place.parts) {
        if (part.offset > file.size() || part.bytes > file.size() - part.offset ||
            profile.size() + part.bytes > most_profile_bytes)
            return {};
        const Bytes bytes = file.subspan(static_cast<std::size_t>(part.offset), static_cast<std::size_t>(part.bytes));
        if (place.packed) return unpacked_profile(bytes);
        profile.insert(profile.end(), bytes.begin(), bytes.end());
    }
    return profile;
}

}  // namespace detail

STRATA_INLINE SampleKind sample_kind(const ImageHeader& header) noexcept {
    if (header.format == ImageFormat::jpeg && header.channels == 4) return SampleKind::inverted_inks;
    const TiffLayout* const tiff = std::get_if<TiffLayout>(&header.layout);
    if (tiff != nullptr && tiff->inks) return SampleKind::inks;
    return header.channels <= 2 ? SampleKind::grey : SampleKind::colours;
}

STRATA_INLINE ToSrgb::ToSrgb(std::span<const std::byte> file, const ImageHeader& header) {
    if (header.profile.parts.empty()) return;
    static detail::LateProfiles late;
    std::vector<std::byte> profile = detail::profile_of(file, header.profile);
    if (!profile.empty()) transform_ = late.of(std::move(profile), sample_kind(header));
    if (transform_ == nullptr)
        note_ = "its colour profile is damaged, or not for its kind of pixels; its colours are taken as sRGB";
    else if (!transform_->rgb)
        transform_ = nullptr;
}

STRATA_INLINE void ToSrgb::apply(Picture& picture) const {
    if (!transform_) return;
    void* const transform = (picture.channels == 4 ? transform_->rgba : transform_->rgb).get();
    const auto stride = static_cast<std::size_t>(picture.width * picture.channels);
    for (std::int64_t y = 0; y < picture.height; ++y) {
        std::uint8_t* const row = picture.pixels.data() + static_cast<std::size_t>(y) * stride;
        ::cmsDoTransform(transform, row, row, static_cast<cmsUInt32Number>(picture.width));
    }
}

STRATA_INLINE void ToSrgb::inks_to_rgb(const std::uint8_t* inks, std::uint8_t* rgb, std::size_t pixels,
                                       bool inverted) const {
    if (transform_) {
        ::cmsDoTransform(transform_->rgb.get(), inks, rgb, static_cast<cmsUInt32Number>(pixels));
        return;
    }
    // A colour is what two inks together leave: round(left * left of black / 255).
    const unsigned turn = inverted ? 0 : 255;
    for (std::size_t x = 0; x < pixels; ++x, inks += 4, rgb += 3)
        for (std::size_t c = 0; c < 3; ++c)
            rgb[c] = static_cast<std::uint8_t>(((inks[c] ^ turn) * (inks[3] ^ turn) * 2 + 255) / 510);
}

}  // namespace strata::pictures
