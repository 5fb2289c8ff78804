#pragma once
// strata/tables/impl/parquet_page.ipp - the record PageHeader, and one call for each codec.

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include <brotli/decode.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include <strata/core/error.hpp>
#include <strata/storage/gzip.hpp>
#include <strata/tables/detail/parquet_page.hpp>
#include <strata/tables/detail/thrift_reader.hpp>

namespace strata::tables::detail::parquet {

/// CompressionCodec of parquet.thrift.
enum class Codec : std::int32_t { none, snappy, gzip, lzo, brotli, lz4, zstd, lz4_raw };

class PageHeaderParser {
public:
    PageHeaderParser(std::span<const std::byte> bytes, const Place& place) : in_{bytes, place} {}

    PageHeader parse() {
        std::int32_t type = -1;
        in_.record([&](Field field) {
            switch (field.id) {
                case 1:
                    type = in_.int32(field.type);
                    return true;
                case 2:
                    unpacked_ = count(field.type);
                    return true;
                case 3:
                    packed_ = count(field.type);
                    return true;
                case 4:
                    header_.crc = std::bit_cast<std::uint32_t>(in_.int32(field.type));
                    return true;
                case 5:
                    part(field.type, PageType::data, [&](Field inner) { return data(inner); });
                    return true;
                case 7:
                    part(field.type, PageType::dictionary, [&](Field inner) { return dictionary(inner); });
                    return true;
                case 8:
                    part(field.type, PageType::data_v2, [&](Field inner) { return data_v2(inner); });
                    return true;
                default:
                    return false;
            }
        });
        if (type < 0 || type > 3) in_.place().damaged("a page has the unknown type " + std::to_string(type));
        header_.type = static_cast<PageType>(type);
        const bool described = header_.type == PageType::index || (part_ == type && values_);
        if (!unpacked_ || !packed_ || !described) in_.place().damaged("the header of a page does not describe it");
        header_.unpacked = *unpacked_;
        header_.packed = *packed_;
        header_.values = values_.value_or(0);
        header_.header_bytes = in_.position();
        return header_;
    }

private:
    using Field = ThriftReader::Field;

