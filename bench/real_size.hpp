#pragma once
// bench/real_size.hpp - what benches of published shapes share: flags, room on the disk, phases of steps, what a
// process held.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <strata/comm/self_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/offload/host_memory.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/in_units.hpp>
#include <strata/zero/memory_forecast.hpp>
#include <strata/zero/model_outline.hpp>

#include "process_memory.hpp"

namespace bench {

/// Flags of a bench, "--steps 3": each once, numbers but for --swap.
class Flags {
public:
    Flags(int argc, char** argv) {
        for (int i = 1; i < argc; i += 2) {
            const std::string flag = argv[i];
            if (!flag.starts_with("--") || i + 1 == argc) refuse("'" + flag + "' is no flag with a value");
            given_[flag.substr(2)] = argv[i + 1];
        }
    }
    std::int64_t number(const std::string& name, std::int64_t otherwise) { return taken(name, otherwise); }
    double real(const std::string& name, double otherwise) { return taken(name, otherwise); }
    std::string text(const std::string& name, const std::string& otherwise) {
        const auto found = given_.find(name);
        if (found == given_.end()) return otherwise;
        const std::string value = found->second;
        given_.erase(found);
        return value;
    }
    /// When all were taken: ends the program with those that nobody knows.
    void end() const {
        if (!given_.empty()) refuse("there is no --" + given_.begin()->first);
    }

private:
    [[noreturn]] static void refuse(const std::string& what) {
        std::fprintf(stderr, "%s; the first lines of the bench's ours.cpp say which flags there are\n", what.c_str());
        std::exit(2);
    }
    template <class Number>
    Number taken(const std::string& name, Number otherwise) {
        const std::string value = text(name, "");
        if (value.empty()) return otherwise;
        char* end = nullptr;
        const double number = std::strtod(value.c_str(), &end);
        if (*end != '\0' || !(number >= 0)) refuse("--" + name + " " + value + " is no number of at least 0");
        return static_cast<Number>(number);
    }
    std::map<std::string, std::string> given_;
};

/// Of one training.
struct RealSize {
    std::filesystem::path swap = ".";
    std::int64_t steps = 1;
    double lr = 1e-5;
    double max_grad_norm = 0;
    bool prints = true;
};
inline RealSize real_size_of(Flags& flags, std::int64_t steps) {
    RealSize size;
    size.swap = flags.text("swap", ".");
    size.steps = std::max<std::int64_t>(1, flags.number("steps", steps));
    at::set_num_threads(static_cast<int>(std::max<std::int64_t>(1, flags.number("threads", 2))));
    return size;
}

inline double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }
inline double mib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// Times a phase, and prints what it took when it ends.
class Phase {
public:
    Phase(std::string name, bool prints) : name_{std::move(name)}, prints_{prints} {}
    /// Seconds of it.
    double end() const {
        const double s = std::chrono::duration<double>(Clock::now() - start_).count();
        if (!prints_) return s;
        const double read = value_in(io, "read_bytes:") - read_, written = value_in(io, "write_bytes:") - written_;
        std::printf("%-20s %8.1f s   resident %5.2f GiB, at most %5.2f   read %7.2f GB, written %7.2f GB\n",
                    name_.c_str(), s, status_gib("VmRSS:"), status_gib("VmHWM:"), read / 1e9, written / 1e9);
        std::fflush(stdout);
        return s;
    }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr const char* io = "/proc/self/io";
    std::string name_;
    bool prints_;
    Clock::time_point start_ = Clock::now();
    double read_ = value_in(io, "read_bytes:"), written_ = value_in(io, "write_bytes:");
};

struct StepSeconds {
    double forward = 0, backward = 0, update = 0;
    [[nodiscard]] double whole() const noexcept { return forward + backward + update; }
};

/// What a training was and took.
struct Measured {
    std::int64_t parameters = 0, trained = 0;
    std::vector<float> losses;
    std::vector<double> norms;
    double making_s = 0, start_s = 0;
    std::vector<StepSeconds> seconds;
    /// Bytes at most, in the steps: of the meter on the device (the CPU, for this bench) and on the host (windows of
    /// files), of libtorch's tensors (activations, gradients until they are in a bucket), and of meter's device and
    /// tensors at one moment.
    std::int64_t device = 0, host = 0, tensors = 0, device_and_tensors = 0;
    std::int64_t on_disk = 0;
    std::map<std::string, std::int64_t> device_kinds;  ///< of the meter, each at most

    [[nodiscard]] StepSeconds usual_step() const {  // the first one finds nothing gathered ahead and cold files
        std::vector<StepSeconds> sorted{seconds.begin() + (seconds.size() > 1 ? 1 : 0), seconds.end()};
        std::ranges::sort(sorted, {}, &StepSeconds::whole);
        return sorted[sorted.size() / 2];
    }
    [[nodiscard]] bool learnt() const {
        return std::ranges::all_of(losses, [](float loss) { return std::isfinite(loss); }) &&
               (losses.size() == 1 || losses.back() < losses.front());
    }
};

