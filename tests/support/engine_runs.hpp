#pragma once
// tests/support/engine_runs.hpp - what tests of engines share: names, and runs of several engines whose bits are compared.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/policy/recompute.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

#include "../mpi/shared_folder.hpp"
#include "../mpi/toy_engines.hpp"
#include "../mpi/toy_model.hpp"

namespace strata_test {

using strata::Blocks;
using strata::Cpu;
using strata::Device;
using strata::Ema;
using strata::Errc;
using strata::Gradients;
using strata::InBackward;
using strata::Nvme;
using strata::OffloadTarget;
using strata::Optimizer;
using strata::OptimizerState;
using strata::Parameters;
using strata::PureBf16;
using strata::Recompute;
using strata::Split;
using strata::Unit;
using strata::Update;
using strata::comm::MpiComm;
using strata::zero::MemoryKind;
using strata::zero::OnNonFinite;
using strata::zero::parameters_of;
using strata::zero::Place;
using torch::Tensor;

using Two = EngineOf<ZeroStage<2>>;
using Three = EngineOf<ZeroStage<3>>;

/// Units of which 30 % of the state is more than one and less than two, on up to three ranks: one bucket of them is cut.
inline constexpr int wide_width = 160;
using WideModel = RowModel<wide_width, 4>;
/// Its case, with windows on a disk that are smaller than a bucket.
inline Case wide_case(const std::filesystem::path& disk) {
    return {.model = make<WideModel>(),
            .bucket_numel = 1'000'000,
            .nvme_path = disk,
            .nvme = {.budget_bytes = std::size_t{256} << 10}};
}

struct NamedCase {
    std::string name;
    Case settings;
};

/// Trains each case with the first engine and with all others: their bits are the same.
template <class First, class... Others>
void expect_the_bits_of(MpiComm& comm, const std::vector<NamedCase>& cases) {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    for (const NamedCase& each : cases) {
        const Trace first = train<First>(comm, each.settings);
        int number = 0;
        const auto expect_same = [&](const Trace& other) {
            EXPECT_TRUE(first == other) << each.name << ", engine " << ++number;
        };
        (expect_same(train<Others>(comm, each.settings)), ...);
    }
}

/// Trains a case at stage 2, and at stage 3 with units gathered ahead as far as these bounds go, and with two micro-batches.
inline void expect_bits_of_stage_two(MpiComm& comm, const NamedCase& each,
                                     std::initializer_list<std::int64_t> prefetches,
                                     std::initializer_list<std::int64_t> live) {
    Case settings = each.settings;
    const Trace two = train<Two>(comm, settings);
    for (const std::int64_t prefetch : prefetches) {
        for (const std::int64_t numel : live) {
            settings.prefetch_bucket_bytes = prefetch;
            settings.max_live_parameters = numel;
            EXPECT_TRUE(two == train<Three>(comm, settings)) << each.name << ' ' << prefetch << ' ' << numel;
        }
    }
    settings = each.settings;
    settings.accumulation = 2;
    EXPECT_TRUE(train<Two>(comm, settings) == train<Three>(comm, settings)) << each.name << ", accumulated";
}

}  // namespace strata_test
