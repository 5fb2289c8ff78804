#pragma once
// strata/pictures/impl/webp.ipp - libwebp, and its demuxer for animations.

#include <memory>
#include <string>

#include <webp/decode.h>
#include <webp/demux.h>

#include <strata/core/inline.hpp>
#include <strata/pictures/picture_fault.hpp>
#include <strata/pictures/webp.hpp>

namespace strata::pictures {

namespace detail {

[[noreturn]] inline void throw_webp_fault(::VP8StatusCode status, std::string_view source) {
    switch (status) {
        case VP8_STATUS_OUT_OF_MEMORY:  // libwebp 1.3 and later say so of some damaged alpha planes as well
            throw_fault(Errc::picture_undecided, source, "its alpha plane is damaged, or libwebp ran out of memory");
        case VP8_STATUS_UNSUPPORTED_FEATURE:
            throw_fault(Errc::unsupported_picture, source, "it uses something that libwebp does not know");
        case VP8_STATUS_SUSPENDED:
        case VP8_STATUS_NOT_ENOUGH_DATA:
            throw_bad_picture(source, "the file ends too early");
        case VP8_STATUS_BITSTREAM_ERROR:
            throw_bad_picture(source, "it is damaged");
        default:
            throw_fault(Errc::picture_undecided, source, "libwebp was used wrongly");
    }
}

/// The features of a WebP file or frame, within the limits.
inline ::WebPBitstreamFeatures webp_features(std::span<const std::uint8_t> bytes, std::string_view source,
                                             const DecodeLimits& limits) {
    ::WebPBitstreamFeatures features;
    if (const auto status = ::WebPGetFeatures(bytes.data(), bytes.size(), &features); status != VP8_STATUS_OK)
        throw_webp_fault(status, source);
    require_within(limits, {features.width, features.height}, source);
    return features;
}

/// Decodes one still of `size` to `out`, whose rows are `stride` samples apart.
inline void decode_webp_still(std::span<const std::uint8_t> bytes, const PictureSize& size, std::int64_t channels,
                              std::span<std::uint8_t> out, std::int64_t stride, std::string_view source) {
    ::WebPDecoderConfig config;
    if (::WebPInitDecoderConfig(&config) == 0)
        throw_fault(Errc::picture_undecided, source, "libwebp is of another version than its header");
    config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.width = static_cast<int>(size.width);
    config.output.height = static_cast<int>(size.height);
    config.output.u.RGBA = {out.data(), static_cast<int>(stride), out.size()};
    const auto status = ::WebPDecode(bytes.data(), bytes.size(), &config);
    ::WebPFreeDecBuffer(&config.output);
    if (status != VP8_STATUS_OK) throw_webp_fault(status, source);
}

}  // namespace detail

STRATA_INLINE Picture decode_webp(std::span<const std::byte> file, const ImageHeader& header, std::string_view source,
                                  const DecodeLimits& limits) {
    const std::span bytes{reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
    const ::WebPBitstreamFeatures features = detail::webp_features(bytes, source, limits);
    if (header.stored != PictureSize{features.width, features.height})
        detail::throw_fault(Errc::picture_undecided, source, "its header says two things of its size");
    Picture picture{features.width, features.height, features.has_alpha != 0 ? 4 : 3, {}};
    const std::int64_t stride = picture.width * picture.channels;
    if (features.has_animation == 0) {
        picture.pixels.resize(static_cast<std::size_t>(stride * picture.height));
        detail::decode_webp_still(bytes, {picture.width, picture.height}, picture.channels, picture.pixels, stride,
                                  source);
        return picture;
    }

    const ::WebPData data{bytes.data(), bytes.size()};
    const std::unique_ptr<::WebPDemuxer, decltype(&::WebPDemuxDelete)> demuxer{::WebPDemux(&data), &::WebPDemuxDelete};
    ::WebPIterator frame;
    if (demuxer == nullptr || ::WebPDemuxGetFrame(demuxer.get(), 1, &frame) == 0)
        detail::throw_bad_picture(source, "its frames are damaged or the file ends too early");
    const std::unique_ptr<::WebPIterator, decltype(&::WebPDemuxReleaseIterator)> release{&frame,
                                                                                         &::WebPDemuxReleaseIterator};
    const std::span still{frame.fragment.bytes, frame.fragment.size};
    const ::WebPBitstreamFeatures own = detail::webp_features(still, source, limits);
    if (own.width != frame.width || own.height != frame.height || frame.x_offset < 0 || frame.y_offset < 0 ||
        frame.x_offset + own.width > features.width || frame.y_offset + own.height > features.height)
        detail::throw_bad_picture(source, "its first frame does not fit its canvas");
    picture.pixels.resize(static_cast<std::size_t>(stride * picture.height));
    const auto begin = static_cast<std::size_t>(frame.y_offset * stride + frame.x_offset * picture.channels);
    detail::decode_webp_still(still, {own.width, own.height}, picture.channels,
                              std::span{picture.pixels}.subspan(begin), stride, source);
    return picture;
}

}  // namespace strata::pictures