/// Whether a small model has learnt, and the same bit by bit with what is on a disk there and in memory; prints which.
///
///   what  "losses on disk and in memory"
inline bool learns_the_same(const Measured& files, const Measured& memory, const char* what) {
    const bool equal = files.losses == memory.losses && files.norms == memory.norms;
    std::printf("%.1f million parameters, %zu steps: %s %s (%.6f to %.6f)\n",
                static_cast<double>(files.parameters) / 1e6, files.losses.size(), what,
                equal ? "have the same bits" : "DIFFER", files.losses.front(), files.losses.back());
    std::fflush(stdout);
    return equal && files.learnt();
}

/// The bytes that a trainer of this model keeps on a disk: of its outline, which takes a second and no memory.
template <class Setup, class Make>
std::int64_t bytes_on_disk(Make&& make) {
    return strata::zero::forecast_memory<Setup>(strata::zero::outline_of(make), {}).most_in_all()[strata::Place::disk];
}

/// Whether a swap folder has room for so many bytes, and 2 GiB to spare.
inline bool has_room(const std::filesystem::path& swap, std::int64_t bytes) {
    return strata::offload::free_disk_space(swap) >= static_cast<std::uint64_t>(bytes) + (std::uint64_t{2} << 30);
}

/// Of candidates, largest first, the first whose files have room; ends the program with a line when there is none.
template <class Shape, class BytesOf>
Shape largest_that_fits(const std::filesystem::path& swap, const std::vector<Shape>& candidates, BytesOf&& bytes_of) {
    std::int64_t bytes = 0;
    for (const Shape& shape : candidates) {
        bytes = bytes_of(shape);
        if (!has_room(swap, bytes)) continue;
        std::printf("%.2f GB go onto %s, where %.2f GB are free\n", static_cast<double>(bytes) / 1e9, swap.c_str(),
                    static_cast<double>(strata::offload::free_disk_space(swap)) / 1e9);
        return shape;
    }
    std::fprintf(
        stderr,
        "%.2f GB and 2 GiB to spare would have to go onto %s, where %.2f GB are free: give --swap a folder on a larger disk, or a "
        "smaller --depth (0: the largest that fits)\n",
        static_cast<double>(bytes) / 1e9, swap.c_str(),
        static_cast<double>(strata::offload::free_disk_space(swap)) / 1e9);
    std::exit(1);
}

/// Steps on one batch by an engine of this composition, in one process.
///
///   make     returns the model; called in in_units()
///   prepare  called with the model before the engine takes it over
template <class Setup, class Make, class Batch, class Prepare>
Measured train(const RealSize& size, Make&& make, const Batch& batch, Prepare&& prepare) {
    using Engine = strata::zero::Engine<Setup, strata::comm::SelfComm>;
    CountedTensors& tensors = CountedTensors::in_front();
    Measured measured;
    strata::comm::SelfComm comm;
    torch::manual_seed(1);
    const Phase making{"model construction", size.prints};
    const auto model = strata::in_units(make);
    prepare(*model);
    measured.making_s = making.end();

    const Phase start{"engine start", size.prints};
    typename Engine::Options options;
    options.tiers.nvme_path = size.swap;
    options.max_grad_norm = size.max_grad_norm;
    auto parameters = strata::zero::parameters_of(*model);
    for (const auto& parameter : parameters) {
        measured.parameters += parameter.tensor.numel();
        measured.trained += parameter.tensor.requires_grad() ? parameter.tensor.numel() : 0;
    }
    Engine engine{comm, std::move(parameters), options};
    measured.start_s = start.end();

    auto& meter = engine.memory();
    meter.reset_peaks();
    tensors.begin([&meter] { return meter.total(strata::Place::device).now; });
    for (std::int64_t i = 1; i <= size.steps; ++i) {
        const std::string step = "step " + std::to_string(i) + ", ";
        torch::manual_seed(2);  // the same noise on the same batch: the loss has to fall
        StepSeconds seconds;
        const Phase forward{step + "forward", size.prints};
        engine.begin_step(size.lr);
        at::Tensor loss = model->loss(batch);
        measured.losses.push_back(loss.template item<float>());
        seconds.forward = forward.end();
        const Phase backward{step + "backward", size.prints};
        engine.backward(loss);
        loss.reset();
        seconds.backward = backward.end();
        const Phase update{step + "update", size.prints};
        measured.norms.push_back(engine.step(size.lr).grad_norm);
        seconds.update = update.end();
        measured.seconds.push_back(seconds);
        if (size.prints)
            std::printf("  loss %.6f, gradient norm %.4f\n", measured.losses.back(), measured.norms.back());
    }
    measured.device = meter.total(strata::Place::device).peak;
    measured.host = meter.total(strata::Place::host).peak;
    measured.on_disk = meter.total(strata::Place::disk).peak;
    measured.tensors = tensors.most();
    measured.device_and_tensors = std::max(tensors.most_together(), measured.device);
    for (std::size_t k = 0; k < strata::zero::memory_kind_count; ++k) {
        const auto kind = static_cast<strata::zero::MemoryKind>(k);
        measured.device_kinds[std::string{name_of(kind)}] = meter.of(kind, strata::Place::device).peak;
    }
    tensors.begin({});  // before the engine goes
    return measured;
}

}  // namespace bench
