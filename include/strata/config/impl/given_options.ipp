#pragma once
// strata/config/impl/given_options.ipp - keys that are kept until someone knows them.

#include <algorithm>

#include <nlohmann/json.hpp>

#include <strata/config/given_options.hpp>
#include <strata/config/impl/key.ipp>

namespace strata::config {

namespace detail {

STRATA_INLINE std::vector<GivenOptions::Given> read_family(const nlohmann::json& object, const Source& source,
                                                           const KeyFamily& family, const std::vector<KeyInfo>& known,
                                                           const Overrides& overrides) {
    std::vector<GivenOptions::Given> all;
    for (const auto& [key, value] : object.items())
        if (key.starts_with(family.prefix) && !is_key(known, key) && !value.is_null())
            all.push_back({key, source, value.dump()});
    for (const Override& one : overrides)
        if (one.name.starts_with(family.prefix) && !is_key(known, one.name))
            all.push_back({"--" + one.name, "", json_of(one, KeyKind::word).dump()});
    return all;
}

STRATA_INLINE GivenOptions::Given given(const Value& value) {
    return {value.key(), value.source(), value.json().dump()};
}

/// Without the dashes of a flag.
inline std::string_view name_of(const GivenOptions::Given& given) {
    return std::string_view{given.key}.substr(given.key.starts_with("--") ? 2 : 0);
}

STRATA_INLINE bool read_given(const GivenOptions& options, const KeyInfo& info,
                              const std::function<void(const Value&)>& read) {
    const auto* const first = options.find(info.key);
    const auto* const second = info.alias.empty() ? nullptr : options.find(info.alias);
    const auto* const found = first != nullptr ? first : second;
    if (found == nullptr) return false;
    if (first != nullptr && second != nullptr)
        throw Error{Errc::bad_value,
                    (first->file.empty() ? "" : first->file.at(first->key) + ": ") + "'" + first->key + "' and '" +
                        second->key + "' are the same key",
                    "keep one of them"};
    const nlohmann::json json = nlohmann::json::parse(found->json);
    if (json.is_null()) return false;
    const bool is_flag = found->key.starts_with("--");
    read(Value{json, found->file, found->file.empty() && !is_flag ? "'" + found->key + "'" : found->key});
    return true;
}

STRATA_INLINE void check_given(const GivenOptions& options, const std::vector<KeyInfo>& known,
                               const std::vector<std::string_view>& passed_over) {
    for (const GivenOptions::Given& one : options.all()) {
        const std::string_view name = name_of(one);
        if (is_key(known, name) || std::find(passed_over.begin(), passed_over.end(), name) != passed_over.end())
            continue;
        std::vector<std::string_view> names;
        for (const KeyInfo& info : known) names.push_back(info.key);
        const std::string_view near = nearest_name(name, names);
        std::string all;
        for (const std::string_view key : names) all += (all.empty() ? "" : ", ") + std::string{key};
        const bool is_flag = one.key.starts_with("--");
        const std::string dashes = is_flag ? "--" : "";
        throw Error{
            Errc::unknown_key,
            (is_flag ? one.key : place_of(one.file.empty() ? Source{"the configuration"} : one.file, "", one.key)) +
                " is unknown",
            !near.empty() ? "did you mean '" + dashes + std::string{near} + "'"
            : all.empty() ? "remove it: the program's update rule has no options"
                          : "remove it: the program's update rule has " + all};
    }
}

}  // namespace detail

STRATA_INLINE void GivenOptions::put(Given given) {
    const auto found = std::find_if(all_.begin(), all_.end(),
                                    [&](const Given& one) { return detail::name_of(one) == detail::name_of(given); });
    if (found == all_.end())
        all_.push_back(std::move(given));
    else
        *found = std::move(given);
}

STRATA_INLINE const GivenOptions::Given* GivenOptions::find(std::string_view key) const noexcept {
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&](const Given& one) { return detail::name_of(one) == key; });
    return found == all_.end() ? nullptr : &*found;
}

}  // namespace strata::config
