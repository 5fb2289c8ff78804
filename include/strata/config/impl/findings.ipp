#pragma once
// strata/config/impl/findings.ipp - findings as one Error, and as a table.

#include <algorithm>
#include <array>
#include <utility>

#include <strata/config/findings.hpp>
#include <strata/core/printable.hpp>

namespace strata::config {

STRATA_INLINE std::string_view name_of(Effect effect) noexcept {
    switch (effect) {
        case Effect::acts:
            return "acts";
        case Effect::mapped:
            return "mapped";
        case Effect::none:
            return "no effect";
        case Effect::refused:
            break;
    }
    return "refused";
}

STRATA_INLINE std::string sentence(const Finding& finding) {
    if (finding.place.empty()) return finding.words;
    const bool in_file = !finding.pointer.empty();
    return finding.place + (in_file ? ": " + finding.pointer : "") + (in_file || finding.words.empty() ? " " : ": ") +
           finding.words;
}

namespace detail {

/// A key whose value is nobody's business: what signs requests.
inline bool is_secret(std::string_view path) {
    if (path.starts_with("webhook_config")) return true;  // as text it is all of a webhook, addresses included
    for (const std::string_view end : {"access_key_id", "access_key", "_token", "password", "secret", "api_key"})
        if (path.ends_with(end)) return true;
    return false;
}

}  // namespace detail

STRATA_INLINE Finding Findings::made(Effect effect, const Node& node, std::string to, std::string words) {
    Finding finding;
    finding.effect = effect;
    finding.place = node.place();
    finding.mark = node.mark();
    finding.pointer = node.mark().line == 0 ? "" : node.pointer();
    finding.key = node.path();
    finding.value = detail::is_secret(finding.key)                         ? "(not shown)"
                    : node.is(NodeKind::object) && !node.members().empty() ? "{...}"
                                                                           : node.shown();
    finding.to = std::move(to);
    finding.words = std::move(words);
    return finding;
}

STRATA_INLINE void Findings::acts(const Node& node, std::string to, std::string words) {
    add(made(Effect::acts, node, std::move(to), std::move(words)));
}
STRATA_INLINE void Findings::mapped(const Node& node, std::string to, std::string words) {
    add(made(Effect::mapped, node, std::move(to), std::move(words)));
}
STRATA_INLINE void Findings::no_effect(const Node& node, std::string words) {
    add(made(Effect::none, node, "", std::move(words)));
}
STRATA_INLINE void Findings::warn_mapped(const Node& node, std::string to, std::string words, std::string fix) {
    mapped(node, std::move(to), std::move(words));
    all_.back().warns = true;
    all_.back().fix = std::move(fix);
}
STRATA_INLINE void Findings::warn_no_effect(const Node& node, std::string words, std::string fix) {
    no_effect(node, std::move(words));
    all_.back().warns = true;
    all_.back().fix = std::move(fix);
}
STRATA_INLINE void Findings::refuse(const Node& node, Errc code, std::string what, std::string fix) {
    add(made(Effect::refused, node, "", std::move(what)));
    all_.back().code = code;
    all_.back().fix = std::move(fix);
}

STRATA_INLINE void Findings::take(const Document& document) {
    for (const Remark& remark : document.remarks) {
        Finding finding;
        finding.effect = remark.refused ? Effect::refused : Effect::none;
        finding.warns = !remark.refused;
        finding.place =
            document.source + ":" + std::to_string(remark.mark.line) + ":" + std::to_string(remark.mark.column);
        finding.mark = remark.mark;
        finding.words = remark.what;
        finding.fix = remark.fix;
        add(std::move(finding));
    }
}

STRATA_INLINE void Findings::sort_from(std::size_t first) {
    std::stable_sort(all_.begin() + static_cast<std::ptrdiff_t>(first), all_.end(),
                     [](const Finding& a, const Finding& b) {
                         return std::pair{a.mark.line, a.mark.column} < std::pair{b.mark.line, b.mark.column};
                     });
}

STRATA_INLINE const Finding* Findings::of(std::string_view pointer) const noexcept {
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&](const Finding& one) { return one.pointer == pointer; });
    return found == all_.end() ? nullptr : &*found;
}

STRATA_INLINE std::size_t Findings::refused() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(all_.begin(), all_.end(), [](const Finding& one) { return one.effect == Effect::refused; }));
}
STRATA_INLINE std::size_t Findings::warnings() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(all_.begin(), all_.end(), [](const Finding& one) { return one.warns; }));
}

STRATA_INLINE void Findings::throw_if_refused() const {
    const std::size_t count = refused();
    if (count == 0) return;
    constexpr std::size_t most = 40;
    std::string what = count == 1 ? "" : std::to_string(count) + " problems: ";
    std::string fix;
    std::size_t number = 0;
    Errc code = Errc::bad_value;
    for (const Finding& one : all_) {
        if (one.effect != Effect::refused) continue;
        if (number == 0) code = one.code;
        if (++number > most) continue;
        const std::string label = count == 1 ? "" : "(" + std::to_string(number) + ") ";
        const std::string between = number == 1 ? "" : "; ";
        what += between + label + sentence(one);
        fix += between + label + one.fix;
    }
    if (count > most) what += "; and " + std::to_string(count - most) + " more";
    throw Error{code, what, fix};
}

STRATA_INLINE std::string Findings::table(bool only_warnings) const {
    std::vector<std::array<std::string, 4>> rows;
    for (const Finding& one : all_) {
        if (only_warnings && !one.warns && one.effect != Effect::refused) continue;
        std::string effect{name_of(one.effect)};
        if (!one.to.empty()) effect += ": " + one.to;
        if (!one.words.empty()) effect += (one.to.empty() ? ": " : "; ") + one.words;
        if (!one.fix.empty()) effect += ". Fix: " + one.fix;
        rows.push_back({core::printable(one.key.empty() ? "(the file)" : one.key), core::printable(one.value),
                        core::printable(one.place), (one.warns ? "! " : "  ") + core::printable(effect)});
    }
    std::array<std::size_t, 3> widths{};
    for (const auto& row : rows)
        for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string text;
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < widths.size(); ++i)
            text += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
        text += row[3] + "\n";
    }
    return text;
}

}  // namespace strata::config
