#pragma once
// strata/config/schema.hpp - a table of keys that drives parsing, defaults, documentation and did-you-mean.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <strata/core/error.hpp>
#include <strata/core/ranges.hpp>
#include <strata/core/secret.hpp>

namespace strata::config {

/// A JSON document with the file's name, for messages.
///
/// Throws Errc::unreadable_config when the file is missing, no UTF-8 or no JSON (with line and column), and
/// Errc::bad_value when an object has a key twice or a number is too large to keep. A byte order mark is skipped.
[[nodiscard]] nlohmann::json load_json(const std::filesystem::path& file);

/// One value and where it stands, converted strictly. A number or truth value may also be written as
/// text ("1e-4", "true"), as many files of this world do. `{env:NAME}` inside text becomes the value
/// of that environment variable. Every conversion throws Errc::bad_value naming file and key; messages quote what
/// the file says and never what a variable holds.
class Value {
public:
    ///   file  empty for what a command line says; `key` is the flag then, with its dashes
    Value(const nlohmann::json& json, std::string file, std::string key)
        : json_{&json}, file_{std::move(file)}, key_{std::move(key)} {}

    /// The same value, which messages do not quote.
    [[nodiscard]] Value hidden() const {
        Value other = *this;
        other.hidden_ = true;
        return other;
    }

    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::int64_t integer() const;
    [[nodiscard]] double number() const;
    [[nodiscard]] bool flag() const;
    [[nodiscard]] std::vector<std::string> texts() const;  ///< a list of text, or one text
    [[nodiscard]] bool is_null() const;
    [[nodiscard]] std::vector<Value> elements() const;  ///< of a list; Errc::bad_value for anything else
    [[nodiscard]] bool is_object() const;

    [[nodiscard]] const nlohmann::json& json() const noexcept { return *json_; }
    [[nodiscard]] const std::string& file() const noexcept { return file_; }
    [[nodiscard]] const std::string& key() const noexcept { return key_; }

    /// What the file says, cut after 60 bytes; of a hidden value only its kind.
    [[nodiscard]] std::string shown() const;

    /// "FILE: key 'KEY'", or the flag.
    [[nodiscard]] std::string place() const;

    /// Throws Error{code, "<place()> <problem>", fix}.
    [[noreturn]] void refuse(Errc code, std::string_view problem, std::string_view fix) const;

private:
    const nlohmann::json* json_;
    std::string file_;
    std::string key_;
    bool hidden_ = false;
};

using strata::Range;

/// A value of a choice: what the file says, and what it means. `why_not` makes it one that other
/// trainers know and strata does not act on: a sentence without its full stop.
template <class Enum>
struct Choice {
    std::string_view name;
    Enum value{};
    std::string_view why_not = {};
};

/// How a command line writes the value of a key.
enum class KeyKind : std::uint8_t {
    word,  ///< one word; `null` is the same as leaving the key out
    text,  ///< one word, whatever it is
    flag,  ///< true or false; alone it is true
    list,  ///< one word an element, each behind the key again; or a JSON list
    json,  ///< a JSON object or list; anything else is one word
};

/// What documentation says about a key.
struct KeyInfo {
    std::string key;
    std::string type;      ///< "text", "integer >= 1", "one of `a`, `b`"
    std::string fallback;  ///< the default as a JSON value; "required" when there is none
    std::string meaning;
    std::string alias;     ///< a second spelling of the key, or empty
    KeyKind kind = KeyKind::word;
};

/// A key as a command line gives it, to be used in place of what a file says.
struct Override {
    std::string name;                 ///< the key or its alias, without dashes
    std::vector<std::string> values;  ///< as they were typed; several for a KeyKind::list
};
using Overrides = std::vector<Override>;

/// A key that other trainers know and strata does not act on; `why` says what to do instead.
struct UnsupportedKey {
    std::string_view key;
    std::string_view why;
    bool false_is_fine = false;  ///< `false` asks for what strata does anyway, so it is no error
};

/// A key of other trainers that is accepted because no result depends on it; `why` says what strata does instead.
struct IdleKey {
    std::string_view key;
    std::string_view why;
};

namespace detail {

/// The parts of Schema that do not depend on the settings' type.
[[nodiscard]] std::string quoted(std::string_view text);
[[nodiscard]] std::string shown(double number);
[[nodiscard]] std::string shown(const std::vector<std::string>& texts);
[[nodiscard]] std::string shown(const Range& range);
void check_range(const Value& value, double number, const Range& range);
void check_keys(const nlohmann::json& object, const std::string& file, const std::string& path,
                const std::vector<KeyInfo>& known, const std::vector<UnsupportedKey>& unsupported,
                const std::vector<IdleKey>& idle);
/// The member under the key's name or alias, or nullptr. Both at once throw Errc::bad_value.
[[nodiscard]] const nlohmann::json* member(const nlohmann::json& object, const std::string& file,
                                           const std::string& path, const KeyInfo& info);
/// Calls `read` with what a command line says of the key; false if it says nothing. Two spellings at once throw
/// Errc::bad_value.
bool read_override(const Overrides& overrides, const KeyInfo& info, const std::function<void(const Value&)>& read);
[[nodiscard]] const nlohmann::json& no_keys();  ///< {}
/// JSON of a file's text, or of what stands behind a flag; `file` names either. Throws as load_json() does.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& file);

}  // namespace detail

/// The name among `known` that is nearest to `name` by edit distance, or empty when none is near.
[[nodiscard]] std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known);

