#pragma once
// strata/health/impl/nvml.ipp - the calls of NVML that are made, as its documented ABI has them; no header of it is needed.

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include <dlfcn.h>

#include <strata/core/inline.hpp>
#include <strata/health/impl/visible_gpu.ipp>
#include <strata/health/nvml.hpp>

namespace strata::health {

namespace detail::nvml {

using Return = int;    // nvmlReturn_t
using Device = void*;  // nvmlDevice_t
using Count = unsigned long long;

inline constexpr Return success = 0;
inline constexpr Return insufficient_size = 7;
inline constexpr Return gpu_is_lost = 15;
inline constexpr Return reset_required = 16;
inline constexpr Return unknown_error = 999;

inline constexpr int threshold_shutdown = 0;  // nvmlTemperatureThresholds_t
inline constexpr int threshold_slowdown = 1;
inline constexpr unsigned field_shutdown_margin = 193;  // NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT
inline constexpr unsigned field_slowdown_margin = 194;

struct Memory {  // nvmlMemory_t, the first version
    Count total, free, used;
};
struct Utilization {
    unsigned gpu, memory;  // percent
};
/// Degrees until the GPU's own limit of temperature ("T.Limit"); below 0 beyond it.
struct Margin {
    unsigned version;
    int degrees;
};
inline constexpr unsigned margin_version = sizeof(Margin) | (1U << 24);
struct Field {
    unsigned id, scope;
    long long timestamp, latency;
    unsigned value_type;  // 0 double, 1 unsigned, 5 int: the driver chooses
    Return returned;
    union {
        double as_double;
        int as_int;
        unsigned as_unsigned;
        Count as_count;
    } value;
};
static_assert(sizeof(Memory) == 24 && sizeof(Utilization) == 8 && sizeof(Margin) == 8 && sizeof(Field) == 40);

}  // namespace detail::nvml

/// Symbols that a driver does not have stay empty, and so do the readings that they give.
class Nvml {
public:
    explicit Nvml(void* library) noexcept : library_{library} {
        find(init_, "nvmlInit_v2");
        find(shutdown_, "nvmlShutdown");
        find(error_string_, "nvmlErrorString");
        find(count_, "nvmlDeviceGetCount_v2");
        find(by_index_, "nvmlDeviceGetHandleByIndex_v2");
        find(name_, "nvmlDeviceGetName");
        find(uuid_, "nvmlDeviceGetUUID");
        find(temperature_, "nvmlDeviceGetTemperature");
        find(threshold_, "nvmlDeviceGetTemperatureThreshold");
        find(margin_, "nvmlDeviceGetMarginTemperature");
        find(fields_, "nvmlDeviceGetFieldValues");
        find(ecc_, "nvmlDeviceGetTotalEccErrors");
        find(remapped_, "nvmlDeviceGetRemappedRows");
        find(retired_, "nvmlDeviceGetRetiredPages");
        find(throttle_, "nvmlDeviceGetCurrentClocksEventReasons");  // its name from driver 535 on
        if (throttle_ == nullptr) find(throttle_, "nvmlDeviceGetCurrentClocksThrottleReasons");
        find(power_, "nvmlDeviceGetPowerUsage");
        find(power_limit_, "nvmlDeviceGetEnforcedPowerLimit");
        find(fan_, "nvmlDeviceGetFanSpeed");
        find(memory_, "nvmlDeviceGetMemoryInfo");
        find(utilization_, "nvmlDeviceGetUtilizationRates");
    }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;
    ~Nvml() {
        if (started_ && shutdown_ != nullptr) shutdown_();
        ::dlclose(library_);
    }

    /// Empty, or why it cannot be used.
    std::string start() {
        if (init_ == nullptr || count_ == nullptr || by_index_ == nullptr) return "it lacks calls of NVML";
        const Return returned = init_();
        started_ = returned == detail::nvml::success;
        return started_ ? std::string{} : in_words(returned);
    }
    [[nodiscard]] std::string in_words(detail::nvml::Return returned) const {
        const char* words = error_string_ != nullptr ? error_string_(returned) : nullptr;
        return words != nullptr ? words : "error " + std::to_string(returned);
    }

