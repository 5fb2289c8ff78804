#pragma once
// strata/pictures/impl/png.ipp - libpng, kept at arm's length.
//
// libpng reports errors by longjmp. A jump over a C++ object's destructor is undefined behaviour, so every
// function that calls setjmp holds only plain data, and everything that owns memory lives in its callers.

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include <png.h>
#include <zlib.h>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/pictures/picture_fault.hpp>
#include <strata/pictures/png.hpp>

namespace strata::pictures {

namespace detail {

/// A libpng error: kept as text, then back to the setjmp of the function at work.
inline void on_png_error(png_structp png, png_const_charp text) {
    auto* const message = static_cast<std::array<char, 128>*>(::png_get_error_ptr(png));
    std::snprintf(message->data(), message->size(), "%s", text);
    ::png_longjmp(png, 1);
}
inline void on_png_warning(png_structp, png_const_charp) {}

/// The rest of a file that is being read.
struct PngInput {
    const std::byte* next;
    std::size_t left;
};
inline void read_png_bytes(png_structp png, png_bytep out, std::size_t length) {
    auto* const input = static_cast<PngInput*>(::png_get_io_ptr(png));
    if (length > input->left) ::png_error(png, "the file ends too early");
    std::memcpy(out, input->next, length);
    input->next += length;
    input->left -= length;
}

/// Memory for libpng, which says of a lack of it nothing but words; so it is noted here.
struct PngMemory {
    bool ran_out = false;
};
inline png_voidp take_png_memory(png_structp png, png_alloc_size_t bytes) {
    void* const memory = std::malloc(bytes);
    if (memory == nullptr) static_cast<PngMemory*>(::png_get_mem_ptr(png))->ran_out = true;
    return memory;
}
inline void free_png_memory(png_structp, png_voidp memory) { std::free(memory); }

/// Owns libpng's reader.
struct PngReader {
    std::array<char, 128> message{};
    PngMemory memory;
    PngInput input;
    png_structp png = nullptr;
    png_infop info = nullptr;

    explicit PngReader(std::span<const std::byte> file) : input{file.data(), file.size()} {
        png = ::png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &message, on_png_error, on_png_warning, &memory,
                                         take_png_memory, free_png_memory);
        info = png != nullptr ? ::png_create_info_struct(png) : nullptr;
        if (info == nullptr) {
            ::png_destroy_read_struct(&png, &info, nullptr);
            throw std::bad_alloc{};
        }
    }
    PngReader(const PngReader&) = delete;
    PngReader& operator=(const PngReader&) = delete;
    /// The message, as what it says of the file.
    [[noreturn]] void refuse(std::string_view source) const {
        throw_fault(memory.ran_out ? Errc::picture_undecided : Errc::bad_picture, source, message.data());
    }
    ~PngReader() { ::png_destroy_read_struct(&png, &info, nullptr); }
};

/// Reads up to the pixels and asks for RGB8, or RGBA8 where there is alpha. False: see reader.message.
inline bool read_png_head(PngReader& reader, const DecodeLimits& limits) {
    if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
    ::png_set_read_fn(reader.png, &reader.input, read_png_bytes);
    const auto edge = static_cast<png_uint_32>(std::min<std::int64_t>(limits.edge, PNG_UINT_31_MAX));
    ::png_set_user_limits(reader.png, edge, edge);
    // Texts, times and profiles are not used; skipping them (-1: known ones too) skips their unpacking as well, so that
    // they may be of any length.
    ::png_set_chunk_malloc_max(reader.png, 0);
    ::png_set_chunk_cache_max(reader.png, 64);
    ::png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    ::png_read_info(reader.png, reader.info);
    ::png_set_expand(reader.png);    // palette -> RGB, 1/2/4 bits -> 8, tRNS -> alpha
    ::png_set_strip_16(reader.png);  // the high byte
    ::png_set_gray_to_rgb(reader.png);
    ::png_set_interlace_handling(reader.png);
    ::png_read_update_info(reader.png, reader.info);
    return true;
}

/// Reads all rows into `pixels`, `stride` bytes apart. False: see reader.message.
inline bool read_png_rows(PngReader& reader, png_bytep pixels, std::size_t stride, png_uint_32 height, int passes) {
    if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
    for (int pass = 0; pass < passes; ++pass)
        for (png_uint_32 y = 0; y < height; ++y) ::png_read_row(reader.png, pixels + y * stride, nullptr);
    return true;
}

/// The file that is being written; `failed` because a C callback must not throw through libpng.
struct PngOutput {
    std::vector<std::byte> bytes;
    bool failed = false;
};
inline void write_png_bytes(png_structp png, png_bytep data, std::size_t length) {
    auto* const output = static_cast<PngOutput*>(::png_get_io_ptr(png));
    try {
        const auto* const begin = reinterpret_cast<const std::byte*>(data);
        output->bytes.insert(output->bytes.end(), begin, begin + length);
    } catch (const std::bad_alloc&) {
        output->failed = true;
    }
    if (output->failed) ::png_error(png, "out of memory");
}
inline void flush_png_bytes(png_structp) {}

/// Owns libpng's writer.
struct PngWriter {
    std::array<char, 128> message{};
    png_structp png = nullptr;
    png_infop info = nullptr;

