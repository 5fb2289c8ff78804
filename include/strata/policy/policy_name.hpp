#pragma once
// strata/policy/policy_name.hpp - policy_name_v<P>: a policy as it is typed, for messages and for generated code.

#include <array>
#include <cstddef>
#include <string_view>

#include <strata/core/policy.hpp>

namespace strata {

namespace detail {

template <class T>
constexpr auto signature_of() noexcept {
    return std::string_view{__PRETTY_FUNCTION__};
}

/// T as the compiler prints it: what differs between the signatures for T and for a type whose name is known.
template <class T>
constexpr std::string_view compilers_name_of() noexcept {
    constexpr std::string_view known = "double";
    const std::string_view example = signature_of<double>();
    const std::size_t before = example.find(known);
    const std::size_t after = example.size() - before - known.size();
    const std::string_view whole = signature_of<T>();
    return whole.substr(before, whole.size() - before - after);
}

constexpr bool is_of_identifier(char c) noexcept {
    return c == '_' || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
}

/// The compiler's name without the namespace strata, which a program that composes has named, and with brackets closed
/// as everybody closes them: gcc writes "> >".
///
///   out      nullptr: only counts
///   returns  characters
constexpr std::size_t write_short_name(std::string_view name, char* out) noexcept {
    constexpr std::string_view ours = "strata::";
    std::size_t size = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const bool begins = i == 0 || !(is_of_identifier(name[i - 1]) || name[i - 1] == ':');
        if (begins && name.substr(i).starts_with(ours)) {
            i += ours.size() - 1;
            continue;
        }
        if (name[i] == ' ' && i > 0 && name[i - 1] == '>' && name.substr(i + 1).starts_with('>')) continue;
        if (out != nullptr) out[size] = name[i];
        ++size;
    }
    return size;
}

template <class T>
struct ShortName {
    static constexpr std::size_t size = write_short_name(compilers_name_of<T>(), nullptr);
    static constexpr std::array<char, size> text = [] {
        std::array<char, size> text{};
        write_short_name(compilers_name_of<T>(), text.data());
        return text;
    }();
};

}  // namespace detail

/// A type as a program with `using namespace strata` types it: "Cpu", "Split<Cpu, Nvme, 30>", "mine::Compressed". The
/// compiler's own spelling, so that types of a user's own have a name without a word about it.
template <class T>
inline constexpr std::string_view type_name_v{detail::ShortName<T>::text.data(), detail::ShortName<T>::size};

/// The same of a policy: "ZeroStage<2>", "OffloadTarget<Nvme, Parameters>".
template <Policy P>
inline constexpr std::string_view policy_name_v = type_name_v<P>;

}  // namespace strata