    using Return = detail::nvml::Return;
    using Device = detail::nvml::Device;
    using Count = detail::nvml::Count;
    Return (*init_)() = nullptr;
    Return (*shutdown_)() = nullptr;
    const char* (*error_string_)(Return) = nullptr;
    Return (*count_)(unsigned*) = nullptr;
    Return (*by_index_)(unsigned, Device*) = nullptr;
    Return (*name_)(Device, char*, unsigned) = nullptr;
    Return (*uuid_)(Device, char*, unsigned) = nullptr;
    Return (*temperature_)(Device, int, unsigned*) = nullptr;
    Return (*threshold_)(Device, int, unsigned*) = nullptr;
    Return (*margin_)(Device, detail::nvml::Margin*) = nullptr;
    Return (*fields_)(Device, int, detail::nvml::Field*) = nullptr;
    Return (*ecc_)(Device, int, int, Count*) = nullptr;
    Return (*remapped_)(Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
    Return (*retired_)(Device, int, unsigned*, Count*) = nullptr;
    Return (*throttle_)(Device, Count*) = nullptr;
    Return (*power_)(Device, unsigned*) = nullptr;        // milliwatts
    Return (*power_limit_)(Device, unsigned*) = nullptr;  // milliwatts
    Return (*fan_)(Device, unsigned*) = nullptr;
    Return (*memory_)(Device, detail::nvml::Memory*) = nullptr;
    Return (*utilization_)(Device, detail::nvml::Utilization*) = nullptr;

private:
    template <class Call>
    void find(Call& call, const char* name) noexcept {
        call = reinterpret_cast<Call>(::dlsym(library_, name));
    }

    void* library_;
    bool started_ = false;
};

namespace detail {

/// Calls one GPU, and remembers whether an answer says that it is gone, and whether there was any.
struct NvmlReader {
    const Nvml& nvml;
    void* device;
    bool lost = false;
    bool answered = false;
    bool erred = false;

