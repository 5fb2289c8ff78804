#pragma once
// strata/zero/detail/loss.hpp - what backward() asks of a loss, and the sentences for one that has no gradient.

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include <strata/core/error.hpp>

namespace strata::zero::detail {

/// "shape [8, 3], Float"
inline std::string kind_of(const at::Tensor& tensor) {
    std::string shape;
    for (const std::int64_t extent : tensor.sizes()) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
    return "shape [" + shape + "], " + c10::toString(tensor.scalar_type());
}

/// Throws bad_loss. libtorch would throw as well, in terms of its graph, or go on. Local.
inline void check_loss(const at::Tensor& loss) {
    if (!loss.defined())
        throw Error{Errc::bad_loss, "loss(batch) returned a tensor that was never assigned",
                    "return the scalar that the model computes, for instance torch::mse_loss(prediction, target)"};
    if (loss.numel() != 1)
        throw Error{
            Errc::bad_loss,
            "loss(batch) returned " + std::to_string(loss.numel()) + " numbers (" + kind_of(loss) + ") instead of one",
            "return their mean: loss.mean()"};
    if (!at::isFloatingType(loss.scalar_type()))
        throw Error{Errc::bad_loss, "loss(batch) returned a tensor whose type has no gradient (" + kind_of(loss) + ")",
                    "compute the loss in floating point, for instance from prediction.to(torch::kFloat)"};
    if (!loss.requires_grad())
        throw Error{
            Errc::bad_loss, "loss(batch) returned a tensor that no parameter leads to (" + kind_of(loss) + ")",
            "compute the loss from the model's parameters, without detach(), item(), .data() or a NoGradGuard on "
            "the way"};
}

}  // namespace strata::zero::detail
