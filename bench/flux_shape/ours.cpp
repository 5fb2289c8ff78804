// bench/flux_shape/ours.cpp - does Flux.1 [dev]'s shape train full-rank on a machine of 24 GiB, with less than 12 GiB
// resident?
//
//   bench/run.sh flux_shape [full] [--swap FOLDER] [--steps N] [--depth D] [--heads H] [--pixels E] [--batch B]
//                                  [--text T] [--threads N] [--limit-gib G]
//
// 11.9 billion parameters with random values that are made in units learn by Lion in pure bf16: ZeroStage<3> in one
// process, momenta and parameters in files (48 GB), every bucket updated inside of backward, blocks computed again
// there. One picture of 256 pixels, 512 text tokens.
//
// First one joint and one single block of two heads are trained by the same code and by ZeroStage<2> in memory: losses
// must have the same bits. The exit status is 1 when they have not, when the loss of the repeated batch does not fall
// (where there is a second step), or above the limit.
//
//   --depth  joint blocks, 19 of Flux.1, and twice as many single ones; 0: the most whose files find room
//   --heads  of 128 each; 24 of Flux.1

#include <cstdint>
#include <cstdio>
#include <exception>

#include <torch/torch.h>

#include <strata/optim/lion.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/tensor_memory.hpp>

#include "shape.hpp"

namespace {

using namespace strata;

using OnDisk = Setup<Precision<PureBf16>, Optimizer<Lion>, ZeroStage<3>,
                     OffloadTarget<Nvme, OptimizerState, Parameters>, Update<InBackward>, Recompute<Blocks>>;
using InMemory = Setup<Precision<PureBf16>, Optimizer<Lion>, ZeroStage<2>, Update<InBackward>>;

template <class Composed>
bench::Measured trained(const bench::RealSize& size, const bench::FluxShape& shape) {
    return bench::train<Composed>(size, shape.make(), bench::batch_of(shape), [](auto&) {});
}

/// Files against memory.
bool verified(bench::RealSize size) {
    size.steps = 4;
    size.lr = 1e-4;
    size.prints = false;
    const bench::Measured files = trained<OnDisk>(size, bench::small_flux_shape);
    const bench::Measured memory = trained<InMemory>(size, bench::small_flux_shape);
    return bench::learns_the_same(files, memory, "losses on disk and in memory");
}

}  // namespace

int main(int argc, char** argv) try {
    train::keep_tensor_memory();  // as every Session does
    bench::Flags flags{argc, argv};
    const bench::RealSize size = bench::real_size_of(flags, 1);
    const std::vector<bench::FluxShape> shapes = bench::shapes_of(flags);
    const double limit_gib = flags.real("limit-gib", 12);
    flags.end();

    const bench::FluxShape shape = bench::largest_that_fits(
        size.swap, shapes, [](const bench::FluxShape& s) { return bench::bytes_on_disk<OnDisk>(s.make()); });
    bool right = verified(size);
    bench::print_shape(shape);
    const bench::AnonymousPeak anonymous;
    const bench::Measured m = trained<OnDisk>(size, shape);
    const double peak = bench::status_gib("VmHWM:");
    bench::report(m, "full rank, Lion, pure bf16", peak, anonymous.gib(), limit_gib);
    right = right && m.learnt() && peak < limit_gib;
    if (!right) std::printf("WRONG: see above\n");
    return right ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
