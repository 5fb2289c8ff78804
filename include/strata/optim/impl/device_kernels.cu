// strata/optim/impl/device_kernels.cu - optim/device_kernels.hpp for strata's own rules.
//
// Compile with -std=c++20 --expt-relaxed-constexpr -fmad=false.

#include <strata/optim/adagrad.hpp>
#include <strata/optim/adam.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/impl/device_kernels.cuh>
#include <strata/optim/lamb.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/sgd.hpp>

STRATA_UPDATE_ON_DEVICE(strata::AdamW)
STRATA_UPDATE_ON_DEVICE(strata::Adam)
STRATA_UPDATE_ON_DEVICE(strata::Lion)
STRATA_UPDATE_ON_DEVICE(strata::Adagrad)
STRATA_UPDATE_ON_DEVICE(strata::Sgd)
STRATA_LAYERWISE_UPDATE_ON_DEVICE(strata::Lamb)

namespace strata::optim {

template void sum_of_squares_on_device<float>(std::span<const float>, std::span<double>, double*, DeviceStream);
template void sum_of_squares_on_device<bf16>(std::span<const bf16>, std::span<double>, double*, DeviceStream);
template void sum_of_squares_on_device<fp16>(std::span<const fp16>, std::span<double>, double*, DeviceStream);

template void update_average_on_device<float>(double, std::span<const float>, std::span<float>, DeviceStream);
template void update_average_on_device<bf16>(double, std::span<const bf16>, std::span<float>, DeviceStream);

}  // namespace strata::optim
