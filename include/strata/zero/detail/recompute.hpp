#pragma once
// strata/zero/detail/recompute.hpp - a call whose activations are made again in backward instead of kept.

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>

namespace strata::zero::detail {

using Tensors = std::vector<at::Tensor>;

/// Calls `forward(inputs)` so that backward runs it a second time; gradient checkpointing, Chen et al. 2016
/// (arXiv:1604.06174). Gradients and random numbers have the bits of the plain call; only
/// where a unit is called several times and uses a parameter several times in each, its gradient is summed in another order.
///
/// Now: forward gets the inputs detached, and no graph is recorded. Its outputs are one node of the caller's graph,
/// which keeps the inputs and the states of the random generators: the CPU's, and those of the inputs' CUDA devices. In
/// every backward through that node: before_rerun(); forward again, with gradients on and the generators as they were;
/// a backward pass of its own through what that recorded. Parameters get their gradients there, added to .grad, and
/// their accumulators' hooks fire once a call of recomputed(), as do callbacks queued with the engine; then the inputs'
/// gradients go on. If no output has a gradient nothing is called. What forward and before_rerun throw leaves
/// backward(), and so do the hooks' exceptions; the generators are as they would be without. Both functions are kept
/// until backward has gone through the node, or the graph ends.
///
/// It is the plain call where gradients are off, or nothing requires one.
///
/// inputs            every tensor that forward reads and that is computed by other trained parts: what forward reaches
/// in
///                   other ways gets a gradient if it is a leaf. Undefined tensors are passed on. An input changed in
///                   place between forward and backward makes backward throw.
/// forward           the same outputs for the same inputs and random numbers. An output that is an input is that very
///                   tensor; integer ones stay as they are; any other one requires a gradient, and if it does not
///                   in the plain call, its gradient is dropped.
/// before_rerun      makes the parameters readable; may be empty
/// parameters_train  false: forward uses nothing that requires a gradient beside its inputs
///
/// Throws wrong_call_order when forward changes an input in place; in backward, when forward returns another number
/// of outputs than before, or when backward is one for chosen tensors (torch::autograd::grad, backward(inputs)) or
/// for higher derivatives (create_graph).
[[nodiscard]] Tensors recomputed(const Tensors& inputs, std::function<Tensors(const Tensors&)> forward,
                                 std::function<void()> before_rerun, bool parameters_train = true);

}  // namespace strata::zero::detail

#ifndef STRATA_COMPILED
#include <strata/zero/impl/recompute.ipp>
#endif
