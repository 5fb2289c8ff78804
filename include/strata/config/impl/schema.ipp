#pragma once
// strata/config/impl/schema.ipp - JSON with places for messages, and the checks every schema shares.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <system_error>

#include <nlohmann/json.hpp>

#include <strata/config/schema.hpp>
#include <strata/core/environment.hpp>
#include <strata/core/option_check.hpp>

namespace strata::config {

namespace detail {

/// "line 3, column 14" of a byte position that counts from 1.
inline std::string place_in(std::string_view text, std::size_t position) {
    const std::string_view before = text.substr(0, position > 0 ? std::min(position - 1, text.size()) : 0);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
    return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

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

/// Text as a number, when all of it is one.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

STRATA_INLINE std::string quoted(std::string_view text) { return nlohmann::json(text).dump(); }

STRATA_INLINE std::string shown(double number) { return OptionCheck::shown(number); }

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

STRATA_INLINE void check_keys(const nlohmann::json& object, const std::string& file, const std::string& path,
                              const std::vector<KeyInfo>& known, const std::vector<UnsupportedKey>& unsupported,
                              const std::vector<IdleKey>& idle) {
    const std::string place = path.empty() ? "the file" : "'" + path.substr(0, path.size() - 1) + "'";
    if (!object.is_object())
        throw Error{Errc::bad_value, file + ": " + place + " is not a JSON object", "write {\"key\": value, ...} there"};
    std::vector<std::string_view> names;
    for (const KeyInfo& info : known) {
        names.push_back(info.key);
        if (!info.alias.empty()) names.push_back(info.alias);
    }
    for (const auto& [key, value] : object.items()) {
        const auto is_named = [&key = key](const auto& other) { return other.key == key; };
        if (std::find(names.begin(), names.end(), key) != names.end()) continue;
        if (std::any_of(idle.begin(), idle.end(), is_named)) continue;
        const std::string what = file + ": key '" + path + key + "'";
        const auto other = std::find_if(unsupported.begin(), unsupported.end(), is_named);
        if (other != unsupported.end()) {
            if (value.is_null() || (other->false_is_fine && value == false)) continue;
            throw Error{Errc::unsupported_key, what + " is known from other trainers, and strata does not act on it",
                        "remove it: " + std::string{other->why}};
        }
        const std::string_view near = nearest_name(key, names);
        throw Error{Errc::unknown_key, what + " is unknown",
                    near.empty() ? "remove it; docs/configuration.md and docs/dataset-keys.md have the keys there are"
                                 : "did you mean '" + std::string{near} + "'"};
    }
}

STRATA_INLINE const nlohmann::json* member(const nlohmann::json& object, const std::string& file,
                                           const std::string& path, const KeyInfo& info) {
    const auto given = [&](const std::string& key) -> const nlohmann::json* {
        const auto found = key.empty() ? object.end() : object.find(key);
        return found == object.end() || found->is_null() ? nullptr : &*found;
    };
    const nlohmann::json* const first = given(info.key);
    const nlohmann::json* const second = given(info.alias);
    if (first != nullptr && second != nullptr)
        throw Error{Errc::bad_value, file + ": '" + path + info.key + "' and '" + path + info.alias + "' are the same key",
                    "keep one of them"};
    if (first == nullptr && second == nullptr && info.fallback == "required")
        throw Error{Errc::bad_value, file + ": key '" + path + info.key + "' is missing", "add it: " + info.meaning};
    return first != nullptr ? first : second;
}

}  // namespace detail

STRATA_INLINE nlohmann::json load_json(const std::filesystem::path& file) {
    std::ifstream stream{file, std::ios::binary};
    std::error_code error;
    if (!stream || std::filesystem::is_directory(file, error))
        throw Error{Errc::unreadable_config, "cannot read configuration file '" + file.string() + "'",
                    "check the path and its permissions"};
    const std::string text{std::istreambuf_iterator<char>{stream}, {}};
    // The parser would silently keep the last of two equal keys, and take any depth, which whoever walks the result
    // by recursion pays for with the stack.
    constexpr int deepest = 64;
    std::vector<std::set<std::string>> open_objects;
    std::string twice;
    const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
        using Event = nlohmann::json::parse_event_t;
        if ((event == Event::object_start || event == Event::array_start) && depth >= deepest)
            throw Error{Errc::unreadable_config,
                        file.string() + " nests objects and lists more than " + std::to_string(deepest) + " deep",
                        "write it as docs/configuration.md shows"};
        if (event == Event::object_start) open_objects.emplace_back();
        if (event == Event::object_end) open_objects.pop_back();
        if (event == Event::key && !open_objects.back().insert(parsed.get<std::string>()).second)
            twice = parsed.get<std::string>();
        return true;
    };
    try {
        nlohmann::json json = nlohmann::json::parse(text, watch);
        if (!twice.empty())
            throw Error{Errc::bad_value, file.string() + ": key '" + twice + "' appears twice in one object",
                        "keep one of them"};
        return json;
    } catch (const nlohmann::json::parse_error& problem) {
        throw Error{Errc::unreadable_config,
                    file.string() + " is no JSON: syntax error at " + detail::place_in(text, problem.byte),
                    "look for a missing or extra comma, quote or bracket there"};
    }
}

STRATA_INLINE void Value::refuse(Errc code, std::string_view problem, std::string_view fix) const {
    throw Error{code, file_ + ": key '" + key_ + "' " + std::string{problem}, fix};
}

STRATA_INLINE std::string Value::shown() const {
    if (hidden_) return std::string{"a value of type "} + json_->type_name();
    const std::string text = json_->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

STRATA_INLINE bool Value::is_null() const { return json_->is_null(); }

STRATA_INLINE bool Value::is_object() const { return json_->is_object(); }

STRATA_INLINE std::vector<Value> Value::elements() const {
    if (!json_->is_array()) refuse(Errc::bad_value, "is " + shown() + ", not a list", "write [..., ...]");
    std::vector<Value> all;
    for (std::size_t i = 0; i < json_->size(); ++i) {
        all.emplace_back(json_->at(i), file_, key_ + "[" + std::to_string(i) + "]");
        all.back().hidden_ = hidden_;
    }
    return all;
}

STRATA_INLINE std::string Value::text() const {
    if (!json_->is_string()) refuse(Errc::bad_value, "is " + shown() + ", not text", "write it in double quotes");
    return expand_environment(json_->get_ref<const std::string&>(), file_ + ": key '" + key_ + "'",
                              process_environment);
}

STRATA_INLINE std::int64_t Value::integer() const {
    std::optional<std::int64_t> found;
    if (json_->is_string()) {
        found = detail::number_in<std::int64_t>(text());
    } else if (json_->is_number_integer()) {
        const bool too_large = json_->is_number_unsigned() &&
                               json_->get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
        if (!too_large) found = json_->get<std::int64_t>();
    } else if (json_->is_number_float()) {
        const double number = json_->get<double>();  // 1e3 and 5.0 are whole numbers as well
        if (number == std::floor(number) && std::abs(number) < 9e15) found = static_cast<std::int64_t>(number);
    }
    if (!found) refuse(Errc::bad_value, "is " + shown() + ", not a whole number", "write a whole number");
    return *found;
}

STRATA_INLINE double Value::number() const {
    std::optional<double> found;
    if (json_->is_string()) found = detail::number_in<double>(text());
    else if (json_->is_number()) found = json_->get<double>();
    if (!found || !std::isfinite(*found)) refuse(Errc::bad_value, "is " + shown() + ", not a number", "write a number");
    return *found;
}

STRATA_INLINE bool Value::flag() const {
    if (json_->is_boolean()) return json_->get<bool>();
    const std::string word = json_->is_string() ? text() : std::string{};
    if (word != "true" && word != "false") refuse(Errc::bad_value, "is " + shown() + ", not true or false", "write true or false");
    return word == "true";
}

STRATA_INLINE std::vector<std::string> Value::texts() const {
    if (!json_->is_array()) return {text()};
    std::vector<std::string> all;
    for (const Value& element : elements()) all.push_back(element.text());
    return all;
}

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
        table += "| `" + key.key + "`" + (key.alias.empty() ? "" : " or `" + key.alias + "`") + " | " + key.type + " | " +
                 (key.fallback == "required" ? "required" : "`" + key.fallback + "`") + " | " + key.meaning + " |\n";
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
