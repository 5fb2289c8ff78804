#pragma once
// strata/datasets/impl/caption_files.ipp - names and captions.

#include <algorithm>

#include <nlohmann/json.hpp>

#include <strata/core/text.hpp>
#include <strata/datasets/caption_files.hpp>

namespace strata::datasets {

namespace detail {

/// Position after the last '/'; and the '.' of the extension, or the end.
inline std::string_view file_name_of(std::string_view key) noexcept {
    return key.substr(key.rfind('/') + 1);  // npos + 1 == 0
}
inline std::string_view without_extension(std::string_view key) noexcept {
    const std::string_view name = file_name_of(key);
    const std::size_t dot = name.rfind('.');
    return dot == std::string_view::npos || dot == 0 ? key : key.substr(0, key.size() - (name.size() - dot));
}

}  // namespace detail

STRATA_INLINE std::string caption_key(std::string_view picture_key, std::string_view extension) {
    return std::string{detail::without_extension(picture_key)}.append(extension);
}

STRATA_INLINE std::string caption_from_text(std::string_view text) {
    std::string_view rest = core::trimmed(text);
    while (rest.starts_with(core::byte_order_mark)) rest = core::trimmed(core::without_byte_order_mark(rest));
    return std::string{rest};
}

STRATA_INLINE std::string caption_from_name(std::string_view key) {
    std::string caption{detail::without_extension(detail::file_name_of(key))};
    std::replace_if(
        caption.begin(), caption.end(), [](char c) { return c == '_' || c == '-'; }, ' ');
    return std::string{core::trimmed(caption)};
}

STRATA_INLINE std::string caption_from_json(std::string_view text) {
    const nlohmann::json object = nlohmann::json::parse(core::without_byte_order_mark(text), nullptr, false);
    if (!object.is_object()) return {};
    const auto caption = object.find("caption");
    return caption != object.end() && caption->is_string()
               ? std::string{core::trimmed(caption->get_ref<const std::string&>())}
               : std::string{};
}

}  // namespace strata::datasets
