#pragma once
// strata/config/impl/load_json.ipp - a file as JSON, or one sentence that says where it is none.

#include <nlohmann/json.hpp>

#include <strata/config/document.hpp>
#include <strata/config/impl/json_of_node.ipp>
#include <strata/config/impl/text_checks.ipp>
#include <strata/config/value.hpp>

namespace strata::config {

namespace detail {

STRATA_INLINE nlohmann::json parse_json(std::string_view text, const std::string& file) {
    return json_of(config::parse_json(text, file, JsonDialect::strict));
}

}  // namespace detail

STRATA_INLINE nlohmann::json load_json(const std::filesystem::path& file) {
    return detail::parse_json(detail::read_text(file), file.string());
}

}  // namespace strata::config