    PngWriter() {
        png = ::png_create_write_struct(PNG_LIBPNG_VER_STRING, &message, on_png_error, on_png_warning);
        info = png != nullptr ? ::png_create_info_struct(png) : nullptr;
        if (info == nullptr) {
            ::png_destroy_write_struct(&png, &info);
            throw std::bad_alloc{};
        }
    }
    PngWriter(const PngWriter&) = delete;
    PngWriter& operator=(const PngWriter&) = delete;
    ~PngWriter() { ::png_destroy_write_struct(&png, &info); }
};

///   texts  a number that is too large for libpng's cannot be in memory
inline bool write_png(PngWriter& writer, PngOutput& output, png_uint_32 width, png_uint_32 height,
                      const std::uint8_t* rgb, ::png_text* texts, std::size_t count) {
    if (setjmp(png_jmpbuf(writer.png)) != 0) return false;
    ::png_set_write_fn(writer.png, &output, write_png_bytes, flush_png_bytes);
    ::png_set_IHDR(writer.png, writer.info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                   PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (count > 0) ::png_set_text(writer.png, writer.info, texts, static_cast<int>(count));
    ::png_write_info(writer.png, writer.info);
    for (png_uint_32 y = 0; y < height; ++y) ::png_write_row(writer.png, rgb + std::size_t{y} * width * 3);
    ::png_write_end(writer.png, writer.info);
    return true;
}

inline bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// libpng's view of texts, which outlive it.
inline std::vector<::png_text> png_texts_of(std::span<const PngText> texts) {
    std::vector<::png_text> views;
    for (const PngText& one : texts) {
        const bool is_key = !one.key.empty() && one.key.size() <= PNG_KEYWORD_MAX_LENGTH && one.key.front() != ' ' &&
                            one.key.back() != ' ' && one.key.find("  ") == std::string::npos &&
                            std::all_of(one.key.begin(), one.key.end(), [](char c) { return ' ' <= c && c <= '~'; });
        if (!is_key || one.text.find('\0') != std::string::npos)
            throw Error{Errc::bad_picture, "a PNG cannot hold the text '" + one.key + "'",
                        "use a key of 1 to 79 characters of ASCII, and no text with the character of number 0"};
        ::png_text view{};
        view.compression = is_ascii(one.text) ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE;
        // libpng copies all of it and changes nothing; its types are older than const.
        view.key = const_cast<char*>(one.key.c_str());
        view.text = const_cast<char*>(one.text.c_str());
        if (view.compression == PNG_ITXT_COMPRESSION_NONE)
            view.itxt_length = one.text.size();
        else
            view.text_length = one.text.size();
        views.push_back(view);
    }
    return views;
}

inline std::uint32_t big_endian(std::span<const std::byte> four) {
    std::uint32_t value = 0;
    for (const std::byte byte : four.first(4)) value = value << 8 | std::to_integer<std::uint32_t>(byte);
    return value;
}

/// What a chunk tEXt or iTXt says; false where it is packed, or no such chunk.
inline bool read_png_text(std::string_view type, std::string_view data, PngText& found) {
    const std::size_t end = data.find('\0');
    if (end == std::string_view::npos) return false;
    found.key = data.substr(0, end);
    std::string_view rest = data.substr(end + 1);
    if (type == "iTXt") {  // packed or not, how, a language, the key in that language, the text
        if (rest.size() < 2 || rest[0] != 0) return false;
        rest.remove_prefix(2);
        for (int skipped = 0; skipped < 2; ++skipped) {
            const std::size_t zero = rest.find('\0');
            if (zero == std::string_view::npos) return false;
            rest.remove_prefix(zero + 1);
        }
    }
    found.text = rest;
    return true;
}

}  // namespace detail

STRATA_INLINE Picture decode_png(std::span<const std::byte> file, const ImageHeader& header, std::string_view source,
                                 const DecodeLimits& limits) {
    require_within(limits, header.stored, source);
    detail::PngReader reader{file};
    if (!detail::read_png_head(reader, limits)) reader.refuse(source);
    Picture picture{header.stored.width, header.stored.height, ::png_get_channels(reader.png, reader.info), {}};
    const auto stride = static_cast<std::size_t>(picture.width * picture.channels);
    if ((picture.channels != 3 && picture.channels != 4) || ::png_get_rowbytes(reader.png, reader.info) != stride)
        detail::throw_fault(Errc::picture_undecided, source, "libpng did not turn it into RGB");
    picture.pixels.resize(stride * static_cast<std::size_t>(picture.height));
    const int passes = ::png_get_interlace_type(reader.png, reader.info) == PNG_INTERLACE_NONE ? 1 : 7;
    if (!detail::read_png_rows(reader, picture.pixels.data(), stride, static_cast<png_uint_32>(picture.height), passes))
        reader.refuse(source);
    return picture;
}

STRATA_INLINE std::vector<std::byte> encode_png(std::int64_t width, std::int64_t height,
                                                std::span<const std::uint8_t> rgb, std::span<const PngText> texts) {
    constexpr std::int64_t largest = 1'000'000;  // libpng's own limit of an edge
    if (width < 1 || height < 1 || width > largest || height > largest ||
        rgb.size() != static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3)
        throw Error{Errc::bad_picture,
                    "a picture of " + std::to_string(width) + " x " + std::to_string(height) +
                        " pixels cannot be made of " + std::to_string(rgb.size()) + " bytes of RGB",
                    "pass width * height * 3 bytes and positive sizes"};
    std::vector<::png_text> views = detail::png_texts_of(texts);
    detail::PngOutput output;
    detail::PngWriter writer;
    if (!detail::write_png(writer, output, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
                           rgb.data(), views.data(), views.size())) {
        if (output.failed) throw std::bad_alloc{};
        throw Error{Errc::bad_picture, std::string{"a picture cannot be written: "} + writer.message.data(),
                    "pass another picture"};
    }
    return std::move(output.bytes);
}

STRATA_INLINE std::vector<PngText> png_texts(std::span<const std::byte> file) {
    constexpr std::size_t signature = 8, around = 12;  // a chunk's length, type and check sum
    std::vector<PngText> texts;
    if (file.size() < signature || ::png_sig_cmp(reinterpret_cast<png_const_bytep>(file.data()), 0, signature) != 0)
        return texts;
    for (auto rest = file.subspan(signature); rest.size() >= around;) {
        const std::uint32_t length = detail::big_endian(rest);
        if (length > rest.size() - around) break;
        const auto summed = rest.subspan(4, std::size_t{length} + 4);
        const std::string_view text{reinterpret_cast<const char*>(summed.data()), summed.size()};
        const auto sum =
            ::crc32_z(::crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(summed.data()), summed.size());
        if (sum != detail::big_endian(rest.subspan(std::size_t{length} + 8))) break;
        const std::string_view type = text.substr(0, 4);
        if (type == "IDAT") break;
        PngText found;
        if ((type == "tEXt" || type == "iTXt") && detail::read_png_text(type, text.substr(4), found))
            texts.push_back(std::move(found));
        rest = rest.subspan(std::size_t{length} + around);
    }
    return texts;
}

}  // namespace strata::pictures
