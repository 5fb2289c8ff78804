#pragma once
// tests/support/colour_profiles.hpp - ICC profiles that are easy to reckon with, made with little CMS, and the parts of
// files that carry them.

#include <algorithm>
#include <array>
#include <vector>

#include <lcms2.h>

#include "made_files.hpp"

namespace strata_test {

inline Bytes saved(::cmsHPROFILE profile) {
    cmsUInt32Number size = 0;
    ::cmsSaveProfileToMem(profile, nullptr, &size);
    Bytes bytes(size);
    ::cmsSaveProfileToMem(profile, bytes.data(), &size);
    ::cmsCloseProfile(profile);
    return bytes;
}

/// sRGB with red and green exchanged: a pixel (r, g, b) shows what (g, r, b) does without it.
inline Bytes swapped_profile() {
    const cmsCIExyY white{0.3127, 0.3290, 1};
    const cmsCIExyYTRIPLE primaries{{0.30, 0.60, 1}, {0.64, 0.33, 1}, {0.15, 0.06, 1}};
    const std::array<cmsFloat64Number, 5> srgb{2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045};
    ::cmsToneCurve* const curve = ::cmsBuildParametricToneCurve(nullptr, 4, srgb.data());
    ::cmsToneCurve* const curves[3] = {curve, curve, curve};
    const ::cmsHPROFILE profile = ::cmsCreateRGBProfile(&white, &primaries, curves);
    ::cmsFreeToneCurve(curve);
    return saved(profile);
}
inline Bytes srgb_profile() { return saved(::cmsCreate_sRGBProfile()); }
/// Grey of gamma 1.8.
inline Bytes grey_profile() {
    const cmsCIExyY white{0.3457, 0.3585, 1};
    ::cmsToneCurve* const curve = ::cmsBuildGamma(nullptr, 1.8);
    const ::cmsHPROFILE profile = ::cmsCreateGrayProfile(&white, curve);
    ::cmsFreeToneCurve(curve);
    return saved(profile);
}

/// Inks of which black alone counts: the lightness is what it leaves.
inline Bytes black_ink_profile() {
    const ::cmsHPROFILE profile = ::cmsCreateProfilePlaceholder(nullptr);
    ::cmsSetProfileVersion(profile, 2.1);
    ::cmsSetDeviceClass(profile, cmsSigOutputClass);
    ::cmsSetColorSpace(profile, cmsSigCmykData);
    ::cmsSetPCS(profile, cmsSigLabData);
    ::cmsPipeline* const pipeline = ::cmsPipelineAlloc(nullptr, 4, 3);
    ::cmsStage* const table = ::cmsStageAllocCLut16bit(nullptr, 5, 4, 3, nullptr);
    ::cmsStageSampleCLut16bit(
        table,
        [](const cmsUInt16Number* inks, cmsUInt16Number* lab, void*) -> cmsInt32Number {
            const cmsCIELab colour{100.0 * (65535 - inks[3]) / 65535, 0, 0};
            ::cmsFloat2LabEncodedV2(lab, &colour);
            return TRUE;
        },
        nullptr, 0);
    ::cmsPipelineInsertStage(pipeline, cmsAT_BEGIN, table);
    ::cmsWriteTag(profile, cmsSigAToB0Tag, pipeline);
    ::cmsPipelineFree(pipeline);
    return saved(profile);
}

/// A profile as the segments of a JPEG, in so many parts.
inline std::vector<Bytes> profile_segments(const Bytes& profile, std::size_t parts) {
    std::vector<Bytes> segments;
    const std::size_t each = (profile.size() + parts - 1) / parts;
    for (std::size_t i = 0; i < parts; ++i) {
        const std::size_t begin = i * each;
        const std::size_t end = std::min(profile.size(), begin + each);
        segments.push_back(jpeg_segment(0xE2, joined({bytes_of({"ICC_PROFILE\0", 12}),
                                                      {static_cast<std::byte>(i + 1), static_cast<std::byte>(parts)},
                                                      Bytes(profile.begin() + static_cast<std::ptrdiff_t>(begin),
                                                            profile.begin() + static_cast<std::ptrdiff_t>(end))})));
    }
    return segments;
}
/// The same as a chunk of a PNG.
inline Bytes profile_chunk(const Bytes& profile) {
    return png_chunk("iCCP", joined({bytes_of({"name\0\0", 6}), zlib_packed(profile)}));
}

}  // namespace strata_test
