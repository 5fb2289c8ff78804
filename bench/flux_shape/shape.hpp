#pragma once
// bench/flux_shape/shape.hpp - the shape of Flux.1 [dev], or with fewer blocks and heads of it, and what it is fed.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include <torch/torch.h>

#include <strata/models/flux.hpp>

#include "../real_size.hpp"

namespace bench {

struct FluxShape {
    std::int64_t depth = 19;  ///< joint blocks; twice as many single ones, and 38 beside 19
    std::int64_t heads = 24;  ///< of 128
    std::int64_t text_width = 4096;
    std::int64_t pixels = 256;
    std::int64_t batch = 1;
    std::int64_t text = 512;  ///< tokens
    std::int64_t single = 0;  ///< 0: twice the depth

    [[nodiscard]] strata::models::FluxOptions options() const {
        strata::models::FluxOptions options;
        options.double_blocks = depth;
        options.single_blocks = single > 0 ? single : 2 * depth;
        options.heads = heads;
        options.text_width = text_width;
        return options;
    }
    [[nodiscard]] auto make() const {
        return [options = options()] { return std::make_shared<strata::models::Flux>(options); };
    }
};

/// One joint and one single block, two heads: for a look at the numbers.
inline constexpr FluxShape small_flux_shape{
    .depth = 1, .heads = 2, .text_width = 64, .pixels = 64, .batch = 2, .text = 16, .single = 1};

inline strata::models::FluxBatch batch_of(const FluxShape& shape) {
    torch::manual_seed(3);
    strata::models::FluxBatch batch;
    batch.latents_BCHW = torch::randn({shape.batch, 16, shape.pixels / 8, shape.pixels / 8});
    batch.text_BTE = torch::randn({shape.batch, shape.text, shape.text_width});
    batch.pooled_BE = torch::randn({shape.batch, 768});
    return batch;
}

/// Of the flags; and of --depth 0 all depths from 19 on, for largest_that_fits().
inline std::vector<FluxShape> shapes_of(Flags& flags) {
    FluxShape shape;
    shape.heads = flags.number("heads", shape.heads);
    shape.pixels = flags.number("pixels", shape.pixels);
    shape.batch = flags.number("batch", shape.batch);
    shape.text = flags.number("text", shape.text);
    const std::int64_t depth = flags.number("depth", shape.depth);
    std::vector<FluxShape> shapes;
    for (std::int64_t d = depth > 0 ? depth : 19; d >= (depth > 0 ? depth : 1); --d) {
        shapes.push_back(shape);
        shapes.back().depth = d;
    }
    return shapes;
}

inline void print_shape(const FluxShape& shape) {
    const auto options = shape.options();
    std::printf("%lld joint and %lld single blocks of width %lld, %lld x %lld pixels, %lld text tokens, %d threads\n",
                static_cast<long long>(options.double_blocks), static_cast<long long>(options.single_blocks),
                static_cast<long long>(options.width()), static_cast<long long>(shape.batch),
                static_cast<long long>(shape.pixels), static_cast<long long>(shape.text), at::get_num_threads());
    std::fflush(stdout);
}

/// The last lines: what was held, and JSON.
///
///   name  of the case
inline void report(const Measured& m, const char* name, double peak_gib, double anonymous_gib, double limit_gib) {
    for (const auto& [kind, bytes] : m.device_kinds)
        if (bytes > 0) std::printf("device tier, %s: %.0f MiB at most\n", kind.c_str(), mib(bytes));
    const StepSeconds step = m.usual_step();
    std::printf(
        "{\"bench\":\"flux_shape\",\"case\":\"%s, %.3f billion parameters, %.3f million trained\",\"ours\":%.2f,\"unit\":\"GiB resident\","
        "\"limit\":%.1f,\"limit_name\":\"GiB resident\",\"peak_anonymous_gib\":%.2f,\"metered_mib\":%.0f,\"tensors_mib\":%.0f,"
        "\"device_and_tensors_mib\":%.0f,\"windows_mib\":%.0f,\"on_disk_gb\":%.2f,\"construction_s\":%.1f,\"start_s\":%.1f,"
        "\"step_s\":%.1f,\"forward_s\":%.1f,\"backward_s\":%.1f,\"update_s\":%.1f,\"first_loss\":%.5f,\"last_loss\":%.5f}\n",
        name, static_cast<double>(m.parameters) / 1e9, static_cast<double>(m.trained) / 1e6, peak_gib, limit_gib,
        anonymous_gib, mib(m.device), mib(m.tensors), mib(m.device_and_tensors), mib(m.host),
        static_cast<double>(m.on_disk) / 1e9, m.making_s, m.start_s, step.whole(), step.forward, step.backward,
        step.update, m.losses.front(), m.losses.back());
}

}  // namespace bench
