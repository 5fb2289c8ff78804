#pragma once
// strata/zero/detail/preparation.hpp - what an Engine checks and converts before it takes a model over.

#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <strata/core/bf16.hpp>
#include <strata/core/elements.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/option_check.hpp>
#include <strata/offload/swap_folder.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/parameters.hpp>

namespace strata::zero::detail {

/// torch's name of an element type.
template <class Element>
inline constexpr at::ScalarType dtype_v = std::same_as<Element, bf16>           ? at::kBFloat16
                                          : std::same_as<Element, fp16>         ? at::kHalf
                                          : std::same_as<Element, double>       ? at::kDouble
                                          : std::same_as<Element, std::uint8_t> ? at::kByte
                                                                                : at::kFloat;

/// The memory of a contiguous tensor. T is its element type, in torch's or in strata's name.
template <class T>
std::span<T> elements(const at::Tensor& tensor) {
    assert(tensor.is_contiguous() && sizeof(T) == tensor.element_size());
    return {static_cast<T*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel())};
}
/// The other way: a tensor over memory that outlives it.
template <class T>
at::Tensor tensor_over(std::span<T> memory, at::Device device) {
    return at::for_blob(memory.data(), {static_cast<std::int64_t>(memory.size())})
        .options(at::TensorOptions{}.dtype(dtype_v<T>).device(device))
        .target_device(device)
        .make_tensor();
}
inline std::span<std::byte> bytes_of(const at::Tensor& tensor) {
    assert(tensor.is_contiguous());
    return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

/// Bytes of memory that a tensor's values have: fewer than its elements take where strides are 0.
inline std::int64_t own_bytes(const at::Tensor& tensor) {
    return tensor.has_storage() ? static_cast<std::int64_t>(std::min(tensor.nbytes(), tensor.storage().nbytes())) : 0;
}

/// The options. Throws bad_value when something is wrong with them.
template <class Options>
Options checked(Options options) {
    OptionCheck check;
    options.check(check);
    check.finish();
    return options;
}

/// One line a parameter, and one for the options: what must be the same on every rank.
///
///   groups   each parameter's group
///   options  names and values: "bucket_numel 100, ..."
[[nodiscard]] std::string describe(const std::vector<Parameter>& parameters, const std::vector<std::size_t>& groups,
                                   const std::string& options);

/// Compares the descriptions of all ranks, in rank order. Throws rank_mismatch naming the first difference.
void check_same_model(const std::vector<std::string>& descriptions);

/// Throws bad_parameter for one whose values are with another engine.
void check_values_are_there(const std::vector<Parameter>& parameters);

/// Moves the parameters that require a gradient out of `parameters` and returns them, in order.
/// Throws no_parameters if there is none, bad_parameter for one that cannot be trained, or is neither on `device` nor on
/// the CPU.
///
///   computes_only  none may require a gradient
[[nodiscard]] std::vector<Parameter> split_off_frozen(std::vector<Parameter>& parameters, at::Device device,
                                                      bool computes_only);

/// This rank's part of what all ranks of this node need, as one line; and the check of all ranks' lines. Throws
/// not_enough_memory.
///
///   bytes  of host memory that this rank is going to allocate beyond what it gives back
[[nodiscard]] std::string memory_need(std::uint64_t bytes);
void require_node_memory(const std::vector<std::string>& needs, const std::string& fix);

/// Throws not_enough_memory when a device has fewer bytes free than this rank is going to allocate on it.
void require_device_memory(at::Device device, std::uint64_t bytes, std::uint64_t free, const std::string& fix);

/// A rank's folder below nvme_path. Throws bad_value where that is empty, bad_reference where it is no folder that can be
/// written, and what SwapFolder throws.
[[nodiscard]] std::unique_ptr<offload::SwapFolder> open_swap_folder(const std::filesystem::path& nvme_path,
                                                                    std::string_view run_id, int rank,
                                                                    std::chrono::milliseconds lock_timeout);

/// Throws bad_parameter when libtorch's error says that a tensor without memory was used: under ZeroStage<3> a parameter
/// of a unit, outside of that unit's forward.
void explain_missing_memory(const c10::Error& error);

/// Throws bad_value when libtorch's error says that tensors of two devices met, for a batch whose tensors strata cannot see.
void explain_unseen_batch(const c10::Error& error, at::Device device);

/// The tensor's values on `device`, contiguous, floating point ones as `dtype`: its own memory where that is nobody else's.
[[nodiscard]] at::Tensor converted_frozen(const at::Tensor& tensor, at::ScalarType dtype, at::Device device);

}  // namespace strata::zero::detail

#ifndef STRATA_COMPILED
#include <strata/zero/impl/preparation.ipp>
#endif
