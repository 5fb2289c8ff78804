#pragma once
// strata/tokenizers/detail/protobuf_fields.hpp - ProtobufFields: the fields of a message of Protocol Buffers, one
// after the other.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace strata::tokenizers::detail {

///   while (fields.next()) if (fields.number == 1) use(fields.bytes);
///   if (fields.broken()) ...
class ProtobufFields {
public:
    explicit ProtobufFields(std::string_view message) : left_(message) {}

    /// The next field; false at the end, and where the message breaks off.
    [[nodiscard]] bool next() {
        if (left_.empty()) return false;
        const std::optional<std::uint64_t> tag = varint();
        if (!tag || (*tag >> 3) == 0) return fail();
        number = static_cast<int>(std::min<std::uint64_t>(*tag >> 3, 1 << 29));
        bytes = {};
        value = 0;
        switch (*tag & 7) {
            case 0: {
                const std::optional<std::uint64_t> read = varint();
                value = read.value_or(0);
                return read ? true : fail();
            }
            case 1:
                return take(8);
            case 2: {
                const std::optional<std::uint64_t> length = varint();
                return length ? take(*length) : fail();
            }
            case 5:
                return take(4);
            default:
                return fail();
        }
    }
    [[nodiscard]] bool broken() const noexcept { return broken_; }

    /// The four bytes of a field of type float.
    [[nodiscard]] float real() const noexcept {
        std::uint32_t bits = 0;
        for (std::size_t i = 4; i-- > 0 && bytes.size() == 4;) bits = bits << 8 | static_cast<unsigned char>(bytes[i]);
        return std::bit_cast<float>(bits);
    }

    int number = 0;
    std::uint64_t value = 0;  ///< of a whole number
    std::string_view bytes;   ///< of anything else

private:
    bool fail() noexcept {
        broken_ = true;
        return false;
    }
    bool take(std::uint64_t length) noexcept {
        if (length > left_.size()) return fail();
        bytes = left_.substr(0, length);
        left_.remove_prefix(length);
        return true;
    }
    std::optional<std::uint64_t> varint() noexcept {
        std::uint64_t read = 0;
        for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(left_.front());
            left_.remove_prefix(1);
            read |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80) return read;
        }
        return std::nullopt;
    }

    std::string_view left_;
    bool broken_ = false;
};

}  // namespace strata::tokenizers::detail