    template <class Visit>
    void part(ThriftReader::Type type, PageType of, Visit&& visit) {
        part_ = static_cast<int>(of);
        values_.reset();
        in_.record(type, visit);
    }
    bool data(Field field) {
        switch (field.id) {
            case 1:
                values_ = count(field.type);
                return true;
            case 2:
                header_.encoding = in_.int32(field.type);
                return true;
            case 3:
                header_.level_encoding = in_.int32(field.type);
                return true;
            case 4:
                header_.repetition_encoding = in_.int32(field.type);
                return true;
            default:
                return false;
        }
    }
    bool dictionary(Field field) {
        switch (field.id) {
            case 1:
                values_ = count(field.type);
                return true;
            case 2:
                header_.encoding = in_.int32(field.type);
                return true;
            default:
                return false;
        }
    }
    bool data_v2(Field field) {
        switch (field.id) {
            case 1:
                values_ = count(field.type);
                return true;
            case 2:
                header_.nulls = count(field.type);
                return true;
            case 4:
                header_.encoding = in_.int32(field.type);
                return true;
            case 5:
                header_.definition_bytes = count(field.type);
                return true;
            case 6:
                header_.repetition_bytes = count(field.type);
                return true;
            case 7:
                header_.is_packed = in_.boolean(field.type);
                return true;
            default:
                return false;
        }
    }
    std::uint32_t count(ThriftReader::Type type) {
        const std::int32_t number = in_.int32(type);
        if (number < 0) in_.place().damaged("the header of a page counts " + std::to_string(number) + " of something");
        return static_cast<std::uint32_t>(number);
    }
    ThriftReader in_;
    PageHeader header_;
    int part_ = -1;  // the last one seen; its number is its page's type
    std::optional<std::uint32_t> unpacked_;
    std::optional<std::uint32_t> packed_;
    std::optional<std::uint32_t> values_;
};

STRATA_INLINE PageHeader parse_page_header(std::span<const std::byte> bytes, const Place& place) {
    return PageHeaderParser{bytes, place}.parse();
}

STRATA_INLINE std::uint32_t crc32_of(std::span<const std::byte> bytes) noexcept {
    return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

inline const char* as_chars(std::span<const std::byte> bytes) noexcept {
    return reinterpret_cast<const char*>(bytes.data());
}
inline char* as_chars(std::span<std::byte> bytes) noexcept { return reinterpret_cast<char*>(bytes.data()); }

/// A block without frame. False: damaged, or of another size.
inline bool unpack_lz4_block(std::span<const std::byte> packed, std::span<std::byte> out) {
    // Sizes fit an int: those of pages are 31 bits.
    const int size = static_cast<int>(out.size());
    return ::LZ4_decompress_safe(as_chars(packed), as_chars(out), static_cast<int>(packed.size()), size) == size;
}

/// Hadoop's frames, one after the other: how many bytes a frame gives, then blocks with their packed size before them
/// until it has given them; both numbers 32 bits, the high byte first. False: these are no such frames.
inline bool unpack_lz4_hadoop(std::span<const std::byte> packed, std::span<std::byte> out) {
    const auto number = [&](std::uint64_t& value) {
        if (packed.size() < 4) return false;
        value = 0;
        for (int i = 0; i < 4; ++i)
            value = value << 8 | static_cast<std::uint64_t>(packed[static_cast<std::size_t>(i)]);
        packed = packed.subspan(4);
        return true;
    };
    while (!packed.empty()) {
        std::uint64_t frame = 0;
        if (!number(frame) || frame > out.size()) return false;
        while (frame > 0) {
            std::uint64_t block = 0;
            if (!number(block) || block == 0 || block > packed.size()) return false;
            const auto most = static_cast<int>(frame);
            const int got = ::LZ4_decompress_safe(as_chars(packed), as_chars(out), static_cast<int>(block), most);
            if (got <= 0) return false;
            out = out.subspan(static_cast<std::size_t>(got));
            packed = packed.subspan(static_cast<std::size_t>(block));
            frame -= static_cast<std::uint64_t>(got);
        }
    }
    return out.empty();
}

inline bool unpack_gzip(std::span<const std::byte> packed, std::span<std::byte> out) {
    try {
        const std::vector<std::byte> plain = storage::gzip_decompress(packed, out.size());
        if (plain.size() != out.size()) return false;
        std::copy(plain.begin(), plain.end(), out.begin());
        return true;
    } catch (const Error&) {
        return false;
    }
}

inline bool unpack_with(Codec codec, std::span<const std::byte> packed, std::span<std::byte> out) {
    switch (codec) {
        case Codec::snappy: {
            std::size_t size = out.size();
            return ::snappy_uncompress(as_chars(packed), packed.size(), as_chars(out), &size) == SNAPPY_OK &&
                   size == out.size();
        }
        case Codec::gzip:
            return unpack_gzip(packed, out);
        case Codec::brotli: {
            std::size_t size = out.size();
            return ::BrotliDecoderDecompress(packed.size(), reinterpret_cast<const std::uint8_t*>(packed.data()), &size,
                                             reinterpret_cast<std::uint8_t*>(out.data())) ==
                       BROTLI_DECODER_RESULT_SUCCESS &&
                   size == out.size();
        }
        case Codec::lz4:
            return unpack_lz4_hadoop(packed, out) || unpack_lz4_block(packed, out);
        case Codec::lz4_raw:
            return unpack_lz4_block(packed, out);
        case Codec::zstd:
            return ::ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size()) == out.size();
        default:
            return false;
    }
}

STRATA_INLINE bool cannot_unpack_to(std::int32_t codec, std::span<const std::byte> packed, std::uint64_t unpacked) {
    if (unpacked == 0) return false;
    switch (static_cast<Codec>(codec)) {
        case Codec::none:
            return packed.size() != unpacked;
        case Codec::snappy: {
            std::size_t size = 0;
            return ::snappy_uncompressed_length(as_chars(packed), packed.size(), &size) != SNAPPY_OK ||
                   size != unpacked;
        }
        case Codec::gzip:
            return unpacked > packed.size() * 1032;
        case Codec::lz4:
        case Codec::lz4_raw:
            return unpacked > packed.size() * 255;
        case Codec::zstd: {
            const unsigned long long size = ::ZSTD_getFrameContentSize(packed.data(), packed.size());
            // Of several frames this is the first.
            return size == ZSTD_CONTENTSIZE_ERROR || (size != ZSTD_CONTENTSIZE_UNKNOWN && size > unpacked);
        }
        default:
            return false;
    }
}

STRATA_INLINE void unpack(std::int32_t codec, std::span<const std::byte> packed, std::span<std::byte> out,
                          const Place& place) {
    constexpr const char* names[] = {"plain data", "snappy", "gzip", "LZO", "brotli", "LZ4", "zstd", "LZ4_RAW"};
    if (codec < 0 || codec >= static_cast<std::int32_t>(std::size(names)))
        place.unsupported("its codec has the unknown number " + std::to_string(codec));
    const Codec known = static_cast<Codec>(codec);
    if (known == Codec::lzo) place.unsupported("its codec is LZO");
    if (packed.empty() && out.empty()) return;
    if (known == Codec::none && packed.size() == out.size()) {
        std::memcpy(out.data(), packed.data(), out.size());
        return;
    }
    if (!unpack_with(known, packed, out))
        place.damaged("its " + std::to_string(packed.size()) + " bytes of " + names[codec] + " do not unpack to " +
                      std::to_string(out.size()));
}

}  // namespace strata::tables::detail::parquet
