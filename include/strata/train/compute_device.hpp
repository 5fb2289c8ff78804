#pragma once
// strata/train/compute_device.hpp - compute_device(): where a trainer will compute, before it is made.

#include <c10/core/Device.h>

#include <strata/train/compute.hpp>
#include <strata/train/session.hpp>

namespace strata::train {

/// The device of this rank's trainer of that composition: the CPU, or this rank's GPU, which takes a communicator between the GPUs
/// to find out. For data::SourceOptions::device: what encoders are loaded on is free again when a trainer is made behind
/// PictureSource::prepare().
///
///   Setup  Trainer<...>::setup
/// Collective. Throws Error: no_gpu, rank_failed, device_failed.
template <class Setup>
[[nodiscard]] at::Device compute_device(Session& session) {
    using Compute = compute_of_t<Setup>;
    Compute compute{session.ranks<typename Compute::Ranks>()};
    return compute.device().device();
}

}  // namespace strata::train
