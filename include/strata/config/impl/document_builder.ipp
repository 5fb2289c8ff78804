#pragma once
// strata/config/impl/document_builder.ipp - how a tree of values is made, and what it refuses.

#include <cassert>
#include <utility>

#include <strata/config/document.hpp>
#include <strata/config/impl/document.ipp>
#include <strata/core/error.hpp>

namespace strata::config {

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
