// tests/compile_time/clang/light.cpp - rooms without libtorch, bodies included, as another compiler than gcc reads them.
//
// libtorch 1.13 itself is no C++20 for clang 14 (incomplete c10::IValue in a std::vector), so files with torch/torch.h are left out.

#include <strata/comm/self_comm.hpp>
#include <strata/config/dataset_list.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/clip.hpp>
#include <strata/optim/deepspeed_schedules.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/loss_scale.hpp>
#include <strata/optim/schedule.hpp>
#include <strata/optim/sgd.hpp>
#include <strata/policy/setup.hpp>
#include <strata/storage/folder_or_bucket.hpp>
#include <strata/storage/local.hpp>
#include <strata/storage/s3.hpp>
#include <strata/storage/safetensors.hpp>

int main() { return strata::Setup<strata::ZeroStage<2>>::sharding::stage == 0; }