/// The keys of one JSON object that becomes a `Settings`.
///
/// The default of a key is the value its member has in `Settings{}`, so it is written down once.
template <class Settings>
class Schema {
public:
    /// Text, or a path.
    template <class Text>
    Schema& text(std::string key, Text Settings::*member, std::string meaning) {
        const std::string fallback = detail::quoted(std::string{Settings{}.*member});
        return add({std::move(key), "text", fallback, std::move(meaning), {}, KeyKind::text},
                   [member](Settings& settings, const Value& value) { settings.*member = Text{value.text()}; });
    }
    /// Text that no message quotes: a Secret, or a std::string beside one.
    template <class Text>
    Schema& secret(std::string key, Text Settings::*member, std::string meaning) {
        return add(
            {std::move(key), "text", detail::quoted(""), std::move(meaning), {}, KeyKind::text},
            [member](Settings& settings, const Value& value) { settings.*member = Text{value.hidden().text()}; });
    }
    /// A list of text.
    Schema& texts(std::string key, std::vector<std::string> Settings::*member, std::string meaning) {
        return add({std::move(key), "list of text", detail::shown(Settings{}.*member), std::move(meaning), {}, KeyKind::list},
                   [member](Settings& settings, const Value& value) { settings.*member = value.texts(); });
    }
    /// A whole number, or an optional one.
    template <class Integer>
    Schema& integer(std::string key, Integer Settings::*member, Range range, std::string meaning) {
        std::string fallback = "null";
        if constexpr (std::is_same_v<Integer, std::int64_t>) fallback = std::to_string(Settings{}.*member);
        return add({std::move(key), "integer" + detail::shown(range), std::move(fallback), std::move(meaning), {}},
                   [member, range](Settings& settings, const Value& value) {
                       const std::int64_t integer = value.integer();
                       detail::check_range(value, static_cast<double>(integer), range);
                       settings.*member = integer;
                   });
    }
    /// A real number, or an optional one.
    template <class Number>
    Schema& number(std::string key, Number Settings::*member, Range range, std::string meaning) {
        std::string fallback = "null";
        if constexpr (std::is_same_v<Number, double>) fallback = detail::shown(Settings{}.*member);
        return add({std::move(key), "number" + detail::shown(range), std::move(fallback), std::move(meaning), {}},
                   [member, range](Settings& settings, const Value& value) {
                       const double number = value.number();
                       detail::check_range(value, number, range);
                       settings.*member = number;
                   });
    }
    /// A truth value, or an optional one.
    template <class Flag>
    Schema& flag(std::string key, Flag Settings::*member, std::string meaning) {
        std::string fallback = "null";
        if constexpr (std::is_same_v<Flag, bool>) fallback = Settings{}.*member ? "true" : "false";
        return add({std::move(key), "true or false", std::move(fallback), std::move(meaning), {}, KeyKind::flag},
                   [member](Settings& settings, const Value& value) { settings.*member = value.flag(); });
    }
    /// One of several words, kept as an Enum or an optional one. Words with `why_not` throw Errc::unsupported_key.
    template <class Enum, class Member>
    Schema& choice(std::string key, Member Settings::*member, std::vector<Choice<Enum>> choices, std::string meaning) {
        std::string type;
        std::string fallback;
        if constexpr (!std::is_same_v<Enum, Member>) fallback = "null";
        for (const Choice<Enum>& choice : choices) {
            if (!choice.why_not.empty()) continue;
            type += (type.empty() ? "`" : ", `") + std::string{choice.name} + "`";
            if (choice.value == Settings{}.*member && fallback.empty()) fallback = detail::quoted(choice.name);
        }
        const std::string valid = type;
        return add({std::move(key), "one of " + type, std::move(fallback), std::move(meaning), {}},
                   [member, valid, choices = std::move(choices)](Settings& settings, const Value& value) {
                       const std::string name = value.text();
                       for (const Choice<Enum>& choice : choices) {
                           if (choice.name != name) continue;
                           if (!choice.why_not.empty())
                               value.refuse(Errc::unsupported_key,
                                            "is '" + std::string{choice.name} + "': " + std::string{choice.why_not},
                                            "use one of " + valid);
                           settings.*member = choice.value;
                           return;
                       }
                       value.refuse(Errc::bad_value, "is " + value.shown() + ", which is none of its values",
                                    "use one of " + valid);
                   });
    }
    /// An object with keys of its own; absent, the member stays as it is.
    template <class Part>
    Schema& object(std::string key, std::optional<Part> Settings::*member, const Schema<Part>& keys,
                   std::string meaning) {
        return add({std::move(key), "object", "null", std::move(meaning), {}, KeyKind::json},
                   [member, &keys](Settings& settings, const Value& value) {
                       settings.*member = keys.read(value.json(), value.file(), value.key() + ".");
                   });
    }
    /// The keys of a member's own schema, written beside the others and not in an object.
    template <class Part>
    Schema& beside(Part Settings::*member, const Schema<Part>& keys) {
        for (std::size_t i = 0; i < keys.keys_.size(); ++i)
            add(keys.keys_[i], [member, reader = keys.readers_[i]](Settings& settings, const Value& value) {
                reader(settings.*member, value);
            });
        return *this;
    }
    /// A key with a type of its own.
    ///
    ///   read  from the value; throws through Value::refuse
    Schema& custom(std::string key, std::string type, std::string fallback, std::string meaning,
                   std::function<void(Settings&, const Value&)> read) {
        return add({std::move(key), std::move(type), std::move(fallback), std::move(meaning), {}, KeyKind::json},
                   std::move(read));
    }
    /// Makes the key added last one that must be given.
    Schema& required() {
        keys_.back().fallback = "required";
        return *this;
    }
    /// A second spelling of the key added last.
    Schema& alias(std::string name) {
        keys_.back().alias = std::move(name);
        return *this;
    }
    /// Keys that are recognised only to be refused with a reason.
    Schema& unsupported(std::vector<UnsupportedKey> keys) {
        unsupported_.insert(unsupported_.end(), keys.begin(), keys.end());
        return *this;
    }

