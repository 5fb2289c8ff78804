#include "gpus.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <strata/core/amounts.hpp>
#include <strata/health/nvml.hpp>

#include "small_file.hpp"

namespace strata::tools::doctor {

namespace {

/// The worst that is wrong with a GPU, and its fix; empty where nothing is.
std::pair<std::string, std::string> fault_of(const health::GpuReading& gpu) {
    if (gpu.lost) return {"it has fallen off the bus, or wants a reset", "reboot the host; look for Xid in dmesg"};
    if (gpu.remap_failed.value_or(false))
        return {"its memory has no spare row left for one that fails", "have the card replaced"};
    if (gpu.ecc_volatile.uncorrected.value_or(0) > 0)
        return {std::to_string(*gpu.ecc_volatile.uncorrected) +
                    " uncorrectable errors of its memory since the driver was loaded",
                "reset it (nvidia-smi --gpu-reset), and have it replaced if they come back"};
    return {};
}

std::pair<std::string, std::string> weakness_of(const health::GpuReading& gpu) {
    namespace throttle = health::throttle;
    const std::uint64_t bits = gpu.throttle.value_or(0);
    if (gpu.remap_pending.value_or(false))
        return {"a row of its memory is to be replaced", "reset it while nothing runs: nvidia-smi --gpu-reset"};
    if ((bits & throttle::hw_power_brake_slowdown) != 0)
        return {"its power supply slows it down", "look at the host's power supplies"};
    if ((bits & (throttle::hw_thermal_slowdown | throttle::sw_thermal_slowdown)) != 0)
        return {"it is too hot for its full clocks", "look at fans and air"};
    if ((bits & throttle::hw_slowdown) != 0) return {"its hardware slows it down", "look at power and cooling"};
    if (const auto used = gpu.memory_used_percent(); used && *used > 10)
        return {std::to_string(static_cast<int>(*used)) + " % of its memory is in use",
                "end what runs there: nvidia-smi names it"};
    return {};
}

Line judge(const health::GpuReading& gpu, std::size_t number, const std::string& driver) {
    const std::string subject = "GPU " + std::to_string(number);
    std::string found = gpu.name.empty() ? "a GPU without a name" : gpu.name;
    if (gpu.memory_total) found += ", " + core::in_megabytes(*gpu.memory_total);
    if (!driver.empty()) found += ", driver " + driver;
    if (gpu.temperature) found += ", " + std::to_string(*gpu.temperature) + " C";
    Line line = ok(subject, found);
    if (const auto [fault, fix] = fault_of(gpu); !fault.empty())
        line = problem(subject, found + ": " + fault, fix);
    else if (const auto [weakness, what_to_do] = weakness_of(gpu); !weakness.empty())
        line = warning(subject, found + ": " + weakness, what_to_do);
    line.values = {{"name", gpu.name}, {"uuid", gpu.uuid}, {"driver", driver}};
    if (gpu.memory_total) line.values["memory"] = *gpu.memory_total;
    if (gpu.memory_used) line.values["memory_used"] = *gpu.memory_used;
    return line;
}

}  // namespace

std::string parse_driver(const std::string& version) {
    std::istringstream in{version.substr(0, version.find('\n'))};
    for (std::string word; in >> word;)
        if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos)
            return word;
    return {};
}

GpuFacts look_at_gpus(const Environment& environment, const std::string& library) {
    GpuFacts facts;
    facts.visible = environment("CUDA_VISIBLE_DEVICES");
    facts.driver = parse_driver(small_file("/proc/driver/nvidia/version").value_or(""));
    std::error_code none;
    facts.has_device = std::filesystem::exists("/dev/nvidia0", none);
    constexpr unsigned most = 64;
    for (unsigned device = 0; device < most; ++device) {
        const health::OpenedGpu opened = health::open_gpu(device, environment, library);
        if (facts.note.empty() && (opened.monitor || device == 0)) facts.note = opened.note;
        if (!opened.monitor) break;
        facts.gpus.push_back(opened.monitor->read());
    }
    return facts;
}

std::vector<Line> judge(const GpuFacts& facts) {
    std::vector<Line> lines;
    if (facts.gpus.empty()) {
        const std::string note = facts.note.empty() ? "there is none" : facts.note;
        if (facts.visible && (facts.visible->empty() || *facts.visible == "-1"))
            lines.push_back(ok("GPUs", "none is to be used: CUDA_VISIBLE_DEVICES=" + *facts.visible));
        else if (!facts.driver.empty() || facts.has_device || facts.visible)
            lines.push_back(
                problem("GPUs",
                        (facts.driver.empty() ? "no GPU can be used: "
                                              : "driver " + facts.driver + " is loaded, and no GPU can be used: ") +
                            note,
                        facts.visible ? "correct CUDA_VISIBLE_DEVICES, or run nvidia-smi and follow what it says"
                                      : "run nvidia-smi and follow what it says; in a container: --gpus all"));
        else
            lines.push_back(ok("GPUs", "none, and the processor computes (" + note + ")"));
        return lines;
    }
    for (std::size_t i = 0; i < facts.gpus.size(); ++i) lines.push_back(judge(facts.gpus[i], i, facts.driver));
    for (const health::GpuReading& gpu : facts.gpus)
        if (gpu.name != facts.gpus.front().name) {
            lines.push_back(
                warning("GPUs",
                        "they are of several kinds: " + facts.gpus.front().name + " and " + gpu.name +
                            ", and each step waits for the slowest",
                        "leave the slow ones out by CUDA_VISIBLE_DEVICES, with CUDA_DEVICE_ORDER=PCI_BUS_ID"));
            break;
        }
    return lines;
}

}  // namespace strata::tools::doctor
