#pragma once
// strata/zero/detail/recompute.hpp - a call whose activations are made again in backward instead of kept.

#include <functional>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>

namespace strata::zero::detail {

using Tensors = std::vector<at::Tensor>;

/// Calls `forward(inputs)` so that backward runs it a second time; gradient checkpointing, Chen et al. 2016
/// (arXiv:1604.06174). Gradients and random numbers have the bits of the plain call.
///
/// Now: forward gets the inputs detached, and no graph is recorded. Its outputs are one node of the caller's graph,
/// which keeps the inputs and the states of the random generators: the CPU's, and those of the inputs' CUDA devices. In
/// every backward through that node: before_rerun(); forward again, with gradients on and the generators as they were;
/// a backward pass of its own through what that recorded; then the gradients of inputs and parameters go on from the node,
/// to whatever autograd adds them to. A parameter of several calls, or of calls and of computation outside of them, is
/// therefore done when autograd knows it to be: its accumulator adds up what calls give in the order in which backward comes to
/// them, and its hooks fire once. That is the plain call's sum unless a call uses the parameter several times and
/// something that backward meets before that call uses it too: the plain call adds those uses one by one to what there is,
/// and this one adds their sum.
///
/// If no output has a gradient nothing is called. What forward and before_rerun throw leaves backward(), and so do the hooks'
/// exceptions; the generators are as they would be without. Both functions are kept until backward has gone through the
/// node, or the graph ends.
///
/// It is the plain call where gradients are off, or nothing requires one.
///
/// inputs        every tensor that forward reads and that is computed by other trained parts. Undefined tensors are passed
///               on. An input changed in place between forward and backward makes backward throw.
/// forward       the same outputs for the same inputs and random numbers. An output that is an input is that very tensor;
///               integer ones stay as they are; any other one requires a gradient, and if it does not in the plain
///               call, its gradient is dropped.
/// before_rerun  makes the parameters readable; may be empty
/// parameters    leaves that forward may use beside its inputs; those that require no gradient count for nothing. nullopt:
///               they are not known. A leaf that forward uses and that is not among them gets its gradient as well, but from
///               each call by itself: added to .grad within the pass, its hooks fire once a call.
///
/// Throws wrong_call_order when forward changes an input in place; in backward, when forward returns another number
/// of outputs than before, or when backward is one for chosen tensors (torch::autograd::grad, backward(inputs)) or
/// for higher derivatives (create_graph).
[[nodiscard]] Tensors recomputed(const Tensors& inputs, std::function<Tensors(const Tensors&)> forward,
                                 std::function<void()> before_rerun,
                                 const std::optional<Tensors>& parameters = std::nullopt);

}  // namespace strata::zero::detail

#ifndef STRATA_COMPILED
#include <strata/zero/impl/recompute.ipp>
#endif
