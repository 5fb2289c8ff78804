#pragma once
// strata/zero/impl/exceptions.ipp - names that exceptions are found by.

#include <algorithm>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/zero/parts/exceptions.hpp>

namespace strata::zero::detail {

STRATA_INLINE std::vector<Parameter> marked(std::vector<Parameter> parameters, std::string_view patterns,
                                            const std::function<bool(std::string_view)>& excepts, bool possible) {
    for (Parameter& parameter : parameters) parameter.excepted = excepts && excepts(parameter.name);
    for (std::string_view rest = patterns; !rest.empty();) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view found = rest.substr(0, comma);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        const std::size_t first = found.find_first_not_of(' ');
        if (first == std::string_view::npos) continue;
        const std::string_view pattern = found.substr(first, found.find_last_not_of(' ') + 1 - first);
        bool taken = false;
        for (Parameter& parameter : parameters) {
            if (parameter.name.find(pattern) == std::string::npos) continue;
            taken = parameter.excepted = true;
        }
        if (!taken)
            throw Error{Errc::bad_value,
                        "excepted_parameters has \"" + std::string{pattern} + "\", which is in no parameter's name",
                        "use parts of names as the state dict has them, with commas between: \"norm,embed\""};
    }
    const auto is_excepted = [](const Parameter& parameter) { return parameter.excepted; };
    const bool any = std::any_of(parameters.begin(), parameters.end(), is_excepted);
    if (any && !possible)
        throw Error{Errc::bad_value,
                    "excepted_parameters or excepts names parameters, and the precision has no format for exceptions",
                    "type Precision<Bf16, Except<Fp32>>, or leave both out"};
    if (!any && possible)
        throw Error{Errc::bad_value, "the precision has a format for exceptions, Except<...>, and no parameter is one",
                    "name them: excepted_parameters = \"norm,embed\"; or leave Except<...> out"};
    return parameters;
}

}  // namespace strata::zero::detail
