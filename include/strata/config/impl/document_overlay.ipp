#pragma once
// strata/config/impl/document_overlay.ipp - documents over each other, and documents of flags.

#include <algorithm>
#include <utility>

#include <strata/config/document.hpp>
#include <strata/config/impl/document.ipp>

namespace strata::config {

STRATA_INLINE Node overlay(const Node& base, const Node& above) {
    if (!base.is(NodeKind::object) || !above.is(NodeKind::object)) return above.is(NodeKind::null) ? base : above;
    Node both = base;
    for (const Node::Member& member : above.members_) {
        const auto found = std::find_if(both.members_.begin(), both.members_.end(),
                                        [&](const Node::Member& one) { return one.key == member.key; });
        if (found == both.members_.end())
            both.members_.push_back(member);
        else
            found->value = overlay(found->value, member.value);
    }
    return both;
}

STRATA_INLINE Document document_of(const std::vector<GivenValue>& values, std::string source) {
    DocumentBuilder empty{source};
    empty.begin_object({});
    empty.end();
    Document all = empty.finish();
    for (const GivenValue& value : values) {
        DocumentBuilder one{value.source};
        std::size_t levels = 0;
        for (std::size_t begin = 0; begin <= value.path.size(); ++levels) {
            const std::size_t end = std::min(value.path.find('.', begin), value.path.size());
            one.begin_object({});
            one.key(value.path.substr(begin, end - begin), {});
            begin = end + 1;
        }
        one.plain(value.text, value.mark);
        for (; levels > 0; --levels) one.end();
        all.root = overlay(all.root, one.finish().root);
    }
    return all;
}

}  // namespace strata::config
