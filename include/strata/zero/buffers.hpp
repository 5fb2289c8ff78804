#pragma once
// strata/zero/buffers.hpp - the tensors of a model that are no parameters: all ranks begin with rank 0's.

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/core/inline.hpp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::zero {

/// A buffer as a model registered it.
struct Buffer {
    std::string name;   ///< as in the state dict: "block0.running_mean"
    at::Tensor tensor;  ///< the model's own tensor, not a copy
};

/// Every buffer of a model once, in registration order; one that is registered twice under its first name. Local.
///
///   Module  a torch::nn::Module; a template argument so that this header needs no torch/nn
template <class Module>
[[nodiscard]] std::vector<Buffer> buffers_of(Module& module) {
    std::vector<Buffer> found;
    std::unordered_set<const void*> seen;
    for (const auto& item : module.named_buffers()) {
        if (item.value().defined() && seen.insert(item.value().unsafeGetTensorImpl()).second)
            found.push_back({item.key(), item.value()});
    }
    return found;
}

namespace detail {

/// One line a buffer: what must be the same on every rank. Throws bad_parameter for one that is not dense or has no memory.
[[nodiscard]] std::string describe(const std::vector<Buffer>& buffers);

/// Moves a buffer to where the model computes, in its own type; its values get memory of their own where elements share it.
void place_buffer(const at::Tensor& buffer, at::Device device);

}  // namespace detail

/// Gives all ranks rank 0's values and moves them to where the model computes. Each buffer keeps its own type, whatever the
/// parameters are kept in. A Trainer does it; a program with an Engine alone calls it beside making that:
///
///   zero::take_buffers(comm, zero::buffers_of(*model));
///
///   device  where the model computes
/// Collective. Throws rank_mismatch naming the first buffer that ranks have differently, bad_parameter for one that is not dense
/// or has no memory.
template <comm::Communicator Comm>
void take_buffers(Comm& comm, const std::vector<Buffer>& buffers, at::Device device = at::kCPU) {
    const at::NoGradGuard no_grad;
    auto& host = comm::host_of(comm);
    std::string description;
    comm::agree(host, [&] { description = detail::describe(buffers); });
    detail::check_same_model(host.all_gather_varied(description));
    for (const Buffer& buffer : buffers) {
        detail::place_buffer(buffer.tensor, device);
        if (comm.world() == 1 || buffer.tensor.numel() == 0) continue;
        const at::Tensor values = buffer.tensor.detach();
        const at::Tensor copy = values.cpu().clone(at::MemoryFormat::Contiguous);
        host.broadcast(detail::bytes_of(copy), 0);
        if (comm.rank() != 0) values.copy_(copy);
    }
}

/// Buffers, and parameters behind them, under their names.
template <class Module>
[[nodiscard]] std::vector<Buffer> tensors_of(Module& module) {
    std::vector<Buffer> found = buffers_of(module);
    for (const auto& item : module.named_parameters()) found.push_back({item.key(), item.value()});
    return found;
}

/// Throws bad_parameter naming the tensors of another floating point type than `type`, where libtorch's error says that types met
/// which do not go together: an fp32 buffer makes what it touches fp32, and a bf16 layer refuses that. Local.
///
///   tensors  of the model
///   type     what parameters are kept in, but for exceptions
void explain_mixed_types(const c10::Error& error, const std::vector<Buffer>& tensors, at::ScalarType type);

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/buffers.ipp>
#endif
