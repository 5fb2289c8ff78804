#pragma once
// strata/config/impl/format_table.ipp - rows of a format, and the page and the JSON Schema that are made of them.

#include <algorithm>
#include <cmath>
#include <utility>

#include <strata/config/format_table.hpp>
#include <strata/config/impl/key.ipp>
#include <strata/config/key.hpp>

namespace strata::config {

STRATA_INLINE std::string_view KeyRow::name() const noexcept {
    const std::size_t dot = path.rfind('.');
    return dot == std::string::npos ? std::string_view{path} : std::string_view{path}.substr(dot + 1);
}
STRATA_INLINE std::string_view KeyRow::parent() const noexcept {
    const std::size_t dot = path.rfind('.');
    return dot == std::string::npos ? std::string_view{} : std::string_view{path}.substr(0, dot);
}

STRATA_INLINE KeyRow& KeyRow::option(std::string option_path) {
    is_option = true;
    return acts(std::move(option_path));
}
STRATA_INLINE KeyRow& KeyRow::acts(std::string what) {
    effect = Effect::acts;
    to = std::move(what);
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::mapped(std::string what, std::string words) {
    effect = Effect::mapped;
    to = std::move(what);
    why = std::move(words);
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::none(std::string words) {
    effect = Effect::none;
    why = std::move(words);
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::none_and_warns(std::string words) {
    warns = true;
    return none(std::move(words));
}
STRATA_INLINE KeyRow& KeyRow::or_auto() {
    can_be_auto = true;
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::or_flag() {
    can_be_flag = true;
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::or_list() {
    can_be_list = true;
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::in_any_case() {
    any_case = true;
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::within(Range allowed) {
    range = allowed;
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::by_default(std::string value) {
    fallback = std::move(value);
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::old_name_of(std::string newer) {
    renamed = std::move(newer);
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::no_others() {
    strict = true;
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::from(std::string environment_variable) {
    variable = std::move(environment_variable);
    return *this;
}
STRATA_INLINE KeyRow& KeyRow::flagged(std::string name) {
    flag = std::move(name);
    return *this;
}

STRATA_INLINE KeyRow& FormatTable::Rows::add(std::string key, ValueKind kind, std::string meaning) {
    KeyRow& row = table_->rows_.emplace_back();
    row.path = prefix_ + key;
    row.kind = kind;
    row.meaning = std::move(meaning);
    table_->index_.emplace(row.path, table_->rows_.size() - 1);
    return row;
}
STRATA_INLINE KeyRow& FormatTable::Rows::choice(std::string key, std::vector<std::string> choices,
                                                std::string meaning) {
    KeyRow& row = add(std::move(key), ValueKind::choice, std::move(meaning));
    row.choices = std::move(choices);
    return row;
}

STRATA_INLINE const KeyRow* FormatTable::find(std::string_view path) const {
    if (const auto found = index_.find(std::string{path}); found != index_.end()) return &rows_[found->second];
    // Some part of it may be a name of the user's: the row's path has a star there.
    const auto matches = [&](std::string_view pattern) {
        std::string_view rest = path;
        for (;;) {
            const std::size_t a = pattern.find('.'), b = rest.find('.');
            const std::string_view part = pattern.substr(0, a);
            if (part != "*" && part != rest.substr(0, b)) return false;
            if (a == std::string_view::npos || b == std::string_view::npos) return a == b;
            pattern.remove_prefix(a + 1);
            rest.remove_prefix(b + 1);
        }
    };
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const KeyRow& row) {
        return row.path.find('*') != std::string::npos && matches(row.path);
    });
    return found == rows_.end() ? nullptr : &*found;
}

STRATA_INLINE bool FormatTable::is_strict(std::string_view path) const {
    if (path.empty()) return strict_;
    const KeyRow* const row = find(path);
    return row != nullptr && row->strict;
}

STRATA_INLINE std::vector<std::string_view> FormatTable::names_in(std::string_view path) const {
    const KeyRow* const object = find(path);
    const std::string_view parent = object == nullptr ? path : std::string_view{object->path};
    std::vector<std::string_view> names;
    for (const KeyRow& row : rows_)
        if (row.parent() == parent && row.name() != "*") names.push_back(row.name());
    return names;
}

STRATA_INLINE std::vector<const KeyRow*> FormatTable::elsewhere(std::string_view name, std::string_view parent) const {
    std::vector<const KeyRow*> all;
    for (const KeyRow& row : rows_)
        if (row.name() == name && row.parent() != parent && row.path.find('*') == std::string::npos)
            all.push_back(&row);
    return all;
}

STRATA_INLINE std::string FormatTable::why(const KeyRow& row) const {
    const KeyRow* at = &row;
    while (at->why.empty() && !at->parent().empty()) {
        at = find(at->parent());
        if (at == nullptr) return "";
    }
    return at->why;
}

namespace detail {

inline std::string one_of(const std::vector<std::string>& choices) {
    std::string text;
    for (const std::string& choice : choices) text += (text.empty() ? "one of `" : ", `") + choice + "`";
    return text;
}

/// " from 0 to 3", " from 1 on": a bound that only keeps numbers sane is not told.
inline std::string words_of(const Range& range) {
    const bool bounded = std::isfinite(range.most) && range.most < 1e12;
    if (std::isfinite(range.least) && bounded) return " from " + shown(range.least) + " to " + shown(range.most);
    if (std::isfinite(range.least)) return " from " + shown(range.least) + " on";
    return bounded ? " up to " + shown(range.most) : "";
}

/// What strata does with a key, for a table of a page.
inline std::string doing(const FormatTable& table, const KeyRow& row) {
    if (!row.renamed.empty()) return "old name of `" + row.renamed + "`, read as that, with a warning";
    const std::string why = table.why(row);
    const bool is_code = row.to.find('<') != std::string::npos || row.to.find(' ') == std::string::npos;
    const std::string to = is_code && !row.to.empty() ? "`" + row.to + "`" : row.to;
    if (row.effect == Effect::acts) return to + (row.why.empty() ? "" : (to.empty() ? "" : ": ") + row.why);
    if (row.effect == Effect::mapped) return "mapped to " + to + (why.empty() ? "" : ": " + why);
    if (row.effect == Effect::refused) return "refused where it asks for something: " + why;
    return "no effect: " + why;
}

}  // namespace detail

STRATA_INLINE std::string expected(const KeyRow& row) {
    std::string text;
    switch (row.kind) {
        case ValueKind::flag:
            text = "true or false";
            break;
        case ValueKind::whole:
            text = "a whole number" + detail::words_of(row.range);
            break;
        case ValueKind::number:
            text = "a number" + detail::words_of(row.range);
            break;
        case ValueKind::text:
            text = "text";
            break;
        case ValueKind::choice:
            text = detail::one_of(row.choices);
            break;
        case ValueKind::list:
            text = "a list";
            break;
        case ValueKind::object:
            text = "an object";
            break;
        case ValueKind::any:
            return "anything";
    }
    if (row.can_be_list) text += ", or a list";
    if (row.can_be_flag) text += ", or true or false";
    if (row.can_be_auto) text += ", or `auto`";
    return text;
}

STRATA_INLINE std::string markdown(const FormatTable& table) {
    const std::string head =
        "| key | value | default | meaning | what strata does |\n| --- | --- | --- | --- | --- |\n";
    const auto line = [&](const KeyRow& row, std::string_view name) {
        const std::string fallback = row.fallback.empty() ? "" : "`" + row.fallback + "`";
        return "| `" + std::string{name} + "` | " + expected(row) + " | " + fallback + " | " + row.meaning + " | " +
               detail::doing(table, row) + " |\n";
    };
    std::string text = head;
    for (const KeyRow& row : table.rows())
        if (row.parent().empty() && row.kind != ValueKind::object) text += line(row, row.path);
    for (const KeyRow& object : table.rows()) {
        if (!object.parent().empty() || object.kind != ValueKind::object) continue;
        const bool has_words = !object.why.empty() || object.effect != Effect::none || !object.renamed.empty();
        text += "\n## `" + object.path + "`\n\n" + object.meaning + (object.meaning.empty() ? "" : ".") +
                (has_words && !object.meaning.empty() ? " " : "") +
                (has_words ? "To strata: " + detail::doing(table, object) + "." : "") + "\n";
        std::string rows;
        for (const KeyRow& row : table.rows())
            if (row.path.starts_with(object.path + "."))
                rows += line(row, std::string_view{row.path}.substr(object.path.size() + 1));
        if (!rows.empty()) text += "\n" + head + rows;
    }
    return text;
}

}  // namespace strata::config
