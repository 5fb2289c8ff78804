#pragma once
// strata/pictures/detail/header_bytes.hpp - the beginning of a picture file, read as far as its header goes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <strata/pictures/orientation.hpp>
#include <strata/pictures/picture_fault.hpp>

namespace strata::pictures::detail {

using Bytes = std::span<const std::byte>;

inline constexpr std::size_t header_window_bytes = 4096;
inline constexpr int most_header_windows = 256;
inline constexpr std::size_t most_header_bytes = std::size_t{1} << 20;
inline constexpr std::size_t most_metadata_bytes = std::size_t{1} << 18;  // of one EXIF or XMP part

inline std::uint32_t big_endian(Bytes bytes, std::size_t at, int count) noexcept {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i)
        value = (value << 8) | std::to_integer<std::uint32_t>(bytes[at + static_cast<std::size_t>(i)]);
    return value;
}
inline std::uint64_t big_endian_8(Bytes bytes, std::size_t at) noexcept {
    return (std::uint64_t{big_endian(bytes, at, 4)} << 32) | big_endian(bytes, at + 4, 4);
}
inline std::uint32_t little_endian(Bytes bytes, std::size_t at, int count) noexcept {
    std::uint32_t value = 0;
    for (int i = count - 1; i >= 0; --i)
        value = (value << 8) | std::to_integer<std::uint32_t>(bytes[at + static_cast<std::size_t>(i)]);
    return value;
}
inline bool has(Bytes bytes, std::size_t at, std::string_view text) noexcept {
    return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

/// The beginning of a file, window by window.
class HeaderBytes {
public:
    using Read = std::function<std::vector<std::byte>(std::uint64_t offset, std::size_t length)>;  // a ReadRange
    HeaderBytes(const Read& read, std::string_view source) : read_{read}, source_{source} {}

    /// `length` bytes from `offset` on, fewer where the file ends; valid until the next call.
    [[nodiscard]] Bytes at(std::uint64_t offset, std::size_t length) {
        if (offset < begin_ || offset + length > begin_ + window_.size()) {
            const bool file_ends_here = offset >= begin_ && window_.size() < asked_;
            if (!file_ends_here) fetch(offset, std::max(length, header_window_bytes));
        }
        if (offset < begin_ || offset - begin_ >= window_.size()) return {};
        const Bytes rest = Bytes{window_}.subspan(static_cast<std::size_t>(offset - begin_));
        return rest.first(std::min(length, rest.size()));
    }
    /// The same, but all of it. Throws Errc::bad_picture when the file ends before.
    [[nodiscard]] Bytes all_at(std::uint64_t offset, std::size_t length) {
        const Bytes bytes = at(offset, length);
        if (bytes.size() < length) throw_bad_picture(source_, "the file ends within its header");
        return bytes;
    }
    [[nodiscard]] std::string_view source() const noexcept { return source_; }

private:
    void fetch(std::uint64_t offset, std::size_t length) {
        total_ += length;
        if (++windows_ > most_header_windows || total_ > most_header_bytes)
            throw_fault(Errc::picture_too_large, source_, "its header is spread over more than 256 places or 1 MiB");
        window_ = read_(offset, length);
        begin_ = offset;
        asked_ = length;
    }

    const Read& read_;
    std::string_view source_;
    std::vector<std::byte> window_;
    std::uint64_t begin_ = 0;
    std::size_t asked_ = 0;  // bytes of the last request; fewer came when the file ends in this window
    int windows_ = 0;
    std::size_t total_ = 0;
};

/// EXIF data with or without the "Exif\0\0" that JPEG puts before it.
inline std::optional<Orientation> exif_part_orientation(Bytes part) noexcept {
    return exif_orientation(
        has(part, 0, std::string_view{"Exif\0", 5}) ? part.subspan(std::min<std::size_t>(6, part.size())) : part);
}

}  // namespace strata::pictures::detail
