#pragma once
// strata/config/impl/shell_arithmetic.ipp - the sums of a shell's $((...)).

#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace strata::config::detail {

inline bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
inline bool is_name_part(char c) { return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// `a + b * (NAME - 2)` of `$((...))`. A name without a number is 0, as in a shell.
class ShellArithmetic {
public:
    using Lookup = std::function<std::string(const std::string& name)>;
    ShellArithmetic(std::string_view text, const Lookup& lookup) : text_{text}, lookup_{lookup} {}

    /// nullopt: not understood, or a division by 0.
    [[nodiscard]] std::optional<std::int64_t> value() {
        const std::int64_t sum = terms();
        skip_blanks();
        return failed_ || at_ != text_.size() ? std::nullopt : std::optional{sum};
    }

private:
    void skip_blanks() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    }
    bool take(char c) {
        skip_blanks();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    std::int64_t terms() {
        std::int64_t sum = factors();
        while (!failed_) {
            std::int64_t next = 0;
            if (take('+'))
                failed_ |= __builtin_add_overflow(sum, factors(), &next);
            else if (take('-'))
                failed_ |= __builtin_sub_overflow(sum, factors(), &next);
            else
                break;
            sum = next;
        }
        return sum;
    }
    std::int64_t factors() {
        std::int64_t product = atom();
        while (!failed_) {
            std::int64_t next = 0;
            if (take('*')) {
                failed_ |= __builtin_mul_overflow(product, atom(), &next);
            } else if (take('/') || take('%')) {
                const bool is_rest = text_[at_ - 1] == '%';
                const std::int64_t by = atom();
                failed_ |= by == 0 || by == -1;  // -1 has one overflow, and nobody divides steps by it
                if (!failed_) next = is_rest ? product % by : product / by;
            } else {
                break;
            }
            product = next;
        }
        return product;
    }
    std::int64_t atom() {
        constexpr int deepest = 64;
        skip_blanks();
        if (at_ < text_.size() && text_[at_] == '(' && depth_ < deepest) {
            ++at_;
            ++depth_;
            const std::int64_t inner = terms();
            --depth_;
            failed_ |= !take(')');
            return inner;
        }
        if (at_ < text_.size() && text_[at_] == '$') ++at_;
        std::size_t end = at_;
        while (end < text_.size() && is_name_part(text_[end])) ++end;
        std::string word{text_.substr(at_, end - at_)};
        failed_ |= word.empty();
        at_ = end;
        if (!word.empty() && is_name_start(word.front())) word = lookup_(word);
        std::int64_t number = 0;
        if (word.empty()) return number;
        const auto [behind, error] = std::from_chars(word.data(), word.data() + word.size(), number);
        failed_ |= error != std::errc{} || behind != word.data() + word.size();
        return number;
    }

    std::string_view text_;
    const Lookup& lookup_;
    std::size_t at_ = 0;
    int depth_ = 0;
    bool failed_ = false;
};

}  // namespace strata::config::detail
