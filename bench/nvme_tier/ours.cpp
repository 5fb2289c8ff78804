// bench/nvme_tier/ours.cpp - does an optimizer step over state on disk run as fast as the disk?
//
//   bench/run.sh nvme_tier [FOLDER [MILLIONS_OF_PARAMETERS [ROUNDS [ELEMENTS_A_WINDOW [BUFFERS]]]]]
//
// Ours: WindowPipeline with the AdamW kernel over master weights and two moments (12 bytes a parameter, read and
// written once a step), until everything is on the disk. Limit: the same bytes read and written back by io_uring with
// O_DIRECT, the same block size and as many blocks under way, without looking at them. Peer: the same windows read,
// updated and written one after the other. All in turn, several rounds; the answer is checked first.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <strata/offload/window_pipeline.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/update_kernel.hpp>

#include "../measure.hpp"
#include "by_hand.hpp"

namespace {

using bench::median, bench::seconds_of;

using namespace strata;
using offload::Access;
using offload::Window;
using offload::WindowPipeline;

void fill(const Window& window) {
    for (std::size_t k = 0; k < 3; ++k) {
        const auto numbers = window.array<float>(k);
        std::fill(numbers.begin(), numbers.end(), k == 0 ? 0.01F * static_cast<float>(window.index() % 7) : 0.0F);
    }
}

/// One step of AdamW over a window.
void update(const Window& window, std::span<const float> gradient, std::int64_t step) {
    const auto scalars = AdamW::scalars({}, 1e-3, step);
    optim::update<AdamW, float>(scalars, {}, gradient.first(window.array<float>(0).size()), window.array<float>(0),
                                {window.array<float>(1), window.array<float>(2)});
}

struct Case {
    std::string name;
    std::unique_ptr<WindowPipeline> state;
    std::int64_t step = 0;
    std::vector<double> times;
};

}  // namespace

