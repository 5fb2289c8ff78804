#pragma once
// strata/config/impl/trainer_table.ipp - the keys of two tables as rows of one.

#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/simpletuner.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/config/trainer_table.hpp>

namespace strata::config {

namespace detail {

/// " 1 to 65536", " >= 0": what a key's type says behind its first word.
inline Range range_in(std::string_view type) {
    const auto number = [](std::string_view text, double otherwise) {
        double found = otherwise;
        while (text.starts_with(' ')) text.remove_prefix(1);
        std::from_chars(text.data(), text.data() + text.size(), found);
        return found;
    };
    constexpr double open = std::numeric_limits<double>::infinity();
    if (const std::size_t least = type.find(">="); least != std::string_view::npos)
        return {number(type.substr(least + 2), -open), open};
    if (const std::size_t to = type.find(" to "); to != std::string_view::npos)
        return {number(type.substr(type.find(' ')), -open), number(type.substr(to + 4), open)};
    return {};
}

/// `a`, `b` of "one of `a`, `b`".
inline std::vector<std::string> words_in(std::string_view type) {
    std::vector<std::string> words;
    for (std::size_t begin = type.find('`'); begin != std::string_view::npos; begin = type.find('`', begin)) {
        const std::size_t end = type.find('`', begin + 1);
        if (end == std::string_view::npos) break;
        words.emplace_back(type.substr(begin + 1, end - begin - 1));
        begin = end + 1;
    }
    return words;
}

inline KeyRow& add_row(FormatTable::Rows& rows, const std::string& key, const KeyInfo& info) {
    const std::string_view type = info.type;
    if (type.starts_with("true or false")) return rows.flag(key, info.meaning);
    if (type.starts_with("integer")) return rows.whole(key, info.meaning).within(range_in(type));
    if (type.starts_with("number")) return rows.number(key, info.meaning).within(range_in(type));
    if (type.starts_with("one of")) return rows.choice(key, words_in(type), info.meaning);
    if (type.starts_with("list")) return rows.list(key, info.meaning);
    if (type.starts_with("text")) return rows.text(key, info.meaning);
    return rows.any(key, info.meaning);
}

}  // namespace detail

STRATA_INLINE const FormatTable& trainer_table() {
    static const FormatTable table = [] {
        FormatTable all{"Trainer", "docs/config/simpletuner.md"};
        FormatTable::Rows rows = all.top();
        for (const KeyInfo& info : trainer_schema().keys()) {
            KeyRow& row = detail::add_row(rows, info.key, info).acts(info.path.empty() ? info.key : info.path);
            if (info.fallback != "null") row.by_default(info.fallback);
            if (!info.alias.empty()) rows.any(info.alias).old_name_of(info.key);
        }
        for (const ForeignKey& key : simpletuner_keys()) {
            if (key.key.ends_with('*')) continue;
            KeyRow& row = rows.any(std::string{key.key});
            row.effect = key.effect == ForeignEffect::mapped    ? Effect::mapped
                         : key.effect == ForeignEffect::refused ? Effect::refused
                                                                : Effect::none;
            row.why = key.instead;
        }
        return all;
    }();
    return table;
}

}  // namespace strata::config
