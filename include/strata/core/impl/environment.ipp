#pragma once
// strata/core/impl/environment.ipp - one pass over the text.

#include <cstdlib>

#include <strata/core/environment.hpp>
#include <strata/core/error.hpp>

namespace strata {

STRATA_INLINE std::optional<std::string> process_environment(const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>{value};
}

STRATA_INLINE std::string expand_environment(std::string_view text, std::string_view key,
                                             const Environment& environment) {
    constexpr std::string_view opening = "{env:";
    std::string expanded;
    while (true) {
        const std::size_t begin = text.find(opening);
        expanded += text.substr(0, begin);
        if (begin == std::string_view::npos) return expanded;
        const std::size_t end = text.find('}', begin);
        if (end == std::string_view::npos)
            throw Error{Errc::bad_value, std::string{key} + " has '{env:' without its closing '}'", "write {env:NAME}"};
        const std::string name{text.substr(begin + opening.size(), end - begin - opening.size())};
        const std::optional<std::string> value = environment(name);
        if (!value)
            throw Error{Errc::bad_value,
                        std::string{key} + " refers to the environment variable '" + name + "', which is not set",
                        "export " + name + ", or write the value itself"};
        expanded += *value;
        text.remove_prefix(end + 1);
    }
}

}  // namespace strata
