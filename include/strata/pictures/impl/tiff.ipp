#pragma once
// strata/pictures/impl/tiff.ipp - libtiff over bytes in memory.

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include <tiffio.h>

#include <strata/core/inline.hpp>
#include <strata/pictures/detail/tiff_rows.hpp>
#include <strata/pictures/impl/colour_profile.ipp>
#include <strata/pictures/picture_fault.hpp>
#include <strata/pictures/tiff.hpp>

namespace strata::pictures {

namespace detail {

/// A file in memory, as libtiff reads it; and the first of its complaints.
struct TiffInput {
    std::span<const std::byte> file;
    std::uint64_t at = 0;
    std::array<char, 160> message{};
};
inline TiffInput& tiff_input(::thandle_t handle) { return *static_cast<TiffInput*>(handle); }
inline ::tmsize_t read_tiff(::thandle_t handle, void* out, ::tmsize_t size) {
    TiffInput& input = tiff_input(handle);
    if (input.at >= input.file.size() || size <= 0) return 0;
    const std::size_t count =
        std::min(static_cast<std::size_t>(size), input.file.size() - static_cast<std::size_t>(input.at));
    std::memcpy(out, input.file.data() + input.at, count);
    input.at += count;
    return static_cast<::tmsize_t>(count);
}
inline ::tmsize_t write_no_tiff(::thandle_t, void*, ::tmsize_t) { return 0; }
inline ::toff_t seek_tiff(::thandle_t handle, ::toff_t offset, int whence) {
    TiffInput& input = tiff_input(handle);
    const std::uint64_t from = whence == SEEK_CUR ? input.at : whence == SEEK_END ? input.file.size() : 0;
    return input.at = from + offset;
}
inline int close_tiff(::thandle_t) { return 0; }
inline ::toff_t size_of_tiff(::thandle_t handle) { return tiff_input(handle).file.size(); }
/// Lets libtiff look at the bytes where they are; it only reads them.
inline int map_tiff(::thandle_t handle, void** base, ::toff_t* size) {
    *base = const_cast<std::byte*>(tiff_input(handle).file.data());
    *size = tiff_input(handle).file.size();
    return 1;
}
inline void unmap_tiff(::thandle_t, void*, ::toff_t) {}
inline int on_tiff_error(::TIFF*, void* user, const char*, const char* format, std::va_list words) {
    auto& message = static_cast<TiffInput*>(user)->message;
    if (message[0] == '\0') std::vsnprintf(message.data(), message.size(), format, words);
    return 1;  // said
}
inline int on_tiff_warning(::TIFF*, void*, const char*, const char*, std::va_list) { return 1; }

struct CloseTiff {
    void operator()(::TIFF* tiff) const noexcept { ::TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<::TIFF, CloseTiff>;

inline Tiff open_tiff(TiffInput& input) {
    const std::unique_ptr<::TIFFOpenOptions, decltype(&::TIFFOpenOptionsFree)> options{::TIFFOpenOptionsAlloc(),
                                                                                       &::TIFFOpenOptionsFree};
    if (!options) throw std::bad_alloc{};
    constexpr ::tmsize_t largest = ::tmsize_t{1} << 30;
    ::TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), largest);
    ::TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_tiff_error, &input);
    ::TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_tiff_warning, nullptr);
    return Tiff{::TIFFClientOpenExt("", "r", &input, read_tiff, write_no_tiff, seek_tiff, close_tiff, size_of_tiff,
                                    map_tiff, unmap_tiff, options.get())};
}

template <class Number>
Number tiff_field(::TIFF* tiff, std::uint32_t tag, Number otherwise) {
    Number value{};
    return ::TIFFGetFieldDefaulted(tiff, tag, &value) == 1 ? value : otherwise;
}

