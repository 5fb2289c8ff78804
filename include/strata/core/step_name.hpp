#pragma once
// strata/core/step_name.hpp - what is written at a step is named by it: step_00000250, and the way back.

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace strata::core {

/// "step_00000250": eight digits, so that names sort as steps do, and more where there are more.
///
///   step  at least 0
[[nodiscard]] inline std::string step_name(std::int64_t step) {
    char name[32];
    std::snprintf(name, sizeof name, "step_%08lld", static_cast<long long>(step));
    return name;
}

/// The step of such a name, whatever its number of digits. Nothing where the name is another.
[[nodiscard]] inline std::optional<std::int64_t> step_of(std::string_view name) noexcept {
    constexpr std::string_view opening = "step_";
    if (!name.starts_with(opening)) return std::nullopt;
    name.remove_prefix(opening.size());
    std::int64_t step = 0;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data(), end, step);
    if (error != std::errc{} || stop != end || step < 0) return std::nullopt;
    return step;
}

}  // namespace strata::core
