#pragma once
// strata/datasets/byte_fields.hpp - a list of text and numbers as one byte string, for what ranks tell each other.

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata::datasets {

/// Appends fields, each as "<length>:<bytes>"; file names need not be valid in any encoding.
class FieldWriter {
public:
    FieldWriter& operator<<(std::string_view text) {
        bytes_ += std::to_string(text.size()) + ":";
        bytes_ += text;
        return *this;
    }
    FieldWriter& operator<<(std::integral auto number) { return *this << std::string_view{std::to_string(number)}; }
    [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

private:
    std::string bytes_;
};

/// Takes the fields of a FieldWriter in order. The bytes come from another rank of the same program and are trusted.
class FieldReader {
public:
    explicit FieldReader(std::string_view bytes) : left_{bytes} {}
    [[nodiscard]] bool empty() const noexcept { return left_.empty(); }
    [[nodiscard]] std::string text() {
        const std::size_t colon = left_.find(':');
        const auto length = static_cast<std::size_t>(parse(left_.substr(0, colon)));
        const std::string_view field = left_.substr(colon + 1, length);
        left_.remove_prefix(colon + 1 + length);
        return std::string{field};
    }
    [[nodiscard]] std::int64_t integer() { return parse(text()); }

private:
    static std::int64_t parse(std::string_view digits) {
        std::int64_t number = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
        return number;
    }
    std::string_view left_;
};

}  // namespace strata::datasets