/// What the samples of the first page mean, if rows of them can be read as they are; else nullopt.
inline std::optional<TiffSamples> plain_samples(::TIFF* tiff) {
    TiffSamples samples;
    samples.count = tiff_field<std::uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
    samples.bits = tiff_field<std::uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE, 1);
    const auto packing = tiff_field<std::uint16_t>(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    constexpr std::array<std::uint16_t, 13> by_rows{
        COMPRESSION_NONE, COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4, COMPRESSION_CCITTRLEW,
        COMPRESSION_LZW,  COMPRESSION_JPEG,     COMPRESSION_PACKBITS,  COMPRESSION_DEFLATE,   COMPRESSION_ADOBE_DEFLATE,
        COMPRESSION_LZMA, COMPRESSION_ZSTD,     COMPRESSION_WEBP};
    if (std::find(by_rows.begin(), by_rows.end(), packing) == by_rows.end()) return std::nullopt;
    constexpr std::array<int, 5> known_bits{1, 2, 4, 8, 16};
    if (std::find(known_bits.begin(), known_bits.end(), samples.bits) == known_bits.end()) return std::nullopt;
    const auto format = tiff_field<std::uint16_t>(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
    if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID) return std::nullopt;
    switch (tiff_field<std::uint16_t>(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK)) {
        case PHOTOMETRIC_MINISWHITE:
            samples.meaning = TiffSamples::inverted_grey;
            break;
        case PHOTOMETRIC_MINISBLACK:
            break;
        case PHOTOMETRIC_RGB:
            samples.meaning = TiffSamples::colours;
            break;
        case PHOTOMETRIC_PALETTE: {
            samples.meaning = TiffSamples::palette;
            std::array<std::uint16_t*, 3> map{};
            if (samples.bits > 8 || ::TIFFGetField(tiff, TIFFTAG_COLORMAP, &map[0], &map[1], &map[2]) != 1)
                return std::nullopt;
            const std::size_t count = std::size_t{1} << samples.bits;
            // Some writers leave 8 bits where 16 belong.
            const bool small = std::all_of(map.begin(), map.end(), [&](const std::uint16_t* one) {
                return std::all_of(one, one + count, [](std::uint16_t value) { return value < 256; });
            });
            for (std::size_t i = 0; i < count; ++i)
                for (const std::uint16_t* const one : map)
                    samples.map.push_back(static_cast<std::uint8_t>(small ? one[i] : one[i] >> 8));
            samples.map.resize(256 * 3);
            break;
        }
        case PHOTOMETRIC_SEPARATED:
            if (tiff_field<std::uint16_t>(tiff, TIFFTAG_INKSET, INKSET_CMYK) != INKSET_CMYK) return std::nullopt;
            samples.meaning = TiffSamples::inks;
            break;
        case PHOTOMETRIC_YCBCR:
            if (packing != COMPRESSION_JPEG || samples.bits != 8 || samples.count != 3) return std::nullopt;
            samples.meaning = TiffSamples::colours;  // once libjpeg made RGB of it
            ::TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
            break;
        default:
            return std::nullopt;
    }
    if (samples.count < samples.colour_samples()) return std::nullopt;
    std::uint16_t extras = 0;
    std::uint16_t* kinds = nullptr;
    ::TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extras, &kinds);
    if (extras > 0 && samples.count > samples.colour_samples()) {
        if (kinds[0] == EXTRASAMPLE_ASSOCALPHA) samples.alpha = 1;
        if (kinds[0] == EXTRASAMPLE_UNASSALPHA) samples.alpha = 2;
    }
    return samples;
}

/// The tiles or strips of a page.
struct TiffChunks {
    bool tiled = false;
    std::int64_t width = 0;
    std::int64_t height = 0;
};

inline TiffChunks tiff_chunks(::TIFF* tiff, const PictureSize& size) {
    if (::TIFFIsTiled(tiff) == 0)
        return {
            false, size.width,
            std::min<std::int64_t>(tiff_field<std::uint32_t>(tiff, TIFFTAG_ROWSPERSTRIP, 0xFFFFFFFFU), size.height)};
    return {true, tiff_field<std::uint32_t>(tiff, TIFFTAG_TILEWIDTH, 0U),
            tiff_field<std::uint32_t>(tiff, TIFFTAG_TILELENGTH, 0U)};
}

