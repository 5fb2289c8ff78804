#pragma once
// strata/config/impl/value.ipp - values with places for messages, converted strictly.

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>

#include <nlohmann/json.hpp>

#include <strata/config/value.hpp>
#include <strata/core/environment.hpp>

namespace strata::config {

namespace detail {

/// "FILE:12:5: key 'KEY'": a key of an object in a file, or in what stands behind a flag.
///
///   path  of the object: "" or "parquet."
inline std::string place_of(const Source& source, const std::string& path, const std::string& key) {
    if (source.empty()) return path.empty() ? key : path + key;
    return source.at(path + key) + ": key '" + path + key + "'";
}

/// Text as a number, when all of it is one.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

}  // namespace detail

STRATA_INLINE std::string Value::place() const { return detail::place_of(source_, "", key_); }

STRATA_INLINE void Value::refuse(Errc code, std::string_view problem, std::string_view fix) const {
    throw Error{code, place() + " " + std::string{problem}, fix};
}

STRATA_INLINE std::string Value::shown() const {
    if (hidden_) return std::string{"a value of type "} + json_->type_name();
    std::string text = json_->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (source_.empty() && json_->is_string())
        text.front() = text.back() = '\'';  // nobody types a number in double quotes
    return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

STRATA_INLINE bool Value::is_null() const { return json_->is_null(); }

STRATA_INLINE bool Value::is_object() const { return json_->is_object(); }

STRATA_INLINE std::vector<Value> Value::elements() const {
    if (!json_->is_array()) refuse(Errc::bad_value, "is " + shown() + ", not a list", "write [..., ...]");
    std::vector<Value> all;
    for (std::size_t i = 0; i < json_->size(); ++i) {
        all.emplace_back(json_->at(i), source_, key_ + "[" + std::to_string(i) + "]");
        all.back().hidden_ = hidden_;
    }
    return all;
}

STRATA_INLINE std::string Value::text() const {
    if (!json_->is_string()) refuse(Errc::bad_value, "is " + shown() + ", not text", "write it in double quotes");
    const auto& found = json_->get_ref<const std::string&>();
    if (found.find('\0') != std::string::npos)  // a path or name would end there
        refuse(Errc::bad_value, "holds the character \\u0000", "write the text without it");
    return expand_environment(found, place(), process_environment);
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
    if (json_->is_string())
        found = detail::number_in<double>(text());
    else if (json_->is_number())
        found = json_->get<double>();
    if (!found || !std::isfinite(*found)) refuse(Errc::bad_value, "is " + shown() + ", not a number", "write a number");
    return *found;
}

STRATA_INLINE bool Value::flag() const {
    if (json_->is_boolean()) return json_->get<bool>();
    const std::string word = json_->is_string() ? text() : std::string{};
    if (word != "true" && word != "false")
        refuse(Errc::bad_value, "is " + shown() + ", not true or false", "write true or false");
    return word == "true";
}

STRATA_INLINE std::vector<std::string> Value::texts() const {
    if (!json_->is_array()) return {text()};
    std::vector<std::string> all;
    for (const Value& element : elements()) all.push_back(element.text());
    return all;
}

}  // namespace strata::config
