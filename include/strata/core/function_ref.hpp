#pragma once
// strata/core/function_ref.hpp - FunctionRef: a call of whatever can be called, without a template for each.

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace strata::core {

template <class Signature>
class FunctionRef;

/// Refers to a function object that outlives it: a parameter, never a member. For code that would otherwise be a template
/// on every lambda that it is given, and compiled anew for each. Costs a call through a pointer, and never allocates.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
public:
    template <class Call>
    requires(!std::same_as<std::remove_cvref_t<Call>, FunctionRef> &&
             std::is_invocable_r_v<Result, Call&, Arguments...>) FunctionRef(Call&& call)
    noexcept
        : object_{const_cast<void*>(static_cast<const void*>(std::addressof(call)))},
          call_{[](void* object, Arguments... arguments) -> Result {
              return (*static_cast<std::remove_reference_t<Call>*>(object))(std::forward<Arguments>(arguments)...);
          }} {}

    Result operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

private:
    void* object_;
    Result (*call_)(void*, Arguments...);
};

}  // namespace strata::core
