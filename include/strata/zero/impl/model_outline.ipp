#pragma once
// strata/zero/impl/model_outline.ipp - operators that write first values, and do not while an outline is made.

#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <strata/zero/model_outline.hpp>

namespace strata::zero::detail {

inline constexpr c10::DispatchKey passing_key = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// Returns the tensor that it was to write as it is.
inline void leave_as_it_is(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
    const std::size_t arguments = operation.schema().arguments().size();
    const c10::IValue tensor = torch::jit::peek(*stack, 0, arguments);
    torch::jit::drop(*stack, arguments);
    torch::jit::push(*stack, tensor);
}

/// Once for the process: what the key does to operators.
inline void teach_passing_key() {
    using torch::CppFunction;
    using torch::Library;
    static const Library all = [] {
        Library library{Library::IMPL, "_", passing_key, __FILE__, __LINE__};
        library.fallback(CppFunction::makeFallthrough());
        return library;
    }();
    static const Library writing = [] {
        Library library{Library::IMPL, "aten", passing_key, __FILE__, __LINE__};
        for (const char* const name :
             {"uniform_", "normal_", "zero_", "fill_.Scalar", "mul_.Scalar", "mul_.Tensor", "copy_"})
            library.impl(name, CppFunction::makeFromBoxedFunction<&leave_as_it_is>());
        return library;
    }();
}

STRATA_INLINE WithoutValues::WithoutValues() {
    teach_passing_key();
    included_before_ = c10::impl::tls_is_dispatch_key_included(passing_key);
    c10::impl::tls_set_dispatch_key_included(passing_key, true);
    units_before_ = std::exchange(making_in_units(), {true, 0, true});
}

STRATA_INLINE WithoutValues::~WithoutValues() {
    making_in_units() = units_before_;
    c10::impl::tls_set_dispatch_key_included(passing_key, included_before_);
}

}  // namespace strata::zero::detail
