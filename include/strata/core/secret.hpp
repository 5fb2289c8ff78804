#pragma once
// strata/core/secret.hpp - text that nobody prints by accident.

#include <string>
#include <utility>

namespace strata {

/// Text that must not be seen: it has no operator<< and becomes no string by itself.
class Secret {
public:
    Secret() = default;
    Secret(std::string text) : text_{std::move(text)} {}
    Secret(const char* text) : text_{text} {}
    [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
    [[nodiscard]] const std::string& reveal() const noexcept { return text_; }  ///< for signing and for nothing else

private:
    std::string text_;
};

}  // namespace strata
