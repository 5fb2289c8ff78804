#pragma once
// strata/zero/tensors_in.hpp - for_each_tensor(value, call): the tensors inside of a block's arguments and results.

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Scalar.h>

namespace strata::zero {

/// What a walk through a type meets.
enum class TensorsIn {
    none,     ///< numbers, enums, strings: nothing to look for
    some,     ///< it may hold tensors, and they can be found
    unknown,  ///< a class that cannot be looked into: tensors in it stay unseen
};

namespace detail {

/// Stands for the call that visit_tensors() gets; takes members of any type.
struct AnyVisitor {
    template <class Member>
    void operator()(Member&&) const;
};

/// A type of the user with `visit_tensors(value, call)` beside it, found by argument-dependent lookup.
template <class T>
concept Visitable = requires(T& value, const T& constant, AnyVisitor& call) {
    visit_tensors(value, call);
    visit_tensors(constant, call);
};

template <class T>
concept PlainValue =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_null_pointer_v<T> || std::same_as<T, std::monostate> ||
    std::same_as<T, std::nullopt_t> || std::same_as<T, std::string> || std::same_as<T, std::string_view> ||
    std::same_as<T, const char*> || std::same_as<T, char*> || std::same_as<T, at::BFloat16> ||
    std::same_as<T, at::Half> || std::same_as<T, at::Scalar> || std::same_as<T, at::Device>;

/// A value is unknown if any part of it is.
constexpr TensorsIn together(TensorsIn a, TensorsIn b) noexcept { return a < b ? b : a; }

template <class T>
struct Look {
    static constexpr TensorsIn found = std::derived_from<T, at::Tensor> || Visitable<T> ? TensorsIn::some
                                       : PlainValue<T>                                  ? TensorsIn::none
                                                                                        : TensorsIn::unknown;
};
template <class... Parts>
struct LookAll {
    static constexpr TensorsIn found = [] {
        TensorsIn result = TensorsIn::none;
        ((result = together(result, Look<std::remove_cvref_t<Parts>>::found)), ...);
        return result;
    }();
};
template <class T>
struct Look<std::optional<T>> : LookAll<T> {};
template <class T, class Allocator>
struct Look<std::vector<T, Allocator>> : LookAll<T> {};
template <class T, std::size_t size>
struct Look<std::array<T, size>> : LookAll<T> {};
template <class First, class Second>
struct Look<std::pair<First, Second>> : LookAll<First, Second> {};
template <class... Parts>
struct Look<std::tuple<Parts...>> : LookAll<Parts...> {};

template <class T>
inline constexpr bool is_optional_v = false;
template <class T>
inline constexpr bool is_optional_v<std::optional<T>> = true;
template <class T>
inline constexpr bool is_sequence_v = false;
template <class T, class Allocator>
inline constexpr bool is_sequence_v<std::vector<T, Allocator>> = true;
template <class T, std::size_t size>
inline constexpr bool is_sequence_v<std::array<T, size>> = true;
template <class T>
inline constexpr bool is_product_v = false;
template <class First, class Second>
inline constexpr bool is_product_v<std::pair<First, Second>> = true;
template <class... Parts>
inline constexpr bool is_product_v<std::tuple<Parts...>> = true;

}  // namespace detail

/// What for_each_tensor() meets in a T; const and references make no difference.
template <class T>
inline constexpr TensorsIn tensors_in_v = detail::Look<std::remove_cvref_t<T>>::found;

/// True when for_each_tensor() finds every tensor of a T, and a T may hold some. Assert it where a value without
/// tensors makes no sense, a block's result say.
template <class T>
inline constexpr bool holds_tensors_v = tensors_in_v<T> == TensorsIn::some;

/// True when for_each_tensor() misses no tensor of a T, be it because there are none. Assert it where a tensor that
/// stays unseen does harm, in a block's arguments say.
template <class T>
inline constexpr bool knows_tensors_v = tensors_in_v<T> != TensorsIn::unknown;

/// Calls `call(at::Tensor&)` for every defined tensor in `value`, in order; `call(const at::Tensor&)` where the value,
/// or the part the tensor is in, is const. `call` may put another tensor in the place of the one it is given.
///
/// Looks into Tensor, and std::optional, vector, array, pair and tuple of what it can look into. A struct of the user
/// joins in by a template in the struct's namespace, which serves const values too:
///
///   struct Streams { at::Tensor image; std::optional<at::Tensor> text; };
///   template <class Self, class Call>
///       requires std::same_as<std::remove_const_t<Self>, Streams>
///   void visit_tensors(Self& streams, Call&& call) {
///       call(streams.image);
///       call(streams.text);  // members of any type that can be looked into
///   }
///
/// Values of other types are passed over: knows_tensors_v tells.
template <class Value, class Call>
void for_each_tensor(Value&& value, Call&& call) {
    using T = std::remove_cvref_t<Value>;
    if constexpr (std::derived_from<T, at::Tensor>) {
        using Tensor =
            std::conditional_t<std::is_const_v<std::remove_reference_t<Value>>, const at::Tensor, at::Tensor>;
        if (value.defined()) call(static_cast<Tensor&>(value));
    } else if constexpr (tensors_in_v<T> == TensorsIn::none) {
        return;  // std::vector<bool> has no elements to refer to
    } else if constexpr (detail::is_optional_v<T>) {
        if (value.has_value()) for_each_tensor(*value, call);
    } else if constexpr (detail::is_sequence_v<T>) {
        for (auto& element : value) for_each_tensor(element, call);
    } else if constexpr (detail::is_product_v<T>) {
        std::apply([&call](auto&... parts) { (for_each_tensor(parts, call), ...); }, value);
    } else if constexpr (detail::Visitable<T>) {
        visit_tensors(value, [&call](auto&& member) { for_each_tensor(member, call); });
    }
}

}  // namespace strata::zero
