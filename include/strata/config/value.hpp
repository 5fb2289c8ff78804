#pragma once
// strata/config/value.hpp - load_json(), and Value: one value of a file or a command line, converted strictly.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <strata/config/source.hpp>
#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// A JSON document with the file's name, for messages.
///
/// Throws Errc::unreadable_config when the file is missing, no UTF-8 or no JSON (with line and column), and
/// Errc::bad_value when an object has a key twice or a number is too large to keep. A byte order mark is skipped.
[[nodiscard]] nlohmann::json load_json(const std::filesystem::path& file);

namespace detail {

/// JSON of a file's text, or of what stands behind a flag; `file` names either. Throws as load_json() does.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& file);

}  // namespace detail

/// One value and where it stands, converted strictly. A number or truth value may also be written as
/// text ("1e-4", "true"), as many files of this world do. `{env:NAME}` inside text becomes the value
/// of that environment variable. Every conversion throws Errc::bad_value naming file and key; messages quote what
/// the file says and never what a variable holds.
class Value {
public:
    ///   source  empty for what a command line says; `key` is the flag then, with its dashes
    Value(const nlohmann::json& json, Source source, std::string key)
        : json_{&json}, source_{std::move(source)}, key_{std::move(key)} {}

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
    [[nodiscard]] const Source& source() const noexcept { return source_; }
    [[nodiscard]] const std::string& file() const noexcept { return source_.name(); }
    [[nodiscard]] const std::string& key() const noexcept { return key_; }

    /// What the file says, cut after 60 bytes; of a hidden value only its kind.
    [[nodiscard]] std::string shown() const;

    /// "FILE:12:5: key 'KEY'", or the flag.
    [[nodiscard]] std::string place() const;

    /// Throws Error{code, "<place()> <problem>", fix}.
    [[noreturn]] void refuse(Errc code, std::string_view problem, std::string_view fix) const;

private:
    const nlohmann::json* json_;
    Source source_;
    std::string key_;
    bool hidden_ = false;
};

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/load_json.ipp>
#include <strata/config/impl/value.ipp>
#endif