/// Reads a page whose samples are plain. False: see the message.
inline bool read_plain_tiff(::TIFF* tiff, const TiffSamples& samples, const TiffChunks& chunks, const ToSrgb& to_srgb,
                            Picture& picture) {
    const auto out = [&](std::int64_t x, std::int64_t y) {
        return picture.pixels.data() + static_cast<std::size_t>((y * picture.width + x) * picture.channels);
    };
    const bool planes =
        tiff_field<std::uint16_t>(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE &&
        samples.count > 1;
    TiffRows rows{samples, std::max(chunks.width, picture.width), to_srgb};
    if (!chunks.tiled && !planes) {
        std::vector<std::uint8_t> row(static_cast<std::size_t>(::TIFFScanlineSize64(tiff)));
        for (std::int64_t y = 0; y < picture.height; ++y) {
            if (::TIFFReadScanline(tiff, row.data(), static_cast<std::uint32_t>(y), 0) != 1) return false;
            rows.take_pixels(row.data(), static_cast<std::size_t>(picture.width));
            rows.give(static_cast<std::size_t>(picture.width), samples.bits == 16, out(0, y));
        }
        return true;
    }
    const auto row_bytes =
        static_cast<std::size_t>(chunks.tiled ? ::TIFFTileRowSize64(tiff) : ::TIFFScanlineSize64(tiff));
    const std::size_t plane_bytes = row_bytes * static_cast<std::size_t>(chunks.height);
    const std::size_t count = planes ? samples.count : 1;
    std::vector<std::uint8_t> chunk(plane_bytes * count);
    for (std::int64_t top = 0; top < picture.height; top += chunks.height)
        for (std::int64_t left = 0; left < picture.width; left += chunks.width) {
            const auto x = static_cast<std::uint32_t>(left);
            const auto y = static_cast<std::uint32_t>(top);
            const std::int64_t height = std::min(chunks.height, picture.height - top);
            for (std::size_t p = 0; p < count; ++p) {
                const auto plane = static_cast<std::uint16_t>(p);
                std::uint8_t* const to = chunk.data() + p * plane_bytes;
                const auto wanted =
                    static_cast<::tmsize_t>(chunks.tiled ? plane_bytes : row_bytes * static_cast<std::size_t>(height));
                const ::tmsize_t got =
                    chunks.tiled ? ::TIFFReadEncodedTile(tiff, ::TIFFComputeTile(tiff, x, y, 0, plane), to, wanted)
                                 : ::TIFFReadEncodedStrip(tiff, ::TIFFComputeStrip(tiff, y, plane), to, wanted);
                if (got != wanted) return false;
            }
            const auto width = static_cast<std::size_t>(std::min(chunks.width, picture.width - left));
            for (std::int64_t line = 0; line < height; ++line) {
                std::uint8_t* const row = chunk.data() + static_cast<std::size_t>(line) * row_bytes;
                if (!planes) rows.take_pixels(row, width);
                for (std::size_t p = 0; planes && p < count; ++p)
                    rows.take(row + p * plane_bytes, width, p, samples.count);
                rows.give(width, samples.bits == 16 && !planes, out(left, top + line));
            }
        }
    return true;
}

/// Reads a page as libtiff shows it, bottom row first, to RGB. False: see the message.
inline bool read_shown_tiff(::TIFF* tiff, const TiffChunks& chunks, Picture& picture) {
    ::TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);  // of this page in memory: turned is it later
    std::vector<std::uint32_t> raster(static_cast<std::size_t>(chunks.width * chunks.height));
    for (std::int64_t top = 0; top < picture.height; top += chunks.height)
        for (std::int64_t left = 0; left < picture.width; left += chunks.width) {
            const auto y = static_cast<std::uint32_t>(top);
            const int done = chunks.tiled
                                 ? ::TIFFReadRGBATileExt(tiff, static_cast<std::uint32_t>(left), y, raster.data(), 1)
                                 : ::TIFFReadRGBAStripExt(tiff, y, raster.data(), 1);
            if (done != 1) return false;
            const std::int64_t height = std::min(chunks.height, picture.height - top);
            const std::int64_t width = std::min(chunks.width, picture.width - left);
            const std::int64_t first = (chunks.tiled ? chunks.height : height) - 1;
            for (std::int64_t line = 0; line < height; ++line) {
                const std::uint32_t* const row = raster.data() + (first - line) * chunks.width;
                std::uint8_t* out =
                    picture.pixels.data() + static_cast<std::size_t>(((top + line) * picture.width + left) * 3);
                for (std::int64_t x = 0; x < width; ++x, out += 3) {
                    out[0] = static_cast<std::uint8_t>(TIFFGetR(row[x]));
                    out[1] = static_cast<std::uint8_t>(TIFFGetG(row[x]));
                    out[2] = static_cast<std::uint8_t>(TIFFGetB(row[x]));
                }
            }
        }
    return true;
}

}  // namespace detail

