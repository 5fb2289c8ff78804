#pragma once
// strata/config/impl/reading.ipp - keys held against rows: known, of their type, in their range, spoken of once.

#include <algorithm>
#include <utility>

#include <strata/config/impl/document.ipp>
#include <strata/config/impl/key.ipp>
#include <strata/config/impl/reading_values.ipp>
#include <strata/config/key.hpp>
#include <strata/config/reading.hpp>

namespace strata::config {

STRATA_INLINE Reading::Reading(const Node& root, const FormatTable& table, Findings& findings)
    : root_{&root}, table_{&table}, findings_{&findings}, first_finding_{findings.all().size()} {
    if (!root.is(NodeKind::object))
        findings.refuse(root, Errc::bad_value,
                        "is " + std::string{name_of(root.kind())} + ", and no " + table.name() +
                            " configuration, which is an object",
                        "write keys and values; " + table.page() + " has the keys there are");
    else
        look(root, "");
}

STRATA_INLINE void Reading::look(const Node& object, const std::string& path) {
    for (const Node::Member& member : object.members()) {
        const std::string child = path.empty() ? member.key : path + "." + member.key;
        if (const KeyRow* const row = table_->find(child))
            look_at_value(member.value, *row, child);
        else if (detail::is_remark(member.key))
            findings_->no_effect(member.value, "a remark");
        else
            look_at_unknown(member, path);
    }
}

STRATA_INLINE void Reading::look_at_unknown(const Node::Member& member, const std::string& parent) {
    const Node& node = member.value;
    const auto elsewhere = table_->elsewhere(member.key, parent);
    if (!elsewhere.empty()) {
        const std::string_view place = elsewhere.front()->parent();
        const std::string where = place.empty() ? "the top level" : "`" + std::string{place} + "`";
        const std::string words = "a key of " + where + ", which " + table_->name() + " does not read here";
        if (parent.empty() && table_->is_strict(parent))
            findings_->refuse(node, Errc::unknown_key, "is " + words,
                              elsewhere.size() == 1 ? "move it there" : "remove it");
        else  // a name that several places have, or one of another block, may be meant otherwise
            findings_->warn_no_effect(
                node, words, elsewhere.size() == 1 && detail::reaches(place, parent) ? "move it there" : "remove it");
        return;
    }
    const std::string_view near = detail::probably_meant(member.key, table_->names_in(parent));
    const bool asks_nothing = node.is(NodeKind::null) || (node.is(NodeKind::flag) && node.flag() == false);
    if (!near.empty() && !asks_nothing) {
        findings_->refuse(node, Errc::unknown_key, "is unknown", "did you mean '" + std::string{near} + "'");
    } else if (!asks_nothing && table_->is_strict(parent)) {
        findings_->refuse(node, Errc::unknown_key, "is unknown",
                          "remove it; " + table_->page() + " has the keys there are");
    } else {
        findings_->warn_no_effect(node, "unknown to strata, and to " + table_->name() + " as far as strata knows",
                                  near.empty() ? "remove it" : "did you mean '" + std::string{near} + "'");
    }
}

STRATA_INLINE bool Reading::fits(const Node& node, const KeyRow& row) {
    const auto refuse = [&](std::string fix) {
        findings_->refuse(node, Errc::bad_value, "is " + node.shown() + ", not " + expected(row), std::move(fix));
        return false;
    };
    const std::string instead =
        row.fallback.empty() ? "write " + expected(row) : "write " + expected(row) + "; the default is " + row.fallback;
    if (row.can_be_flag && detail::flag_in(node)) return true;
    if (row.can_be_list && node.is(NodeKind::list)) return true;
    switch (row.kind) {
        case ValueKind::flag:
            return detail::flag_in(node) ? true : refuse(instead);
        case ValueKind::whole:
        case ValueKind::number: {
            const auto number = row.kind == ValueKind::number ? node.number() : [&]() -> std::optional<double> {
                const auto whole = node.whole();
                return whole ? std::optional<double>{static_cast<double>(*whole)} : std::nullopt;
            }();
            return number && row.range.holds(*number) ? true : refuse(instead);
        }
        case ValueKind::text:
            return detail::is_scalar(node) ? true : refuse(instead);
        case ValueKind::choice: {
            if (!detail::is_scalar(node)) return refuse(instead);
            std::vector<std::string_view> names;
            for (const std::string& choice : row.choices) {
                if (choice == node.scalar() || (row.any_case && detail::lower(choice) == detail::lower(node.scalar())))
                    return true;
                names.push_back(choice);
            }
            const std::string_view near = nearest_name(node.scalar(), names);
            if (!near.empty()) return refuse("did you mean `" + std::string{near} + "`?");
            return refuse(row.fallback.empty() ? "write one of them" : "remove it: the default is " + row.fallback);
        }
        case ValueKind::list:
            return node.is(NodeKind::list) ? true : refuse(instead);
        case ValueKind::object:
            return node.is(NodeKind::object) ? true : refuse("write " + detail::object_for(node, row, *table_));
        case ValueKind::any:
            break;
    }
    return true;
}

STRATA_INLINE void Reading::look_at_value(const Node& node, const KeyRow& row, const std::string& path) {
    if (node.is(NodeKind::null)) {
        findings_->no_effect(node, "as if it were absent");
        return;
    }
    const KeyRow* const newer = row.renamed.empty() ? &row : table_->find(row.renamed);
    const bool is_section = newer->kind == ValueKind::object || newer->kind == ValueKind::list;
    const bool is_auto = detail::is_scalar(node) && node.scalar() == "auto" && (newer->can_be_auto || !is_section) &&
                         std::find(newer->choices.begin(), newer->choices.end(), "auto") == newer->choices.end() &&
                         newer->kind != ValueKind::text;
    if (!is_auto && !fits(node, *newer)) return;
    const std::string& final_path = row.renamed.empty() ? path : row.renamed;
    if (const auto [before, is_new] =
            given_.try_emplace(final_path, Given{&node, newer, is_auto, row.renamed.empty() ? nullptr : &row});
        !is_new) {
        findings_->refuse(node, Errc::bad_value,
                          "and " + before->second.node->pointer() + " are the same key, one by its old name",
                          "keep " + std::string{newer->name()});
        return;
    }
    order_.push_back(final_path);
    if (newer->kind == ValueKind::object && node.is(NodeKind::object)) look(node, final_path);
}

STRATA_INLINE const Reading::Given* Reading::given(std::string_view path) const {
    const auto found = given_.find(path);
    return found == given_.end() ? nullptr : &found->second;
}
STRATA_INLINE const Node* Reading::at(std::string_view path) const {
    const Given* const found = given(path);
    return found == nullptr || found->is_auto ? nullptr : found->node;
}
STRATA_INLINE bool Reading::is_auto(std::string_view path) const {
    const Given* const found = given(path);
    return found != nullptr && found->is_auto;
}
STRATA_INLINE std::optional<bool> Reading::flag(std::string_view path) const {
    const Node* const node = at(path);
    return node == nullptr ? std::nullopt : detail::flag_in(*node);
}
STRATA_INLINE std::optional<double> Reading::number(std::string_view path) const {
    const Node* const node = at(path);
    return node == nullptr ? std::nullopt : node->number();
}
STRATA_INLINE std::optional<std::int64_t> Reading::whole(std::string_view path) const {
    const Node* const node = at(path);
    return node == nullptr ? std::nullopt : node->whole();
}
STRATA_INLINE std::string Reading::text(std::string_view path) const {
    const Given* const found = given(path);
    if (found == nullptr || found->is_auto) return {};
    return found->row->any_case ? detail::lower(found->node->scalar()) : found->node->scalar();
}

STRATA_INLINE const Reading::Given* Reading::untold(std::string_view path) {
    const Given* const found = given(path);
    if (found == nullptr || !told_.emplace(path).second) return nullptr;
    return found;
}

STRATA_INLINE void Reading::tell(std::string_view path, Effect effect, bool warns, std::string to, std::string words,
                                 std::string fix) {
    if (is_auto(path) && effect != Effect::none) return;  // finish() has its word for that
    const Given* const found = untold(path);
    if (found == nullptr) return;
    if (found->old != nullptr) {
        words = "the old name of `" + std::string{found->row->path} + "`" + (words.empty() ? "" : "; " + words);
        const bool has_moved = found->old->parent() != found->row->parent();
        const std::string now{has_moved ? std::string_view{found->row->path} : found->row->name()};
        if (fix.empty()) fix = "write '" + now + "'";
        warns = true;
        if (effect == Effect::acts) effect = Effect::mapped;
    }
    const Node& node = *found->node;
    if (effect == Effect::acts)
        findings_->acts(node, std::move(to), std::move(words));
    else if (effect == Effect::mapped && warns)
        findings_->warn_mapped(node, std::move(to), std::move(words), std::move(fix));
    else if (effect == Effect::mapped)
        findings_->mapped(node, std::move(to), std::move(words));
    else if (warns)
        findings_->warn_no_effect(node, std::move(words), std::move(fix));
    else
        findings_->no_effect(node, std::move(words));
}

STRATA_INLINE void Reading::acts(std::string_view path, std::string to, std::string words) {
    tell(path, Effect::acts, false, std::move(to), std::move(words), {});
}
STRATA_INLINE void Reading::mapped(std::string_view path, std::string to, std::string words) {
    tell(path, Effect::mapped, false, std::move(to), std::move(words), {});
}
STRATA_INLINE void Reading::warn_mapped(std::string_view path, std::string to, std::string words, std::string fix) {
    tell(path, Effect::mapped, true, std::move(to), std::move(words), std::move(fix));
}
STRATA_INLINE void Reading::none(std::string_view path, std::string words) {
    tell(path, Effect::none, false, {}, std::move(words), {});
}
STRATA_INLINE void Reading::warn_none(std::string_view path, std::string words, std::string fix) {
    tell(path, Effect::none, true, {}, std::move(words), std::move(fix));
}
STRATA_INLINE void Reading::refuse(std::string_view path, Errc code, std::string what, std::string fix) {
    const Given* const found = given(path);
    if (found == nullptr) return;
    told_.emplace(path);
    findings_->refuse(*found->node, code, std::move(what), std::move(fix));
}
STRATA_INLINE void Reading::none_within(std::string_view path, const std::string& words) {
    const std::string prefix = std::string{path} + ".";
    for (const std::string& one : order_)
        if (one.starts_with(prefix) && !given(one)->node->is(NodeKind::object)) none(one, words);
}

STRATA_INLINE void Reading::finish(Intent& intent) {
    for (const std::string& path : order_) {
        const Given& one = *given(path);
        const KeyRow& row = *one.row;
        const Node& node = *one.node;
        const bool is_told = told_.contains(path);
        if (one.is_auto) {
            if (!is_told && row.effect != Effect::none) intent.automatic.push_back({path, row.to});
            if (is_told) continue;
            if (row.effect == Effect::none)
                none(path, table_->why(row));
            else
                findings_->mapped(node, row.to,
                                  "auto: whoever runs it decides, and without that strata's default holds");
            continue;
        }
        if (is_told) continue;
        if (row.kind == ValueKind::object && !node.members().empty()) {  // its keys speak for it
            const KeyRow* const enabled = table_->find(path + ".enabled");
            const bool has_switch = enabled != nullptr && enabled->name() == "enabled";
            if (row.warns && (!has_switch || is_on(path + ".enabled"))) warn_none(path, table_->why(row));
            continue;
        }
        if (row.effect == Effect::acts) {
            if (row.is_option) intent.set(row.to, detail::scalar_in(node, row.kind), node.place());
            acts(path, row.to, row.why);
        } else if (row.effect == Effect::mapped) {
            mapped(path, row.to, table_->why(row));
        } else if (row.warns && detail::asks(node, row)) {
            warn_none(path, table_->why(row));
        } else {
            none(path, table_->why(row));
        }
    }
    findings_->sort_from(first_finding_);
}

}  // namespace strata::config
