#pragma once
// strata/pictures/impl/jpeg.ipp - libjpeg-turbo, kept at arm's length.
//
// libjpeg reports errors by a call that must not return. As with libpng, every function that calls setjmp holds only
// plain data, and everything that owns memory lives in its callers.

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <string>

#include <jpeglib.h>

#include <jerror.h>

#include <strata/core/inline.hpp>
#include <strata/pictures/impl/colour_profile.ipp>
#include <strata/pictures/jpeg.hpp>
#include <strata/pictures/picture_fault.hpp>

namespace strata::pictures {

namespace detail {

/// Owns libjpeg's decompressor. Made in two steps, because already the first call of libjpeg may jump.
struct JpegReader {
    ::jpeg_error_mgr errors{};
    ::jpeg_source_mgr input{};
    ::jpeg_progress_mgr progress{};
    ::jpeg_decompress_struct jpeg{};
    std::jmp_buf jump{};
    std::array<char, JMSG_LENGTH_MAX> message{};
    Errc kind = Errc::picture_undecided;  // of the message
    bool has_all_rows = false;

    JpegReader() = default;
    JpegReader(const JpegReader&) = delete;
    JpegReader& operator=(const JpegReader&) = delete;
    ~JpegReader() { ::jpeg_destroy_decompress(&jpeg); }
};

inline JpegReader& jpeg_reader(::j_common_ptr jpeg) { return *static_cast<JpegReader*>(jpeg->client_data); }

/// What libjpeg's number of an error says of the file.
inline Errc jpeg_fault(int code) noexcept {
    switch (code) {
        case JERR_BAD_COMPONENT_ID:
        case JERR_BAD_DCT_COEF:
        case JERR_BAD_HUFF_TABLE:
        case JERR_BAD_J_COLORSPACE:
        case JERR_BAD_LENGTH:
        case JERR_BAD_MCU_SIZE:
        case JERR_BAD_PROGRESSION:
        case JERR_BAD_PROG_SCRIPT:
        case JERR_BAD_SAMPLING:
        case JERR_DAC_INDEX:
        case JERR_DAC_VALUE:
        case JERR_DHT_INDEX:
        case JERR_DQT_INDEX:
        case JERR_EMPTY_IMAGE:
        case JERR_EOI_EXPECTED:
        case JERR_INPUT_EMPTY:
        case JERR_INPUT_EOF:
        case JERR_NO_ARITH_TABLE:
        case JERR_NO_HUFF_TABLE:
        case JERR_NO_IMAGE:
        case JERR_NO_QUANT_TABLE:
        case JERR_NO_SOI:
        case JERR_SOF_DUPLICATE:
        case JERR_SOF_NO_SOS:
        case JERR_SOI_DUPLICATE:
        case JERR_SOS_NO_SOF:
        case JERR_UNKNOWN_MARKER:
            return Errc::bad_picture;
        case JERR_IMAGE_TOO_BIG:
        case JERR_WIDTH_OVERFLOW:
            return Errc::picture_too_large;
        case JERR_BAD_PRECISION:
        case JERR_CCIR601_NOTIMPL:
        case JERR_COMPONENT_COUNT:
        case JERR_CONVERSION_NOTIMPL:
        case JERR_FRACT_SAMPLE_NOTIMPL:
        case JERR_NOTIMPL:
        case JERR_NOT_COMPILED:
        case JERR_SOF_UNSUPPORTED:
            return Errc::unsupported_picture;
        default:  // for lack of memory, and what a decoder should never meet
            return Errc::picture_undecided;
    }
}

[[noreturn]] inline void fail_jpeg(::j_common_ptr jpeg, Errc kind, const char* why) {
    JpegReader& reader = jpeg_reader(jpeg);
    reader.kind = kind;
    std::snprintf(reader.message.data(), reader.message.size(), "%s", why);
    std::longjmp(reader.jump, 1);
}
[[noreturn]] inline void on_jpeg_error(::j_common_ptr jpeg) {
    JpegReader& reader = jpeg_reader(jpeg);
    reader.kind = jpeg_fault(jpeg->err->msg_code);
    (*jpeg->err->format_message)(jpeg, reader.message.data());
    std::longjmp(reader.jump, 1);
}
inline void on_jpeg_message(::j_common_ptr, int) {}
inline void on_jpeg_output(::j_common_ptr) {}

/// A file of a few bytes can ask for any number of passes over a huge picture.
inline void on_jpeg_progress(::j_common_ptr jpeg) {
    constexpr int most_scans = 200;
    if (reinterpret_cast<::j_decompress_ptr>(jpeg)->input_scan_number > most_scans)
        fail_jpeg(jpeg, Errc::picture_too_large, "it has too many scans");
}

inline void on_jpeg_source(::j_decompress_ptr) {}
inline ::boolean on_jpeg_end(::j_decompress_ptr jpeg) {
    fail_jpeg(reinterpret_cast<::j_common_ptr>(jpeg), Errc::bad_picture, "the file ends too early");
}
inline void skip_jpeg_bytes(::j_decompress_ptr jpeg, long count) {
    if (count <= 0) return;
    ::jpeg_source_mgr& input = *jpeg->src;
    if (static_cast<std::size_t>(count) > input.bytes_in_buffer) on_jpeg_end(jpeg);
    input.next_input_byte += count;
    input.bytes_in_buffer -= static_cast<std::size_t>(count);
}

/// Reads up to the pixels. False: see reader.message.
inline bool read_jpeg_head(JpegReader& reader, std::span<const std::byte> file) {
    if (setjmp(reader.jump) != 0) return false;
    reader.jpeg.err = ::jpeg_std_error(&reader.errors);
    reader.errors.error_exit = on_jpeg_error;
    reader.errors.emit_message = on_jpeg_message;
    reader.errors.output_message = on_jpeg_output;
    reader.jpeg.client_data = &reader;
    jpeg_create_decompress(&reader.jpeg);
    reader.input.next_input_byte = reinterpret_cast<const ::JOCTET*>(file.data());
    reader.input.bytes_in_buffer = file.size();
    reader.input.init_source = on_jpeg_source;
    reader.input.fill_input_buffer = on_jpeg_end;
    reader.input.skip_input_data = skip_jpeg_bytes;
    reader.input.resync_to_restart = ::jpeg_resync_to_restart;
    reader.input.term_source = on_jpeg_source;
    reader.jpeg.src = &reader.input;
    reader.progress.progress_monitor = on_jpeg_progress;
    reader.jpeg.progress = &reader.progress;
    ::jpeg_read_header(&reader.jpeg, TRUE);
    return true;
}

/// Begins to decode at 1/denominator of the size, to RGB or four inks. False: see reader.message.
inline bool start_jpeg(JpegReader& reader, unsigned denominator) {
    if (setjmp(reader.jump) != 0) return false;
    const bool inks = reader.jpeg.num_components == 4;
    reader.jpeg.out_color_space = inks ? ::JCS_CMYK : ::JCS_RGB;
    reader.jpeg.scale_num = 1;
    reader.jpeg.scale_denom = denominator;
    ::jpeg_start_decompress(&reader.jpeg);
    return true;
}

/// Reads all rows. With inks through `line`, which holds one row of them. False: see reader.message.
inline bool read_jpeg_rows(JpegReader& reader, std::uint8_t* pixels, std::uint8_t* line, const ToSrgb& to_srgb) {
    if (setjmp(reader.jump) != 0) return false;
    ::jpeg_decompress_struct& jpeg = reader.jpeg;
    const std::size_t width = jpeg.output_width;
    while (jpeg.output_scanline < jpeg.output_height) {
        std::uint8_t* const row = pixels + std::size_t{jpeg.output_scanline} * width * 3;
        if (jpeg.output_components == 3) {
            std::array<::JSAMPROW, 8> rows{};
            const std::size_t count = std::min<std::size_t>(rows.size(), jpeg.output_height - jpeg.output_scanline);
            for (std::size_t i = 0; i < count; ++i) rows[i] = row + i * width * 3;
            ::jpeg_read_scanlines(&jpeg, rows.data(), static_cast<::JDIMENSION>(count));
            continue;
        }
        ::jpeg_read_scanlines(&jpeg, &line, 1);
        to_srgb.inks_to_rgb(line, row, width, true);
    }
    reader.has_all_rows = true;
    ::jpeg_finish_decompress(&jpeg);  // reads on to the end mark
    return true;
}

}  // namespace detail

STRATA_INLINE unsigned jpeg_denominator(const PictureSize& size, const PictureSize& enough) noexcept {
    if (enough.width < 1 || enough.height < 1) return 1;
    const auto reduced = [](std::int64_t edge, unsigned by) { return (edge + by - 1) / by; };  // as libjpeg rounds
    unsigned denominator = 1;
    while (denominator < 8 && reduced(size.width, denominator * 2) >= enough.width &&
           reduced(size.height, denominator * 2) >= enough.height)
        denominator *= 2;
    return denominator;
}

STRATA_INLINE Picture decode_jpeg(std::span<const std::byte> file, const ImageHeader& header, const PictureSize& enough,
                                  const ToSrgb& to_srgb, std::string_view source, const DecodeLimits& limits) {
    detail::JpegReader reader;
    const auto refuse = [&] { detail::throw_fault(reader.kind, source, reader.message.data()); };
    if (!detail::read_jpeg_head(reader, file)) refuse();
    const PictureSize size{reader.jpeg.image_width, reader.jpeg.image_height};
    require_within(limits, size, source);
    const int components = reader.jpeg.num_components;
    if (size != header.stored || components != header.channels)
        detail::throw_fault(Errc::picture_undecided, source, "its header says two things of its size");

    if (!detail::start_jpeg(reader, jpeg_denominator(size, enough))) refuse();

    Picture picture{reader.jpeg.output_width, reader.jpeg.output_height, 3, {}};
    picture.pixels.resize(static_cast<std::size_t>(picture.width * picture.height * 3));
    std::vector<std::uint8_t> line(components == 4 ? static_cast<std::size_t>(picture.width) * 4 : 0);
    if (!detail::read_jpeg_rows(reader, picture.pixels.data(), line.data(), to_srgb)) {
        if (reader.has_all_rows)
            detail::throw_fault(Errc::picture_undecided, source, "its pixels are there, and its end mark is missing");
        refuse();
    }
    return picture;
}

}  // namespace strata::pictures
