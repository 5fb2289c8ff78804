#pragma once
// strata/config/key.hpp - what documentation and messages say about keys, and what every schema asks of them.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <strata/config/detail/quoted.hpp>
#include <strata/config/problems.hpp>
#include <strata/config/source.hpp>
#include <strata/config/value.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/ranges.hpp>

namespace strata::config {

using strata::Range;

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
    std::string alias;  ///< a second spelling of the key, or empty
    KeyKind kind = KeyKind::word;
    std::string path = {};  ///< of a described option: its member, as checks of options call it: "engine.ema.decay"
};

/// A key as a command line gives it, to be used in place of what a file says.
struct Override {
    std::string name;                 ///< the key or its alias, without dashes
    std::vector<std::string> values;  ///< as they were typed; several for a KeyKind::list
};
using Overrides = std::vector<Override>;

/// Keys that begin alike and are known only to whoever reads them later.
struct KeyFamily {
    std::string_view prefix;
    std::string_view meaning;
};

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

/// The name among `known` that is nearest to `name` by edit distance, or empty when none is near.
[[nodiscard]] std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known);

/// The Markdown table of a schema's keys, as docs/configuration.md and docs/dataset-keys.md have it.
[[nodiscard]] std::string markdown(const std::vector<KeyInfo>& keys);
[[nodiscard]] std::string markdown(const std::vector<UnsupportedKey>& keys);
[[nodiscard]] std::string markdown(const std::vector<IdleKey>& keys);

namespace detail {

/// The parts of Schema that do not depend on the settings' type.
[[nodiscard]] std::string shown(const std::vector<std::string>& texts);
[[nodiscard]] std::string shown(const Range& range);
void check_range(const Value& value, double number, const Range& range);
/// Throws Errc::bad_value where `object` is none; its keys that nobody knows are problems.
void check_keys(const nlohmann::json& object, const Source& source, const std::string& path,
                const std::vector<KeyInfo>& known, const std::vector<UnsupportedKey>& unsupported,
                const std::vector<IdleKey>& idle, const std::vector<KeyFamily>& families, Problems& problems);
/// The member under the key's name or alias, or nullptr. Both at once throw Errc::bad_value.
[[nodiscard]] const nlohmann::json* member(const nlohmann::json& object, const Source& source, const std::string& path,
                                           const KeyInfo& info);
/// Calls `read` with what a command line says of the key; false if it says nothing. Two spellings at once throw
/// Errc::bad_value.
bool read_override(const Overrides& overrides, const KeyInfo& info, const std::function<void(const Value&)>& read);
[[nodiscard]] const nlohmann::json& no_keys();  ///< {}

}  // namespace detail

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/key.ipp>
#endif