STRATA_INLINE Picture decode_tiff(std::span<const std::byte> file, const ImageHeader& header, const ToSrgb& to_srgb,
                                  std::string_view source) {
    detail::TiffInput input{file, 0, {}};
    const detail::Tiff tiff = detail::open_tiff(input);
    const auto refuse = [&](Errc kind) { detail::throw_fault(kind, source, input.message.data()); };
    if (!tiff) refuse(Errc::bad_picture);
    const PictureSize size{detail::tiff_field<std::uint32_t>(tiff.get(), TIFFTAG_IMAGEWIDTH, 0U),
                           detail::tiff_field<std::uint32_t>(tiff.get(), TIFFTAG_IMAGELENGTH, 0U)};
    const detail::TiffChunks chunks = detail::tiff_chunks(tiff.get(), size);
    const auto& layout = std::get<TiffLayout>(header.layout);
    if (size != header.stored || chunks.height != layout.chunk_height || chunks.tiled != (layout.chunk_width > 0) ||
        chunks.width < 1 || chunks.height < 1)
        detail::throw_fault(Errc::picture_undecided, source, "its header says two things of its size");
    constexpr std::int64_t most_chunk = 256 * 1024 * 1024;
    if (chunks.width > most_chunk / chunks.height)
        detail::throw_fault(Errc::picture_too_large, source, "its tiles are larger than is accepted");
    const auto packing = detail::tiff_field<std::uint16_t>(tiff.get(), TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    if (::TIFFIsCODECConfigured(packing) == 0)
        detail::throw_unsupported(
            source, "a TIFF packed in way " + std::to_string(packing) + ", which this libtiff was built without");

    Picture picture{size.width, size.height, 3, {}};
    const auto make_room = [&] {
        picture.pixels.resize(static_cast<std::size_t>(size.width * size.height * picture.channels));
    };
    input.message = {};
    if (const auto samples = detail::plain_samples(tiff.get())) {
        if (samples->alpha != 0) picture.channels = 4;
        make_room();
        if (!detail::read_plain_tiff(tiff.get(), *samples, chunks, to_srgb, picture)) refuse(Errc::bad_picture);
        return picture;
    }
    std::array<char, 1024> why{};
    if (::TIFFRGBAImageOK(tiff.get(), why.data()) != 1)
        detail::throw_unsupported(source, "a TIFF that libtiff cannot show: " + std::string{why.data()});
    make_room();
    if (!detail::read_shown_tiff(tiff.get(), chunks, picture)) refuse(Errc::picture_undecided);
    return picture;
}

}  // namespace strata::pictures
