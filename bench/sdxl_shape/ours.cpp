// bench/sdxl_shape/ours.cpp - does SDXL's whole U-Net train full-rank in less device memory than others' offloading
// takes?
//
//   bench/run.sh sdxl_shape [--swap FOLDER] [--steps N] [--pixels E] [--batch B] [--depth D] [--width C] [--threads N]
//                           [--limit-mib M]
//
// The U-Net of SDXL base 1.0, 2.567 billion parameters with random values that are made in units, learns by AdamW in
// bf16 with fp32 masters: ZeroStage<3> in one process, states, masters and parameters in files, blocks computed again
// in backward. Latents of pictures of 128 pixels, eight of them, 77 text tokens. 36 GB of disk. What counts is the
// device tier, which is in the CPU's memory here: what the engine's meter has there (gathered units, whole parameters,
// gradients) and every tensor of libtorch's beside it (activations, gradients on their way) at one moment, in the
// steps.
//
// First a narrow U-Net of the same blocks is trained by the same code and by ZeroStage<2> in memory: losses and
// gradient norms must have the same bits. The exit status is 1 when they have not, when the loss of the repeated batch
// does not fall, or above the limit.
//
//   --depth  transformer blocks of the innermost attentions, 10 of SDXL; those of the level above are a fifth. 0: the
//            most whose files find room
//   --width  channels of the first level, 320 of SDXL; multiples of 64, or 32

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include <torch/torch.h>

#include <strata/models/diffusion_unet.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/tensor_memory.hpp>

#include "../real_size.hpp"

namespace {

using namespace strata;

using OnDisk = Setup<Precision<Bf16>, ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>, Recompute<Blocks>>;
using InMemory = Setup<Precision<Bf16>, ZeroStage<2>>;

struct Shape {
    std::int64_t depth = 10;
    std::int64_t width = 320;
    std::int64_t text_width = 2048;
    std::int64_t pixels = 128;
    std::int64_t batch = 8;

    [[nodiscard]] models::UnetOptions options() const {
        models::UnetOptions options = models::sdxl_unet_options();
        std::int64_t channels = width;
        for (auto& level : options.levels) {
            level.channels = channels;
            level.heads = std::max<std::int64_t>(1, channels / 64);
            if (level.has_attention) level.depth = std::max<std::int64_t>(1, level.depth * depth / 10);
            channels *= 2;
        }
        options.cross_attention_dim = text_width;
        return options;
    }
    [[nodiscard]] auto make() const {
        return [options = options()] { return std::make_shared<models::SdxlUnet>(options); };
    }
};

models::UnetBatch batch_of(const Shape& shape) {
    torch::manual_seed(3);
    const models::UnetOptions options = shape.options();
    models::UnetBatch batch;
    batch.latents_BCHW = torch::randn({shape.batch, options.in_channels, shape.pixels / 8, shape.pixels / 8});
    batch.text_BSE = torch::randn({shape.batch, 77, options.cross_attention_dim});
    batch.pooled_BP = torch::randn({shape.batch, options.pooled_dim()});
    const double edge = static_cast<double>(shape.pixels);
    batch.time_ids_B6 = torch::tensor({edge, edge, 0.0, 0.0, edge, edge}).to(torch::kFloat).repeat({shape.batch, 1});
    return batch;
}

template <class Composed>
bench::Measured trained(const bench::RealSize& size, const Shape& shape) {
    return bench::train<Composed>(size, shape.make(), batch_of(shape), [](auto&) {});
}

/// Files against memory, with few channels.
bool verified(bench::RealSize size) {
    const Shape shape{.depth = 5, .width = 32, .text_width = 64, .pixels = 64, .batch = 2};
    size.steps = 4;
    size.lr = 1e-3;
    size.prints = false;
    const bench::Measured files = trained<OnDisk>(size, shape), memory = trained<InMemory>(size, shape);
    return bench::learns_the_same(files, memory, "losses on disk and in memory");
}

}  // namespace

int main(int argc, char** argv) try {
    train::keep_tensor_memory();  // as every Session does
    bench::Flags flags{argc, argv};
    bench::RealSize size = bench::real_size_of(flags, 3);
    size.max_grad_norm = 1.0;
    Shape shape;
    shape.pixels = flags.number("pixels", shape.pixels);
    shape.batch = flags.number("batch", shape.batch);
    shape.width = flags.number("width", shape.width);
    const std::int64_t depth = flags.number("depth", shape.depth);
    const double limit_mib = flags.real("limit-mib", 9237);
    flags.end();

    std::vector<Shape> candidates;
    for (std::int64_t d = depth > 0 ? depth : 10; d >= (depth > 0 ? depth : 1); --d) {
        candidates.push_back(shape);
        candidates.back().depth = d;
    }
    shape = bench::largest_that_fits(size.swap, candidates,
                                     [](const Shape& s) { return bench::bytes_on_disk<OnDisk>(s.make()); });
    bool right = verified(size);
    std::printf("%.3f billion parameters, %lld pictures of %lld pixels, %d threads\n",
                static_cast<double>(models::unet_parameter_count(shape.options())) / 1e9,
                static_cast<long long>(shape.batch), static_cast<long long>(shape.pixels), at::get_num_threads());
    const bench::AnonymousPeak anonymous;
    const bench::Measured m = trained<OnDisk>(size, shape);
    for (const auto& [kind, bytes] : m.device_kinds)
        if (bytes > 0) std::printf("device tier, %s: %.0f MiB at most\n", kind.c_str(), bench::mib(bytes));
    const double device_mib = bench::mib(m.device_and_tensors);
    right = right && m.learnt() && device_mib < limit_mib;
    const bench::StepSeconds step = m.usual_step();
    std::printf(
        "{\"bench\":\"sdxl_shape\",\"case\":\"%.3f billion parameters, bf16, AdamW, %lld x %lld px\",\"ours\":%.0f,\"unit\":\"MiB of the "
        "device tier\",\"limit\":%.0f,\"limit_name\":\"peers' ZeRO-2 with offloading, one 24 GB card\",\"metered_mib\":%.0f,"
        "\"tensors_mib\":%.0f,\"windows_mib\":%.0f,\"peak_resident_gib\":%.2f,\"peak_anonymous_gib\":%.2f,\"on_disk_gb\":%.2f,"
        "\"construction_s\":%.1f,\"start_s\":%.1f,\"step_s\":%.1f,\"forward_s\":%.1f,\"backward_s\":%.1f,\"update_s\":%.1f,"
        "\"first_loss\":%.5f,\"last_loss\":%.5f}\n",
        static_cast<double>(m.parameters) / 1e9, static_cast<long long>(shape.batch),
        static_cast<long long>(shape.pixels), device_mib, limit_mib, bench::mib(m.device), bench::mib(m.tensors),
        bench::mib(m.host), bench::status_gib("VmHWM:"), anonymous.gib(), static_cast<double>(m.on_disk) / 1e9,
        m.making_s, m.start_s, step.whole(), step.forward, step.backward, step.update, m.losses.front(),
        m.losses.back());
    if (!right) std::printf("WRONG: see above\n");
    return right ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
