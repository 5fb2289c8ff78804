#pragma once
// strata/train/compute.hpp - Compute: where this build trains, and what its ranks exchange gradients with.

#include <memory>

#include <ATen/core/Tensor.h>

#include <strata/comm/default_comm.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/tensors_in.hpp>

#ifdef STRATA_WITH_CUDA
#include <strata/comm/nccl_comm.hpp>
#include <strata/zero/cuda_device.hpp>
#endif

namespace strata::train {

/// The tensors of a batch go to a device, as far as zero::for_each_tensor() finds them.
template <class Batch>
void move_batch(Batch& batch, at::Device device) {
    if constexpr (zero::holds_tensors_v<Batch>) {
        zero::for_each_tensor(batch, [device](at::Tensor& tensor) { tensor = tensor.to(device); });
    }
}

/// A model's buffers go where it computes; its parameters are the engine's to move.
template <class Model, class AnyCompute>
[[nodiscard]] std::shared_ptr<Model> buffers_on_device(std::shared_ptr<Model> model, const AnyCompute& compute) {
    if (AnyCompute::Device::is_host) return model;
    const at::Device device = compute.device().device();
    for (at::Tensor& buffer : model->buffers()) buffer.set_data(buffer.to(device));
    return model;
}

/// What a Trainer is made for: an engine's device and communicator. Of a build without CUDA, the CPU and the session's
/// ranks.
class CpuCompute {
public:
    using Comm = comm::DefaultComm;
    using Device = zero::CpuDevice;

    explicit CpuCompute(comm::DefaultComm& session) : session_{session} {}
    [[nodiscard]] Comm& comm() noexcept { return session_; }
    [[nodiscard]] Device device() const noexcept { return {}; }

private:
    comm::DefaultComm& session_;
};

#ifdef STRATA_WITH_CUDA

/// Of a build with CUDA: this rank's GPU, and NCCL between them.
class CudaCompute {
public:
    using Comm = comm::NcclComm<comm::DefaultComm>;
    using Device = zero::CudaDevice;

    /// Collective. Throws what NcclComm throws.
    explicit CudaCompute(comm::DefaultComm& session) : comm_{session}, device_{comm_.device()} {}
    [[nodiscard]] Comm& comm() noexcept { return comm_; }
    [[nodiscard]] Device device() const { return device_; }

private:
    Comm comm_;
    Device device_;
};
using Compute = CudaCompute;

#else

using Compute = CpuCompute;

#endif

}  // namespace strata::train
