#pragma once
// strata/config/impl/document_json_tokens.ipp - texts and numbers of JSON, and where they stand.

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>

#include <strata/config/document.hpp>
#include <strata/config/impl/document.ipp>
#include <strata/core/printable.hpp>

namespace strata::config::detail {

/// What is wrong with a text, before its file and what stands around it are named.
struct JsonFault {
    Mark mark;
    std::string what;
    std::string fix;
};

/// A place in a text that goes on from token to token.
class JsonCursor {
protected:
    explicit JsonCursor(std::string_view text) : text_{text} {}

    [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
    [[nodiscard]] char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    [[nodiscard]] bool looking_at(std::string_view word) const { return text_.substr(at_).starts_with(word); }
    [[nodiscard]] Mark mark() const { return {line_, column_}; }
    void take(std::size_t bytes = 1) {
        for (; bytes > 0 && at_ < text_.size(); --bytes, ++at_) {
            if (text_[at_] == '\n') {
                ++line_;
                column_ = 1;
            } else if ((static_cast<unsigned char>(text_[at_]) & 0xC0U) != 0x80U) {
                ++column_;
            }
        }
    }
    /// Up to the next of these characters, or the end; at least one character.
    [[nodiscard]] std::string_view up_to(std::string_view characters) const {
        return text_.substr(at_, std::min(text_.find_first_of(characters, at_ + 1), text_.size()) - at_);
    }
    /// From an opening to its closing word, both included; up to the end of the line where that does not come on it.
    [[nodiscard]] std::string_view up_to_closing(std::string_view closing) const {
        const std::string_view line = text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_);
        const std::size_t end = line.find(closing);
        return end == std::string_view::npos ? line : line.substr(0, end + closing.size());
    }
    /// Beyond the next `closing`; false: there is none.
    bool take_beyond(std::string_view closing, std::size_t from) {
        const std::size_t end = text_.find(closing, at_ + from);
        if (end == std::string_view::npos) return false;
        take(end + closing.size() - at_);
        return true;
    }

    [[noreturn]] void fail(std::string what, std::string fix) const { fail(mark(), std::move(what), std::move(fix)); }
    [[noreturn]] static void fail(Mark where, std::string what, std::string fix) {
        throw JsonFault{where, std::move(what), std::move(fix)};
    }

    static bool is_word(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }
    /// What stands here up to a blank or a character of JSON's, for a message.
    [[nodiscard]] std::string shown_word() const { return core::printable(up_to(" \t\r\n,:[]{}\"").substr(0, 40)); }

    /// The escapes of JSON; half a pair of UTF-16 is none.
    std::string string() {
        const Mark begin = mark();
        std::string all;
        take();
        while (peek() != '"') {
            if (at_ >= text_.size() || peek() == '\n')
                fail(begin, "a text does not end on its line", "close it with a double quote");
            if (static_cast<unsigned char>(peek()) < 0x20)
                fail("a control character inside of a text", "write \\t or \\u0009 instead, for instance");
            if (peek() != '\\') {
                all += peek();
                take();
                continue;
            }
            constexpr std::string_view escapes = "\"\\/bfnrt";
            constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
            const std::size_t which = escapes.find(peek(1));
            if (peek(1) == 'u') {
                all += utf8();
            } else if (peek(1) != '\0' && which != std::string_view::npos) {
                all += meant[which];
                take(2);
            } else {
                fail("a backslash that begins none of JSON's escapes", "write two backslashes for one");
            }
        }
        take();
        return all;
    }
    std::uint32_t unit() {
        std::uint32_t all = 0;
        for (std::size_t i = 2; i < 6; ++i) {
            const std::size_t digit = std::string_view{"0123456789abcdef0123456789ABCDEF"}.find(peek(i));
            if (digit == std::string_view::npos || peek(i) == '\0')
                fail("\\u without four hexadecimal digits", "write \\u00e9, for instance, or the character itself");
            all = all * 16 + static_cast<std::uint32_t>(digit % 16);
        }
        return all;
    }
    std::string utf8() {
        std::uint32_t code = unit();
        const Mark begin = mark();
        take(6);
        if (code >= 0xD800 && code < 0xDC00 && looking_at("\\u")) {
            const std::uint32_t low = unit();
            if (low >= 0xDC00 && low < 0xE000) {
                code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
                take(6);
            }
        }
        if (code >= 0xD800 && code < 0xE000) fail(begin, "half of a pair of \\u escapes", "write the character itself");
        if (code == 0) fail(begin, "the character \\u0000", "write the text without it");
        std::string bytes;
        const auto put = [&](std::uint32_t byte) { bytes += static_cast<char>(byte); };
        if (code < 0x80) {
            put(code);
        } else if (code < 0x800) {
            put(0xC0U | code >> 6U);
            put(0x80U | (code & 0x3FU));
        } else if (code < 0x10000) {
            put(0xE0U | code >> 12U);
            put(0x80U | (code >> 6U & 0x3FU));
            put(0x80U | (code & 0x3FU));
        } else {
            put(0xF0U | code >> 18U);
            put(0x80U | (code >> 12U & 0x3FU));
            put(0x80U | (code >> 6U & 0x3FU));
            put(0x80U | (code & 0x3FU));
        }
        return bytes;
    }

    /// The digits of a number as they stand.
    std::string digits_of_number() {
        const std::size_t length = std::min(text_.find_first_not_of("+-.0123456789eE", at_), text_.size()) - at_;
        const std::string digits{text_.substr(at_, length)};
        const std::size_t first = digits[0] == '-' ? 1 : 0;
        const bool leading_zero =
            digits.size() > first + 1 && digits[first] == '0' && std::isdigit(digits[first + 1]) != 0;
        if (!number_of(digits) || leading_zero || digits.back() == '.' || is_word(peek(length))) {
            fail("`" + shown_word() + "` is no number", "write digits, as in 0.0005 or 5e-4; text in double quotes");
        }
        take(length);
        return digits;
    }

private:
    std::string_view text_;
    std::size_t at_ = 0;
    int line_ = 1;
    int column_ = 1;
};

}  // namespace strata::config::detail
