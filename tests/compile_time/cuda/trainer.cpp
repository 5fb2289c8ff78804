// What a program of a build with CUDA is made of, on a machine that can only compile it.

#include <memory>
#include <utility>

#include <torch/torch.h>

#include <strata/strata.hpp>

namespace {

using namespace strata;

struct Net : torch::nn::Module {
    using Batch = std::pair<torch::Tensor, torch::Tensor>;
    using Units = UnitList<torch::nn::LinearImpl>;
    std::shared_ptr<Unit<torch::nn::LinearImpl>> layer = std::make_shared<Unit<torch::nn::LinearImpl>>(8, 1);
    Net() { register_module("layer", layer); }
    torch::Tensor loss(const Batch& batch) { return torch::mse_loss(layer->forward(batch.first), batch.second); }
};

using OnGpus = train::compute_of_t<Setup<>>;  // what a build with CUDA computes on where nothing else is said
static_assert(std::same_as<OnGpus, train::compute_of_t<Setup<Compute<Cuda>>>> &&
              std::same_as<OnGpus::Device, zero::CudaDevice>);
static_assert(rule::DeviceIsInThisBuild<Cuda>::holds && train::compute_of_t<Setup<Compute<Host>>>::Device::is_host);
static_assert(zero::ComputeDevice<zero::CudaDevice>);
static_assert(comm::takes_device_memory_v<OnGpus::Comm>);

}  // namespace

template class strata::detail::TrainerBody<Setup<ZeroStage<2>, Precision<Bf16>, Ema<Device>>, Net>;
template class strata::detail::TrainerBody<Setup<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>, Net>;
template class strata::zero::Engine<Setup<ZeroStage<0>, Precision<PureBf16>, Optimizer<Lamb>>, comm::DefaultComm,
                                    zero::CudaDevice>;
template class strata::zero::Engine<Setup<ZeroStage<1>, Optimizer<Lamb>>, train::compute_of_t<strata::Setup<>>::Comm,
                                    zero::CudaDevice>;
