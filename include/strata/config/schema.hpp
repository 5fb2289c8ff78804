#pragma once
// strata/config/schema.hpp - a table of keys that drives parsing, defaults, documentation and did-you-mean.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <strata/config/described_keys.hpp>
#include <strata/config/given_options.hpp>
#include <strata/config/key.hpp>
#include <strata/config/problems.hpp>
#include <strata/config/source.hpp>
#include <strata/config/value.hpp>
#include <strata/core/error.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>
#include <strata/core/secret.hpp>

namespace strata::config {

/// A value of a choice: what the file says, and what it means. `why_not` makes it one that other
/// trainers know and strata does not act on: a sentence without its full stop.
template <class Enum>
struct Choice {
    std::string_view name;
    Enum value{};
    std::string_view why_not = {};
};

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
        return add(
            {std::move(key), "list of text", detail::shown(Settings{}.*member), std::move(meaning), {}, KeyKind::list},
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
    /// The options that a member describes (core/option_description.hpp), and those in its parts: each by its own words,
    /// with its member's value in `Settings{}` as the default.
    ///
    ///   without  paths of options and parts in it that get no key: "engine.max_grad_value"
    template <DescribedOptions Part>
    Schema& described(Part Settings::*member, const std::vector<std::string_view>& without = {},
                      std::string_view prefix = {}) {
        const Settings defaults{};
        for (auto& key : detail::described_keys<Part>(defaults.*member, std::string{prefix}, "", without))
            add(std::move(key.info), [member, read = std::move(key.read)](Settings& settings, const Value& value) {
                read(settings.*member, value);
            });
        return *this;
    }
    /// The options that Settings describes of itself.
    Schema& described(std::string_view prefix = {}) {
        for (auto& key : detail::described_keys<Settings>(Settings{}, std::string{prefix}, "", {}))
            add(std::move(key.info), std::move(key.read));
        return *this;
    }
    /// A real number that is kept as it was given, for whoever knows more of it.
    Schema& given(std::string key, GivenOptions Settings::*member, Range range, std::string meaning) {
        return add({std::move(key), "number" + detail::shown(range), "null", std::move(meaning), {}},
                   [member, range](Settings& settings, const Value& value) {
                       detail::check_range(value, value.number(), range);
                       (settings.*member).put(detail::given(value));
                   });
    }
    /// Keys that begin alike, and that are read where more is known of them.
    Schema& family(KeyFamily family, GivenOptions Settings::*member) {
        families_.push_back(family);
        family_members_.push_back(member);
        return *this;
    }
    /// The keys of a base class's schema that `keep` says yes to; of families none.
    template <class Base, std::predicate<const KeyInfo&> Keep>
    requires std::derived_from<Settings, Base> Schema& of_base(const Schema<Base>& keys, const Keep& keep) {
        for (std::size_t i = 0; i < keys.keys_.size(); ++i)
            if (keep(keys.keys_[i])) add(keys.keys_[i], keys.readers_[i]);
        return unsupported(keys.unsupported_).idle(keys.idle_);
    }
    /// An object with keys of its own; absent, the member stays as it is.
    template <class Part>
    Schema& object(std::string key, std::optional<Part> Settings::*member, const Schema<Part>& keys,
                   std::string meaning) {
        return add({std::move(key), "object", "null", std::move(meaning), {}, KeyKind::json},
                   [member, &keys](Settings& settings, const Value& value) {
                       settings.*member = keys.read(value.json(), value.source(), value.key() + ".");
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
    /// Of a part's schema the keys with these names, beside the others.
    ///
    ///   about  in front of their words
    template <class Part>
    Schema& some_of(Part Settings::*member, const Schema<Part>& keys, const std::vector<std::string_view>& names,
                    const std::string& about) {
        for (std::size_t i = 0; i < keys.keys_.size(); ++i) {
            if (std::find(names.begin(), names.end(), keys.keys_[i].key) == names.end()) continue;
            KeyInfo info = keys.keys_[i];
            info.meaning = about + ": " + info.meaning;
            add(std::move(info), [member, reader = keys.readers_[i]](Settings& settings, const Value& value) {
                reader(settings.*member, value);
            });
        }
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
    /// The keys of other settings, whose values are looked at as these read them, and then given to `keep`.
    template <class Other>
    Schema& read_by(const Schema<Other>& keys, std::function<void(Settings&, const Value&)> keep) {
        for (std::size_t i = 0; i < keys.keys_.size(); ++i)
            add(keys.keys_[i], [keep, look = keys.readers_[i]](Settings& settings, const Value& value) {
                Other other{};
                look(other, value);
                keep(settings, value);
            });
        return *this;
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
    [[nodiscard]] const std::vector<KeyFamily>& families() const noexcept { return families_; }

    /// Settings from what families of keys were given, over `settings`. What is not a key here is not looked at. Throws
    /// Errc::bad_value, unsupported_key: all of it at once.
    [[nodiscard]] Settings read(const GivenOptions& given, Settings settings = {}) const {
        Problems problems;
        for (std::size_t i = 0; i < keys_.size(); ++i)
            problems.during([&] {
                detail::read_given(given, keys_[i], [&](const Value& value) { readers_[i](settings, value); });
            });
        problems.finish();
        return settings;
    }

    /// Settings from a JSON object; `settings` holds the values of keys that are absent or null.
    ///
    ///   path       where the object stands in the file: "" for the top, "[2]." for a list's third entry
    ///   overrides  go before what the object says of these keys, which is not looked at then
    ///
    /// Throws Errc::unknown_key with the nearest known name, unsupported_key or bad_value: all that is wrong at once.
    [[nodiscard]] Settings read(const nlohmann::json& object, const Source& source, const std::string& path,
                                Settings settings = {}, const Overrides& overrides = {}) const {
        Problems problems;
        read(object, source, path, settings, overrides, problems);
        problems.finish();
        return settings;
    }
    /// The same into `settings`, for a reader that finds more. What a problem is about keeps the value it had.
    void read(const nlohmann::json& object, const Source& source, const std::string& path, Settings& settings,
              const Overrides& overrides, Problems& problems) const {
        detail::check_keys(object, source, path, keys_, unsupported_, idle_, families_, problems);
        for (std::size_t i = 0; i < families_.size(); ++i)
            for (auto& one : detail::read_family(object, source, families_[i], keys_, overrides))
                (settings.*family_members_[i]).put(std::move(one));
        for (std::size_t i = 0; i < keys_.size(); ++i)
            problems.during([&] {
                const auto take = [&](const Value& value) { readers_[i](settings, value); };
                if (!overrides.empty() && detail::read_override(overrides, keys_[i], take)) return;
                const nlohmann::json* const json = detail::member(object, source, path, keys_[i]);
                if (json != nullptr) readers_[i](settings, Value{*json, source, path + keys_[i].key});
            });
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
    std::vector<KeyFamily> families_;
    std::vector<GivenOptions Settings::*> family_members_;
};

/// A struct that says itself which keys it has, as strata::run() takes it: a program's own flags, a configuration, or
/// options that describe themselves, such as a trainer's.
template <class S>
concept Settings = DescribedOptions<S> || requires {
    { S::schema() } -> std::same_as<const Schema<S>&>;
};

/// The keys of Settings: what their schema() says, else what they describe.
template <Settings S>
[[nodiscard]] const Schema<S>& schema_of() {
    if constexpr (requires { S::schema(); }) {
        return S::schema();
    } else {
        static const Schema<S> schema = [] {
            Schema<S> keys;
            keys.described();
            return keys;
        }();
        return schema;
    }
}

}  // namespace strata::config
