// bench/flux_shape/lora.cpp - does an adapter of Flux.1 [dev]'s shape train over a base of 4 bits with less than 10 GiB
// resident?
//
//   bench/run.sh flux_shape lora [--swap FOLDER] [--on-disk 0|1] [--rank R] [--steps N] [--depth D] [--heads H]
//                                [--pixels E] [--batch B] [--text T] [--threads N] [--limit-gib G]
//
// 11.9 billion frozen parameters with random values that are made in units, each unit's kept as 4-bit codes (Nf4) and
// made whole in bf16 where it computes: ZeroStage<3> in one process. LoRA of rank 16 beside the projections of all
// attentions is trained by AdamW. --on-disk 1 keeps the base in files (7 GB) and not in memory.
//
// First one joint and one single block of two heads are trained with their base in memory and on a disk: losses must
// have the same bits. The exit status is 1 when they have not, when the loss of the repeated batch does not fall (where
// there is a second step), or above the limit.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <strata/adapters/adapt.hpp>
#include <strata/adapters/lora.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/tensor_memory.hpp>

#include "shape.hpp"

namespace {

using namespace strata;

template <class... Ps>
using Tuned = Setup<Precision<Bf16>, ZeroStage<3>, Adapter<Lora>, FrozenWeights<Nf4>, Recompute<Blocks>, Ps...>;
using InMemory = Tuned<>;
using OnDisk = Tuned<OffloadTarget<Nvme, Parameters>>;

template <class Composed>
bench::Measured trained(const bench::RealSize& size, const bench::FluxShape& shape, std::int64_t rank) {
    const std::vector<std::string> targets{"to_q",       "to_k",       "to_v",       "to_out.0",
                                           "add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"};
    return bench::train<Composed>(size, shape.make(), bench::batch_of(shape), [&](torch::nn::Module& model) {
        static_cast<void>(adapters::adapt<Lora>(model, {.rank = rank, .dropout = 0}, targets));
    });
}

/// A base in memory against one on a disk.
bool verified(bench::RealSize size) {
    size.steps = 4;
    size.lr = 1e-2;
    size.prints = false;
    const bench::Measured memory = trained<InMemory>(size, bench::small_flux_shape, 4);
    const bench::Measured files = trained<OnDisk>(size, bench::small_flux_shape, 4);
    return bench::learns_the_same(files, memory, "losses with the base on disk and in memory");
}

}  // namespace

int main(int argc, char** argv) try {
    train::keep_tensor_memory();  // as every Session does
    bench::Flags flags{argc, argv};
    bench::RealSize size = bench::real_size_of(flags, 1);
    size.lr = 1e-3;
    const std::vector<bench::FluxShape> shapes = bench::shapes_of(flags);
    const std::int64_t rank = flags.number("rank", 16);
    const bool on_disk = flags.number("on-disk", 0) > 0;
    const double limit_gib = flags.real("limit-gib", 10);
    flags.end();

    bool right = verified(size);
    const bench::FluxShape shape = shapes.front();
    bench::print_shape(shape);
    const bench::AnonymousPeak anonymous;
    const bench::Measured m = on_disk ? trained<OnDisk>(size, shape, rank) : trained<InMemory>(size, shape, rank);
    const double peak = bench::status_gib("VmHWM:");
    bench::report(m, "LoRA over 4 bits, bf16", peak, anonymous.gib(), limit_gib);
    right = right && m.learnt() && peak < limit_gib;
    if (!right) std::printf("WRONG: see above\n");
    return right ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
