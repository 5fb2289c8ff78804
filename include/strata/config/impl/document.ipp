#pragma once
// strata/config/impl/document.ipp - values with places, and how a tree of them is made.

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <strata/config/document.hpp>
#include <strata/core/error.hpp>

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

// ---- DocumentBuilder --------------------------------------------------------------------------------------------

STRATA_INLINE DocumentBuilder::DocumentBuilder(std::string source, Twice twice)
    : source_{std::make_shared<const std::string>(std::move(source))}, twice_{twice} {}

STRATA_INLINE std::string DocumentBuilder::pointer() const {
    std::string all;
    for (const Open& open : open_)
        all += "/" + (open.node.is(NodeKind::object) ? detail::pointer_token(open.key)
                                                     : std::to_string(open.node.elements_.size()));
    return all;
}

STRATA_INLINE const Node& DocumentBuilder::last() const {
    if (open_.empty()) return *root_;
    const Open& open = open_.back();
    return open.node.is(NodeKind::object) ? open.node.members_[open.index.at(open.key)].value
                                          : open.node.elements_.back();
}

STRATA_INLINE Node DocumentBuilder::made(NodeKind kind, Mark mark) {
    if (++size_ > largest)
        throw Error{Errc::unreadable_config, *source_ + " has more than " + std::to_string(largest) + " values",
                    "give a configuration, not data"};
    Node node;
    node.kind_ = kind;
    node.mark_ = mark;
    node.pointer_ = pointer();
    node.source_ = source_;
    return node;
}

STRATA_INLINE void DocumentBuilder::key(std::string name, Mark mark) {
    assert(!open_.empty() && open_.back().node.is(NodeKind::object));
    if (name.find('\0') != std::string::npos)  // messages would end there
        throw Error{Errc::bad_value,
                    *source_ + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column) +
                        ": a key holds the character \\u0000",
                    "write the key without it"};
    open_.back().key = std::move(name);
    open_.back().key_mark = mark;
}

STRATA_INLINE void DocumentBuilder::begin(NodeKind kind, Mark mark) {
    if (open_.size() >= deepest)
        throw Error{Errc::unreadable_config,
                    *source_ + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column) +
                        ": objects and lists stand in each other more than " + std::to_string(deepest) + " deep",
                    "give a configuration, which has a few levels"};
    open_.push_back({made(kind, mark), {}, {}, {}});
}

STRATA_INLINE void DocumentBuilder::add_member(Open& to, Node node) {
    const auto [found, is_new] = to.index.try_emplace(to.key, to.node.members_.size());
    if (is_new) {
        to.node.members_.push_back({to.key, to.key_mark, std::move(node)});
        return;
    }
    Node::Member& before = to.node.members_[found->second];
    const bool same = before.value.same_as(node);
    const std::string first = "line " + std::to_string(before.mark.line);
    if (same && twice_ == Twice::warn_where_same)
        remarks_.push_back(
            {to.key_mark, node.pointer_, false,
             "key '" + to.key + "' appears twice in one object, first on " + first + ", with the same value",
             "keep one of them"});
    else
        remarks_.push_back({to.key_mark, node.pointer_, true,
                            "key '" + to.key + "' appears twice in one object, first on " + first +
                                (same ? "" : ", with another value"),
                            "keep one of them"});
    before.mark = to.key_mark;
    before.value = std::move(node);
}

STRATA_INLINE void DocumentBuilder::put(Node node) {
    if (open_.empty()) {
        root_ = std::move(node);
    } else if (open_.back().node.is(NodeKind::object)) {
        add_member(open_.back(), std::move(node));
    } else {
        open_.back().node.elements_.push_back(std::move(node));
    }
}

STRATA_INLINE void DocumentBuilder::end() {
    assert(!open_.empty());
    Node node = std::move(open_.back().node);
    open_.pop_back();
    put(std::move(node));
}

STRATA_INLINE void DocumentBuilder::scalar(NodeKind kind, std::string text, Mark mark) {
    Node node = made(kind, mark);
    node.scalar_ = std::move(text);
    put(std::move(node));
}

STRATA_INLINE void DocumentBuilder::plain(std::string text, Mark mark) {
    NodeKind kind = NodeKind::text;
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
        kind = NodeKind::null;
    else if (text == "true" || text == "True" || text == "TRUE" || text == "false" || text == "False" ||
             text == "FALSE")
        kind = NodeKind::flag;
    else if (text != "inf" && text != "Infinity" && detail::number_of(text))
        kind = NodeKind::number;
    scalar(kind, std::move(text), mark);
}

STRATA_INLINE void DocumentBuilder::copy(const Node& node, Mark mark) {
    if (node.is(NodeKind::object)) {
        begin_object(mark);
        for (const Node::Member& member : node.members_) {
            key(member.key, member.mark);
            copy(member.value, member.value.mark_);
        }
        end();
    } else if (node.is(NodeKind::list)) {
        begin_list(mark);
        for (const Node& element : node.elements_) copy(element, element.mark_);
        end();
    } else {
        scalar(node.kind_, node.scalar_, mark);
    }
}

STRATA_INLINE void DocumentBuilder::merge(const Node& object) {
    const Node from = object;  // which may be a value of the open object
    for (const Node::Member& member : from.members_) {
        if (open_.back().index.contains(member.key)) continue;
        key(member.key, member.mark);
        copy(member.value, member.value.mark_);
    }
}

STRATA_INLINE Document DocumentBuilder::finish() {
    assert(open_.empty() && root_);
    return {*source_, std::move(*root_), std::move(remarks_)};
}

}  // namespace strata::config
