#pragma once
// strata/config/impl/key.ipp - the checks every schema shares, and the tables of the documentation.

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include <strata/config/impl/value.ipp>
#include <strata/config/key.hpp>

namespace strata::config {

namespace detail {

/// Optimal string alignment: insert, delete, replace or swap neighbours, each counts 1.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[a.size()][b.size()];
}

STRATA_INLINE std::string shown(const std::vector<std::string>& texts) { return nlohmann::json(texts).dump(); }

STRATA_INLINE std::string shown(const Range& range) {
    const bool least = std::isfinite(range.least);
    const bool most = std::isfinite(range.most);
    if (least && most) return " " + shown(range.least) + " to " + shown(range.most);
    if (least) return " >= " + shown(range.least);
    return most ? " <= " + shown(range.most) : "";
}

STRATA_INLINE void check_range(const Value& value, double number, const Range& range) {
    if (range.holds(number)) return;
    value.refuse(Errc::bad_value, "is " + value.shown() + ", out of its range",
                 "use a number" + (std::isfinite(range.least) && std::isfinite(range.most) ? " from" : std::string{}) +
                     shown(range));
}

/// A key of an object, as messages call it; of a command line the flag.
inline std::string place_of_key(const Source& source, const std::string& path, const std::string& key) {
    return place_of(source, path, source.empty() && path.empty() ? "--" + key : key);
}

STRATA_INLINE void check_keys(const nlohmann::json& object, const Source& source, const std::string& path,
                              const std::vector<KeyInfo>& known, const std::vector<UnsupportedKey>& unsupported,
                              const std::vector<IdleKey>& idle, const std::vector<KeyFamily>& families,
                              Problems& problems) {
    const std::string place = path.empty() ? "the file" : "'" + path.substr(0, path.size() - 1) + "'";
    if (!object.is_object())
        throw Error{Errc::bad_value, (source.empty() ? "" : source.at(path) + ": ") + place + " is not a JSON object",
                    "write {\"key\": value, ...} there"};
    std::vector<std::string_view> names;
    for (const KeyInfo& info : known) {
        names.push_back(info.key);
        if (!info.alias.empty()) names.push_back(info.alias);
    }
    for (const auto& [key, value] : object.items()) {
        if (key.starts_with('_')) continue;  // a note for people
        const auto is_named = [&key = key](const auto& other) { return other.key == key; };
        if (std::find(names.begin(), names.end(), key) != names.end()) continue;
        if (std::any_of(idle.begin(), idle.end(), is_named)) continue;
        if (std::any_of(families.begin(), families.end(),
                        [&key = key](const KeyFamily& one) { return key.starts_with(one.prefix); }))
            continue;
        const std::string what = place_of_key(source, path, key);
        const auto other = std::find_if(unsupported.begin(), unsupported.end(), is_named);
        if (other != unsupported.end()) {
            if (value.is_null() || (other->false_is_fine && value == false)) continue;
            problems.add({Errc::unsupported_key, what + " is known from other trainers, and strata does not act on it",
                          "remove it: " + std::string{other->why}});
            continue;
        }
        const std::string_view near = nearest_name(key, names);
        problems.add({Errc::unknown_key, what + " is unknown",
                      near.empty() ? "remove it; docs/configuration.md and docs/dataset-keys.md have the keys there are"
                                   : "did you mean '" + std::string{near} + "'"});
    }
}

STRATA_INLINE const nlohmann::json* member(const nlohmann::json& object, const Source& source, const std::string& path,
                                           const KeyInfo& info) {
    const auto given = [&](const std::string& key) -> const nlohmann::json* {
        const auto found = key.empty() ? object.end() : object.find(key);
        return found == object.end() || found->is_null() ? nullptr : &*found;
    };
    const nlohmann::json* const first = given(info.key);
    const nlohmann::json* const second = given(info.alias);
    if (first != nullptr && second != nullptr && *first != *second)
        throw Error{Errc::bad_value,
                    source.at(path + info.alias) + ": '" + path + info.key + "' and '" + path + info.alias +
                        "' are the same key, and have different values",
                    "keep one of them"};
    if (first == nullptr && second == nullptr && info.fallback == "required")
        throw Error{Errc::bad_value, place_of_key(source, path, info.key) + " is missing", "add it: " + info.meaning};
    return first != nullptr ? first : second;
}

/// What a command line says, as a file would say it.
inline nlohmann::json json_of(const Override& given, KeyKind kind) {
    const std::string& word = given.values.front();
    const bool is_json = (kind == KeyKind::list && given.values.size() == 1 && word.starts_with('[')) ||
                         (kind == KeyKind::json && (word.starts_with('[') || word.starts_with('{')));
    if (is_json) return parse_json(word, "--" + given.name);
    if (kind == KeyKind::list) return given.values;
    if (kind != KeyKind::text && word == "null") return nullptr;
    return word;
}

STRATA_INLINE bool read_override(const Overrides& overrides, const KeyInfo& info,
                                 const std::function<void(const Value&)>& read) {
    const Override* found = nullptr;
    for (const Override& given : overrides) {
        if (given.name != info.key && (info.alias.empty() || given.name != info.alias)) continue;
        if (found != nullptr)
            throw Error{Errc::bad_value, "--" + found->name + " and --" + given.name + " are the same key",
                        "keep one of them"};
        found = &given;
    }
    if (found == nullptr) return false;
    const nlohmann::json json = json_of(*found, info.kind);
    if (!json.is_null()) read(Value{json, "", "--" + found->name});
    return true;
}

inline bool is_key(const std::vector<KeyInfo>& known, std::string_view name) {
    return std::any_of(known.begin(), known.end(),
                       [&](const KeyInfo& info) { return info.key == name || info.alias == name; });
}

STRATA_INLINE const nlohmann::json& no_keys() {
    static const nlohmann::json none = nlohmann::json::object();
    return none;
}

}  // namespace detail

STRATA_INLINE std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
    std::string_view nearest;
    std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;  // farther than this is no typing error
    for (const std::string_view candidate : known) {
        const std::size_t distance = detail::edit_distance(name, candidate);
        if (distance < least) {
            least = distance;
            nearest = candidate;
        }
    }
    return nearest;
}

STRATA_INLINE std::string markdown(const std::vector<KeyInfo>& keys) {
    std::string table = "| key | value | default | meaning |\n| --- | --- | --- | --- |\n";
    for (const KeyInfo& key : keys) {
        table += "| `" + key.key + "`" + (key.alias.empty() ? "" : " or `" + key.alias + "`") + " | " + key.type +
                 " | " + (key.fallback == "required" ? "required" : "`" + key.fallback + "`") + " | " + key.meaning +
                 " |\n";
    }
    return table;
}

STRATA_INLINE std::string markdown(const std::vector<UnsupportedKey>& keys) {
    std::string table = "| key | what to do instead |\n| --- | --- |\n";
    for (const UnsupportedKey& key : keys)
        table += "| `" + std::string{key.key} + "`" + (key.false_is_fine ? " (`false` is accepted)" : "") + " | " +
                 std::string{key.why} + " |\n";
    return table;
}

STRATA_INLINE std::string markdown(const std::vector<IdleKey>& keys) {
    std::string table = "| key | what strata does instead |\n| --- | --- |\n";
    for (const IdleKey& key : keys) table += "| `" + std::string{key.key} + "` | " + std::string{key.why} + " |\n";
    return table;
}

}  // namespace strata::config
