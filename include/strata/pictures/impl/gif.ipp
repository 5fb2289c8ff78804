#pragma once
// strata/pictures/impl/gif.ipp - giflib over bytes in memory, up to the end of the first frame.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <gif_lib.h>

#include <strata/core/inline.hpp>
#include <strata/pictures/gif.hpp>
#include <strata/pictures/picture_fault.hpp>

namespace strata::pictures {

namespace detail {

struct GifInput {
    std::span<const std::byte> left;
};
inline int read_gif(::GifFileType* gif, ::GifByteType* out, int size) {
    auto& input = *static_cast<GifInput*>(gif->UserData);
    const std::size_t count = std::min(static_cast<std::size_t>(std::max(size, 0)), input.left.size());
    if (count > 0) std::memcpy(out, input.left.data(), count);
    input.left = input.left.subspan(count);
    return static_cast<int>(count);
}

struct CloseGif {
    void operator()(::GifFileType* gif) const noexcept { ::DGifCloseFile(gif, nullptr); }
};

[[noreturn]] inline void throw_gif_fault(int code, std::string_view source) {
    switch (code) {
        case D_GIF_ERR_NOT_ENOUGH_MEM:
            throw_fault(Errc::picture_undecided, source, "there is not enough memory");
        case D_GIF_ERR_READ_FAILED:
        case D_GIF_ERR_EOF_TOO_SOON:
            throw_bad_picture(source, "the file ends too early");
        case D_GIF_ERR_NO_SCRN_DSCR:
        case D_GIF_ERR_NO_IMAG_DSCR:
        case D_GIF_ERR_WRONG_RECORD:
        case D_GIF_ERR_DATA_TOO_BIG:
        case D_GIF_ERR_IMAGE_DEFECT:
            throw_bad_picture(source, "it is damaged");
        default:
            throw_fault(Errc::picture_undecided, source, "giflib gave up");
    }
}

/// Goes on to the first frame; what a graphics control extension says of its transparent colour, or -1.
inline int find_gif_frame(::GifFileType& gif, std::string_view source) {
    int transparent = NO_TRANSPARENT_COLOR;
    while (true) {
        ::GifRecordType kind = UNDEFINED_RECORD_TYPE;
        if (::DGifGetRecordType(&gif, &kind) != GIF_OK) throw_gif_fault(gif.Error, source);
        if (kind == IMAGE_DESC_RECORD_TYPE) return transparent;
        if (kind == TERMINATE_RECORD_TYPE) throw_bad_picture(source, "it has no frame");
        if (kind != EXTENSION_RECORD_TYPE) continue;
        int code = 0;
        ::GifByteType* bytes = nullptr;
        if (::DGifGetExtension(&gif, &code, &bytes) != GIF_OK) throw_gif_fault(gif.Error, source);
        while (bytes != nullptr) {
            ::GraphicsControlBlock control{};
            if (code == GRAPHICS_EXT_FUNC_CODE && ::DGifExtensionToGCB(bytes[0], bytes + 1, &control) == GIF_OK)
                transparent = control.TransparentColor;
            if (::DGifGetExtensionNext(&gif, &bytes) != GIF_OK) throw_gif_fault(gif.Error, source);
        }
    }
}

}  // namespace detail

STRATA_INLINE Picture decode_gif(std::span<const std::byte> file, const ImageHeader& header, std::string_view source) {
    detail::GifInput input{file};
    int failure = 0;
    const std::unique_ptr<::GifFileType, detail::CloseGif> gif{::DGifOpen(&input, detail::read_gif, &failure)};
    if (!gif) detail::throw_gif_fault(failure, source);
    if (header.stored != PictureSize{gif->SWidth, gif->SHeight})
        detail::throw_fault(Errc::picture_undecided, source, "its header says two things of its size");
    const int transparent = detail::find_gif_frame(*gif, source);
    if (::DGifGetImageDesc(gif.get()) != GIF_OK) detail::throw_gif_fault(gif->Error, source);

    // Colours by their numbers. Without any palette they are greys; a number beyond the palette is black.
    std::array<std::array<std::uint8_t, 4>, 256> colours{};
    const auto fill = [&](const ::ColorMapObject* map) {
        for (std::size_t i = 0; i < colours.size(); ++i) {
            colours[i] = {0, 0, 0, 255};
            if (map == nullptr)
                colours[i] = {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i),
                              255};
            else if (static_cast<int>(i) < map->ColorCount)
                colours[i] = {map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue, 255};
        }
    };
    const bool has_alpha = transparent != NO_TRANSPARENT_COLOR;
    std::array<std::uint8_t, 4> background{0, 0, 0, static_cast<std::uint8_t>(has_alpha ? 0 : 255)};
    if (!has_alpha && gif->SColorMap != nullptr) {
        fill(gif->SColorMap);
        background = colours[static_cast<std::size_t>(gif->SBackGroundColor) & 255U];
    }
    const ::GifImageDesc& frame = gif->Image;
    fill(frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap);
    if (has_alpha) colours[static_cast<std::size_t>(transparent) & 255U][3] = 0;

    Picture picture{header.stored.width, header.stored.height, has_alpha ? 4 : 3, {}};
    const auto each = static_cast<std::size_t>(picture.channels);
    picture.pixels.resize(static_cast<std::size_t>(picture.width * picture.height) * each);
    for (std::size_t at = 0; at < picture.pixels.size(); at += each)
        std::memcpy(picture.pixels.data() + at, background.data(), each);
    std::vector<::GifPixelType> line(static_cast<std::size_t>(frame.Width));
    const auto read_row = [&](std::int64_t y) {
        if (::DGifGetLine(gif.get(), line.data(), frame.Width) != GIF_OK) detail::throw_gif_fault(gif->Error, source);
        const std::int64_t top = frame.Top + y;
        if (top >= picture.height) return;
        const std::int64_t kept = std::min<std::int64_t>(frame.Width, picture.width - frame.Left);
        for (std::int64_t x = 0; x < kept; ++x)
            std::memcpy(picture.pixels.data() + static_cast<std::size_t>(top * picture.width + frame.Left + x) * each,
                        colours[line[static_cast<std::size_t>(x)]].data(), each);
    };
    struct Pass {
        int first, step;
    };
    constexpr std::array<Pass, 4> interlaced{{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
    constexpr std::array<Pass, 1> plain{{{0, 1}}};
    const std::span<const Pass> passes =
        frame.Interlace ? std::span<const Pass>{interlaced} : std::span<const Pass>{plain};
    if (frame.Width > 0)
        for (const Pass& pass : passes)
            for (int y = pass.first; y < frame.Height; y += pass.step) read_row(y);
    return picture;
}

}  // namespace strata::pictures