int main(int argc, char** argv) {
    const auto argument = [&](int i, double otherwise) { return argc > i ? std::atof(argv[i]) : otherwise; };
    const std::filesystem::path disk = argc > 1 ? argv[1] : ".";
    const auto numel = static_cast<std::int64_t>(argument(2, 64) * 1e6);
    const int rounds = static_cast<int>(argument(3, 7));
    const auto window_numel =
        static_cast<std::int64_t>(argument(4, static_cast<double>(offload::usual_window_bytes / 12)));
    const auto buffers = static_cast<std::size_t>(argument(5, static_cast<double>(offload::usual_buffers)));

    std::vector<offload::WindowArrays> windows;
    const std::array<std::int64_t, 1> share{numel};
    for (const offload::WindowRun& run : offload::cut_windows(share, window_numel)) {
        const std::size_t bytes = 4 * static_cast<std::size_t>(run.numel);
        windows.push_back({bytes, bytes, bytes});
    }
    const std::size_t buffer = offload::SwapFile::bytes_of(offload::payload_of(windows.front()));
    std::vector<float> gradient(static_cast<std::size_t>(window_numel));
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = 1e-3F * static_cast<float>(i % 1001) - 0.5F;

    const offload::SwapFolder folder{disk, offload::new_run_id(), 0};
    std::vector<Case> cases;
    const auto add = [&](const char* name, offload::IoEngine engine, offload::Coverage coverage) {
        if (engine == offload::IoEngine::uring && !offload::has_uring()) return;
        offload::PipelineOptions options;
        options.budget_bytes = buffers * buffer;
        options.io.engine = engine;
        options.file.coverage = coverage;
        const std::string file = std::to_string(cases.size()) + ".state";
        Case c{.name = name,
               .state = std::make_unique<WindowPipeline>(folder, file, windows, options),
               .step = 0,
               .times = {}};
        c.state->run(Access::write, fill);
        c.state->flush();
        cases.push_back(std::move(c));
    };
    add("adamw fp32", offload::IoEngine::uring, offload::Coverage::sectors);
    add("adamw fp32, no check sums", offload::IoEngine::uring, offload::Coverage::none);
    add("adamw fp32, sums of every byte", offload::IoEngine::uring, offload::Coverage::every_byte);
    add("adamw fp32, threads for io_uring", offload::IoEngine::threads, offload::Coverage::sectors);

    const offload::IoOptions io_options;
    const auto depth =
        static_cast<unsigned>(std::min<std::size_t>(io_options.queue_depth, buffers * buffer / io_options.block_bytes));
    const offload::SwapFile& file = cases.front().state->file();
    const std::uint64_t bytes = file.file_bytes() / io_options.block_bytes * io_options.block_bytes;
    RawDisk raw{folder.file("raw"), bytes, io_options.block_bytes, depth};
    std::printf("%.0f million parameters, %zu windows of %.1f MiB, %zu buffers, %s, raw depth %u\n",
                static_cast<double>(numel) / 1e6, windows.size(), static_cast<double>(buffer) / 1048576.0, buffers,
                file.direct() ? "O_DIRECT" : "buffered", depth);

    const auto one_step = [&](Case& c) {
        ++c.step;
        c.state->run(Access::update, [&](const Window& window) { update(window, gradient, c.step); });
        c.state->flush();
    };
    const auto without_overlap = [&](Case& c) {
        ++c.step;
        for (std::size_t i = 0; i < windows.size(); ++i) {
            const Window window = c.state->acquire(i);
            update(window, gradient, c.step);
            c.state->release(window, Access::update);
            c.state->flush();
        }
    };

    std::vector<double> raw_times;
    std::vector<double> peer_times;
    for (int round = 0; round < rounds; ++round) {
        const double before = seconds_of([&] { raw.pass(); });
        for (std::size_t i = 0; i < cases.size(); ++i) {  // another one is first in every round
            Case& c = cases[(i + static_cast<std::size_t>(round)) % cases.size()];
            c.times.push_back(seconds_of([&] { one_step(c); }));
        }
        raw_times.push_back((before + seconds_of([&] { raw.pass(); })) / 2);
        peer_times.push_back(seconds_of([&] { without_overlap(cases.front()); }));
    }

    // The answer: every window against the same steps in memory, bit by bit.
    for (Case& c : cases) {
        std::vector<float> memory(3 * static_cast<std::size_t>(window_numel));
        c.state->run(Access::read, [&](const Window& window) {
            if (window.index() % 5 != 0 && window.index() + 1 != windows.size()) return;
            const std::size_t n = window.array<float>(0).size();
            std::vector<std::span<std::byte>> arrays;
            for (std::size_t k = 0; k < 3; ++k) {
                arrays.push_back(std::as_writable_bytes(std::span{memory}.subspan(k * n, n)));
            }
            const Window expected{window.index(), arrays};
            fill(expected);
            for (std::int64_t step = 1; step <= c.step; ++step) update(expected, gradient, step);
            for (std::size_t k = 0; k < 3; ++k) {
                if (!std::ranges::equal(window.array<std::uint32_t>(k), expected.array<std::uint32_t>(k))) {
                    std::fprintf(stderr, "%s: window %zu is wrong\n", c.name.c_str(), window.index());
                    std::exit(1);
                }
            }
        });
    }

    const double moved = 2.0 * static_cast<double>(bytes) / 1e9;
    const double limit = moved / median(raw_times);
    const auto share_of_limit = [&](const std::vector<double>& times) {  // round by round: other load hits both alike
        std::vector<double> shares;
        for (std::size_t i = 0; i < times.size(); ++i) shares.push_back(raw_times[i] / times[i]);
        return median(shares);
    };
    const double peer = moved / median(peer_times);
    for (const Case& c : cases) {
        const double ours = moved / median(c.times);
        std::printf(
            "{\"bench\":\"nvme_tier\",\"case\":\"%s\",\"ours\":%.3f,\"unit\":\"GB/s\",\"peer\":%.3f,"
            "\"peer_name\":\"the same windows without overlap\",\"ratio\":%.2f,\"limit\":%.3f,"
            "\"limit_name\":\"raw O_DIRECT read and write\",\"of_limit\":%.3f}\n",
            c.name.c_str(), ours, peer, ours / peer, limit, share_of_limit(c.times));
    }
}