    template <class Call, class... Args>
    bool operator()(Call call, Args... args) {
        if (call == nullptr) return false;
        const int returned = call(device, args...);
        lost = lost || returned == nvml::gpu_is_lost || returned == nvml::reset_required;
        answered = answered || returned == nvml::success;
        erred = erred || returned == nvml::unknown_error;
        return returned == nvml::success;
    }
    [[nodiscard]] std::optional<unsigned> number(int (*call)(void*, unsigned*)) {
        unsigned value = 0;
        if (!(*this)(call, &value)) return std::nullopt;
        return value;
    }
    [[nodiscard]] EccCounts ecc(int counter) {
        EccCounts counts;
        nvml::Count count = 0;
        if ((*this)(nvml.ecc_, 0, counter, &count)) counts.corrected = count;
        if ((*this)(nvml.ecc_, 1, counter, &count)) counts.uncorrected = count;
        return counts;
    }
    /// From the margin where there is one (Ada and later, where the absolute thresholds are on their way out), else from both temperatures.
    void distances(GpuReading& reading) {
        nvml::Margin margin{nvml::margin_version, 0};
        if ((*this)(nvml.margin_, &margin)) {
            std::array<nvml::Field, 2> limits{};
            limits[0].id = nvml::field_shutdown_margin;
            limits[1].id = nvml::field_slowdown_margin;
            if ((*this)(nvml.fields_, 2, limits.data())) {
                if (limits[0].returned == nvml::success)
                    reading.below_shutdown = margin.degrees - limits[0].value.as_int;
                if (limits[1].returned == nvml::success)
                    reading.below_slowdown = margin.degrees - limits[1].value.as_int;
            }
        }
        unsigned threshold = 0;
        if (!reading.temperature) return;
        if (!reading.below_shutdown && (*this)(nvml.threshold_, nvml::threshold_shutdown, &threshold) && threshold > 0)
            reading.below_shutdown = static_cast<int>(threshold) - *reading.temperature;
        if (!reading.below_slowdown && (*this)(nvml.threshold_, nvml::threshold_slowdown, &threshold) && threshold > 0)
            reading.below_slowdown = static_cast<int>(threshold) - *reading.temperature;
    }
    /// Pages of both causes. A count alone is asked for by a buffer of size 0, which is "too small" where there are some.
    [[nodiscard]] std::optional<unsigned> retired_pages() {
        unsigned pages = 0;
        for (const int cause : {0, 1}) {
            if (nvml.retired_ == nullptr) return std::nullopt;
            unsigned count = 0;
            const int returned = nvml.retired_(device, cause, &count, nullptr);
            if (returned != nvml::success && returned != nvml::insufficient_size) return std::nullopt;
            pages += count;
        }
        return pages;
    }
};

}  // namespace detail

STRATA_INLINE GpuReading GpuMonitor::read() const {
    GpuReading reading;
    reading.index = index_;
    reading.name = name_;
    reading.uuid = uuid_;
    const Nvml& nvml = *nvml_;
    detail::NvmlReader ask{nvml, device_};
    unsigned number = 0;
    if (ask(nvml.temperature_, 0, &number)) reading.temperature = static_cast<int>(number);
    ask.distances(reading);
    reading.ecc_volatile = ask.ecc(0);
    reading.ecc_aggregate = ask.ecc(1);
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    if (ask(nvml.remapped_, &corrected, &uncorrected, &pending, &failed)) {
        reading.remapped_rows = uncorrected;
        reading.remap_pending = pending != 0;
        reading.remap_failed = failed != 0;
    } else {
        reading.retired_pages = ask.retired_pages();
    }
    detail::nvml::Count bits = 0;
    if (ask(nvml.throttle_, &bits)) reading.throttle = bits;
    if (const auto milliwatts = ask.number(nvml.power_)) reading.power_watt = *milliwatts / 1000.0;
    if (const auto milliwatts = ask.number(nvml.power_limit_)) reading.power_limit_watt = *milliwatts / 1000.0;
    reading.fan_percent = ask.number(nvml.fan_);
    detail::nvml::Memory memory{};
    if (ask(nvml.memory_, &memory)) {
        reading.memory_total = memory.total;
        reading.memory_used = memory.used;
    }
    detail::nvml::Utilization busy{};
    if (ask(nvml.utilization_, &busy)) reading.busy_percent = busy.gpu;
    reading.lost = ask.lost;
    reading.silent = ask.erred && !ask.answered;
    return reading;
}

STRATA_INLINE OpenedGpu open_gpu(unsigned device, const Environment& environment, const std::string& library) {
    void* opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) return {std::nullopt, "no GPU is watched: " + library + " is not on this host"};
    const auto nvml = std::make_shared<Nvml>(opened);
    if (const std::string why = nvml->start(); !why.empty())
        return {std::nullopt, "no GPU is watched: " + library + " does not start: " + why};
    unsigned count = 0;
    if (const int returned = nvml->count_(&count); returned != detail::nvml::success)
        return {std::nullopt, "no GPU is watched: " + library + " does not count them: " + nvml->in_words(returned)};
    std::vector<ListedGpu> gpus(count);
    std::vector<void*> handles(count, nullptr);
    for (unsigned i = 0; i < count; ++i) {
        if (nvml->by_index_(i, &handles[i]) != detail::nvml::success)
            continue;  // lost, or not this user's: it keeps its number
        std::array<char, 128> text{};
        const auto size = static_cast<unsigned>(text.size() - 1);
        if (nvml->name_ != nullptr && nvml->name_(handles[i], text.data(), size) == detail::nvml::success)
            gpus[i].name = text.data();
        text.fill('\0');
        if (nvml->uuid_ != nullptr && nvml->uuid_(handles[i], text.data(), size) == detail::nvml::success)
            gpus[i].uuid = text.data();
    }
    const VisibleGpu found =
        find_visible_gpu(gpus, environment("CUDA_VISIBLE_DEVICES"), environment("CUDA_DEVICE_ORDER"), device);
    if (!found.index) return {std::nullopt, "no GPU is watched: " + found.note};
    if (handles[*found.index] == nullptr)
        return {std::nullopt,
                "no GPU is watched: the driver does not give access to GPU " + std::to_string(*found.index)};
    GpuMonitor monitor;
    monitor.nvml_ = nvml;
    monitor.device_ = handles[*found.index];
    monitor.index_ = *found.index;
    monitor.name_ = gpus[*found.index].name;
    monitor.uuid_ = gpus[*found.index].uuid;
    return {std::move(monitor), found.note};
}

}  // namespace strata::health
