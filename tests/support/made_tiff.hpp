#pragma once
// tests/support/made_tiff.hpp - TIFF files of every kind, made with libtiff where it is built in.

#ifdef STRATA_WITH_TIFF

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <tiffio.h>

#include "made_files.hpp"

namespace strata_test {

struct TiffKind {
    std::string name = "8 bits";
    int bits = 8;
    std::uint16_t photometric = PHOTOMETRIC_RGB;
    std::uint16_t packing = COMPRESSION_NONE;
    bool planes = false;
    bool tiles = false;
    std::uint16_t alpha = 0;  ///< EXTRASAMPLE_...; 0: none
    const char* mode = "w";   ///< "wb" big endian, "wl" little, "w8" BigTIFF
    std::uint16_t orientation = ORIENTATION_TOPLEFT;
    Bytes profile = {};
};

/// Samples of 8 bits, `samples` a pixel, as a TIFF of that kind; bits below 8 take the highest ones.
inline Bytes make_tiff(const TiffKind& kind, std::int64_t width, std::int64_t height, int samples,
                       const std::vector<std::uint8_t>& values) {
    struct Output {
        Bytes bytes;
        std::uint64_t at = 0;
    } output;
    const auto of = [](::thandle_t handle) -> Output& { return *static_cast<Output*>(handle); };
    static const auto access = of;
    ::TIFF* const tiff = ::TIFFClientOpen(
        "made", kind.mode, &output,
        [](::thandle_t handle, void* out, ::tmsize_t size) {
            Output& to = access(handle);
            const auto count = std::min<std::uint64_t>(static_cast<std::uint64_t>(size), to.bytes.size() - to.at);
            std::memcpy(out, to.bytes.data() + to.at, count);
            to.at += count;
            return static_cast<::tmsize_t>(count);
        },
        [](::thandle_t handle, void* data, ::tmsize_t size) {
            Output& to = access(handle);
            to.bytes.resize(std::max<std::size_t>(to.bytes.size(), to.at + static_cast<std::size_t>(size)));
            std::memcpy(to.bytes.data() + to.at, data, static_cast<std::size_t>(size));
            to.at += static_cast<std::uint64_t>(size);
            return size;
        },
        [](::thandle_t handle, ::toff_t offset, int whence) {
            Output& to = access(handle);
            to.at = offset + (whence == SEEK_CUR ? to.at : whence == SEEK_END ? to.bytes.size() : 0);
            return static_cast<::toff_t>(to.at);
        },
        [](::thandle_t) { return 0; }, [](::thandle_t handle) -> ::toff_t { return access(handle).bytes.size(); },
        nullptr, nullptr);
    constexpr std::uint32_t tile = 16;
    ::TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(width));
    ::TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(height));
    ::TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, samples);
    ::TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, kind.bits);
    ::TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, kind.photometric);
    ::TIFFSetField(tiff, TIFFTAG_COMPRESSION, kind.packing);
    ::TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, kind.planes ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
    ::TIFFSetField(tiff, TIFFTAG_ORIENTATION, kind.orientation);
    if (kind.alpha != 0) ::TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &kind.alpha);
    if (!kind.profile.empty())
        ::TIFFSetField(tiff, TIFFTAG_ICCPROFILE, static_cast<std::uint32_t>(kind.profile.size()), kind.profile.data());
    if (kind.photometric == PHOTOMETRIC_PALETTE) {  // number i is the colour (i, 255 - i, i / 2) of 16 bits
        std::array<std::vector<std::uint16_t>, 3> map;
        for (unsigned i = 0; i < 1U << kind.bits; ++i) {
            map[0].push_back(static_cast<std::uint16_t>(i * 257));
            map[1].push_back(static_cast<std::uint16_t>((255 - i) * 257));
            map[2].push_back(static_cast<std::uint16_t>(i / 2 * 257));
        }
        ::TIFFSetField(tiff, TIFFTAG_COLORMAP, map[0].data(), map[1].data(), map[2].data());
    }
    if (kind.tiles) {
        ::TIFFSetField(tiff, TIFFTAG_TILEWIDTH, tile);
        ::TIFFSetField(tiff, TIFFTAG_TILELENGTH, tile);
    } else {
        ::TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 7U);
    }
    /// `count` pixels of a row from x on, all their samples or one's, as they are stored; black beyond the picture.
    const auto packed = [&](std::int64_t x, std::int64_t y, std::int64_t count, int plane) {
        std::vector<std::uint8_t> row;
        unsigned bit = 0;
        for (std::int64_t i = 0; i < count; ++i)
            for (int s = plane < 0 ? 0 : plane; s < (plane < 0 ? samples : plane + 1); ++s) {
                const bool inside = x + i < width && y < height;
                const unsigned value =
                    inside ? values[static_cast<std::size_t>((y * width + x + i) * samples + s)] : 0U;
                if (kind.bits == 16) {
                    const auto wide = static_cast<std::uint16_t>(value * 256 + 17);  // the low byte is dropped
                    row.resize(row.size() + 2);
                    std::memcpy(row.data() + row.size() - 2, &wide, 2);
                } else if (kind.bits == 8) {
                    row.push_back(static_cast<std::uint8_t>(value));
                } else {
                    if (bit % 8 == 0) row.push_back(0);
                    const auto shift = 8 - static_cast<unsigned>(kind.bits) - bit % 8;
                    row.back() = static_cast<std::uint8_t>(row.back() | (value >> (8 - kind.bits)) << shift);
                    bit += static_cast<unsigned>(kind.bits);
                }
            }
        return row;
    };
    for (int plane = kind.planes ? 0 : -1; plane < (kind.planes ? samples : 0); ++plane) {
        const auto sample = static_cast<std::uint16_t>(std::max(plane, 0));
        if (!kind.tiles)
            for (std::int64_t y = 0; y < height; ++y)
                ::TIFFWriteScanline(tiff, packed(0, y, width, plane).data(), static_cast<std::uint32_t>(y), sample);
        else
            for (std::int64_t top = 0; top < height; top += tile)
                for (std::int64_t left = 0; left < width; left += tile) {
                    std::vector<std::uint8_t> block;
                    for (std::int64_t y = top; y < top + tile; ++y) {
                        const auto row = packed(left, y, tile, plane);
                        block.insert(block.end(), row.begin(), row.end());
                    }
                    ::TIFFWriteTile(tiff, block.data(), static_cast<std::uint32_t>(left),
                                    static_cast<std::uint32_t>(top), 0, sample);
                }
    }
    ::TIFFClose(tiff);
    return output.bytes;
}

}  // namespace strata_test

#endif