    /// Keys that are accepted and change nothing.
    Schema& idle(std::vector<IdleKey> keys) {
        idle_.insert(idle_.end(), keys.begin(), keys.end());
        return *this;
    }

    [[nodiscard]] const std::vector<KeyInfo>& keys() const noexcept { return keys_; }
    [[nodiscard]] const std::vector<UnsupportedKey>& unsupported() const noexcept { return unsupported_; }
    [[nodiscard]] const std::vector<IdleKey>& idle() const noexcept { return idle_; }

    /// Settings from a JSON object; `settings` holds the values of keys that are absent or null.
    ///
    ///   path       where the object stands in the file: "" for the top, "[2]." for a list's third entry
    ///   overrides  go before what the object says of these keys, which is not looked at then
    ///
    /// Throws Errc::unknown_key with the nearest known name, unsupported_key or bad_value.
    [[nodiscard]] Settings read(const nlohmann::json& object, const std::string& file, const std::string& path,
                                Settings settings = {}, const Overrides& overrides = {}) const {
        detail::check_keys(object, file, path, keys_, unsupported_, idle_);
        for (std::size_t i = 0; i < keys_.size(); ++i) {
            const auto take = [&](const Value& value) { readers_[i](settings, value); };
            if (!overrides.empty() && detail::read_override(overrides, keys_[i], take)) continue;
            const nlohmann::json* const json = detail::member(object, file, path, keys_[i]);
            if (json != nullptr) readers_[i](settings, Value{*json, file, path + keys_[i].key});
        }
        return settings;
    }

    /// Settings that a command line alone decides. Throws as read() of an object does.
    [[nodiscard]] Settings read(const Overrides& overrides) const {
        return read(detail::no_keys(), "", "", {}, overrides);
    }

private:
    template <class Other>
    friend class Schema;
    using Reader = std::function<void(Settings&, const Value&)>;
    Schema& add(KeyInfo info, Reader reader) {
        keys_.push_back(std::move(info));
        readers_.push_back(std::move(reader));
        return *this;
    }
    std::vector<KeyInfo> keys_;
    std::vector<Reader> readers_;  // of the key with the same index
    std::vector<UnsupportedKey> unsupported_;
    std::vector<IdleKey> idle_;
};

/// A struct that says itself which keys it has, as strata::run() takes it: a program's own flags, or a configuration.
template <class S>
concept Settings = requires {
    { S::schema() } -> std::same_as<const Schema<S>&>;
};

/// The Markdown table of a schema's keys, as docs/configuration.md and docs/dataset-keys.md have it.
[[nodiscard]] std::string markdown(const std::vector<KeyInfo>& keys);
[[nodiscard]] std::string markdown(const std::vector<UnsupportedKey>& keys);
[[nodiscard]] std::string markdown(const std::vector<IdleKey>& keys);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/load_json.ipp>
#include <strata/config/impl/schema.ipp>
#endif
