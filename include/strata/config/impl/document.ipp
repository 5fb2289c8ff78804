#pragma once
// strata/config/impl/document.ipp - values with places.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <system_error>

#include <strata/config/document.hpp>

namespace strata::config {

namespace detail {

/// A key in a JSON pointer (RFC 6901, section 3).
inline std::string pointer_token(std::string_view key) {
    std::string token;
    for (const char c : key) {
        if (c == '~')
            token += "~0";
        else if (c == '/')
            token += "~1";
        else
            token += c;
    }
    return token;
}

/// All of a text as a finite or infinite number; a leading plus sign and underscores are none of C++'s, and YAML's.
inline std::optional<double> number_of(std::string_view text) {
    const bool negative = text.starts_with('-');
    const std::string_view unsigned_text = negative || text.starts_with('+') ? text.substr(1) : text;
    if (unsigned_text.empty()) return std::nullopt;
    if (unsigned_text == ".inf" || unsigned_text == ".Inf" || unsigned_text == "Infinity" || unsigned_text == "inf")
        return negative ? -HUGE_VAL : HUGE_VAL;
    if (unsigned_text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
    double number = 0;
    const auto [end, error] =
        std::from_chars(unsigned_text.data(), unsigned_text.data() + unsigned_text.size(), number);
    if (end != unsigned_text.data() + unsigned_text.size() ||
        !(unsigned_text[0] == '.' || std::isdigit(unsigned_text[0])))
        return std::nullopt;
    if (error == std::errc::result_out_of_range)  // 1e999, and 1e-999, which is 0
        number = std::abs(std::strtod(std::string{unsigned_text}.c_str(), nullptr));
    if (error != std::errc{} && error != std::errc::result_out_of_range) return std::nullopt;
    return negative ? -number : number;
}

inline std::optional<bool> flag_of(std::string_view text) {
    for (const std::string_view yes : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
        if (text == yes) return true;
    for (const std::string_view no : {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
        if (text == no) return false;
    return std::nullopt;
}

}  // namespace detail

STRATA_INLINE std::string_view name_of(NodeKind kind) noexcept {
    switch (kind) {
        case NodeKind::null:
            return "null";
        case NodeKind::flag:
            return "true or false";
        case NodeKind::number:
            return "a number";
        case NodeKind::text:
            return "text";
        case NodeKind::list:
            return "a list";
        case NodeKind::object:
            break;
    }
    return "an object";
}

STRATA_INLINE const std::string& Node::source() const noexcept {
    static const std::string none;
    return source_ == nullptr ? none : *source_;
}

STRATA_INLINE const Node* Node::find(std::string_view key) const noexcept {
    const auto found =
        std::find_if(members_.rbegin(), members_.rend(), [&](const Member& one) { return one.key == key; });
    return found == members_.rend() ? nullptr : &found->value;
}

STRATA_INLINE const Node* Node::at(std::string_view path) const noexcept {
    const Node* node = this;
    while (node != nullptr && !path.empty()) {
        const std::size_t dot = path.find('.');
        node = node->find(path.substr(0, dot));
        path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
    }
    return node;
}

STRATA_INLINE std::optional<bool> Node::flag() const {
    if (kind_ != NodeKind::flag && kind_ != NodeKind::text) return std::nullopt;
    return detail::flag_of(scalar_);
}

STRATA_INLINE std::optional<double> Node::number() const {
    if (kind_ != NodeKind::number && kind_ != NodeKind::text) return std::nullopt;
    return detail::number_of(scalar_);
}

STRATA_INLINE std::optional<std::int64_t> Node::whole() const {
    const std::optional<double> found = number();
    if (!found || *found != std::floor(*found)) return std::nullopt;
    std::int64_t exact = 0;  // all of its digits, where a double has not room for them
    const char* const end = scalar_.data() + scalar_.size();
    if (const auto read = std::from_chars(scalar_.data(), end, exact); read.ec == std::errc{} && read.ptr == end)
        return exact;
    if (std::abs(*found) > 9e18) return std::nullopt;
    return static_cast<std::int64_t>(*found);
}

STRATA_INLINE std::string Node::path() const {
    std::string path;
    for (std::size_t begin = 1; begin <= pointer_.size() && !pointer_.empty();) {
        const std::size_t end = std::min(pointer_.find('/', begin), pointer_.size());
        const std::string token = pointer_.substr(begin, end - begin);
        if (!token.empty() && token.find_first_not_of("0123456789") == std::string::npos) {
            path += "[" + token + "]";
        } else {
            if (!path.empty()) path += '.';
            for (std::size_t i = 0; i < token.size(); ++i) {
                if (token[i] != '~' || i + 1 == token.size()) {
                    path += token[i];
                } else {
                    path += token[++i] == '1' ? '/' : '~';
                }
            }
        }
        begin = end + 1;
    }
    return path;
}

STRATA_INLINE std::string Node::place() const {
    if (mark_.line == 0) return source();
    return source() + ":" + std::to_string(mark_.line) + ":" + std::to_string(mark_.column);
}

STRATA_INLINE bool Node::same_as(const Node& other) const {
    if (const auto a = number(), b = other.number(); a && b) return *a == *b;
    if (kind_ != other.kind_ || members_.size() != other.members_.size() || elements_.size() != other.elements_.size())
        return false;
    if (kind_ == NodeKind::flag) return flag() == other.flag();
    if (kind_ == NodeKind::text && scalar_ != other.scalar_) return false;
    for (std::size_t i = 0; i < elements_.size(); ++i)
        if (!elements_[i].same_as(other.elements_[i])) return false;
    return std::all_of(members_.begin(), members_.end(), [&](const Member& one) {
        const Node* const found = other.find(one.key);
        return found != nullptr && one.value.same_as(*found);
    });
}

STRATA_INLINE std::filesystem::path found_from(const std::filesystem::path& named, const std::filesystem::path& by) {
    std::error_code error;
    for (const std::filesystem::path& one : {named, by.parent_path() / named, by.parent_path() / named.filename()})
        if (std::filesystem::is_regular_file(one, error)) return one;
    return {};
}

}  // namespace strata::config
