#pragma once
// strata/health/gpu_reading.hpp - GpuReading: what one look at a GPU has found, and the names of what slows its clocks.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::health {

/// Bits of GpuReading::throttle, by the names that events have.
namespace throttle {
inline constexpr std::uint64_t gpu_idle = 0x1;
inline constexpr std::uint64_t applications_clocks_setting = 0x2;
inline constexpr std::uint64_t sw_power_cap = 0x4;
inline constexpr std::uint64_t hw_slowdown = 0x8;  ///< beside it stands the bit of its reason, where the GPU knows one
inline constexpr std::uint64_t sync_boost = 0x10;
inline constexpr std::uint64_t sw_thermal_slowdown = 0x20;
inline constexpr std::uint64_t hw_thermal_slowdown = 0x40;
inline constexpr std::uint64_t hw_power_brake_slowdown = 0x80;
inline constexpr std::uint64_t display_clocks_setting = 0x100;
}  // namespace throttle

inline constexpr std::array<std::pair<std::uint64_t, std::string_view>, 9> throttle_names{{
    {throttle::gpu_idle, "gpu_idle"},
    {throttle::applications_clocks_setting, "applications_clocks_setting"},
    {throttle::sw_power_cap, "sw_power_cap"},
    {throttle::hw_slowdown, "hw_slowdown"},
    {throttle::sync_boost, "sync_boost"},
    {throttle::sw_thermal_slowdown, "sw_thermal_slowdown"},
    {throttle::hw_thermal_slowdown, "hw_thermal_slowdown"},
    {throttle::hw_power_brake_slowdown, "hw_power_brake_slowdown"},
    {throttle::display_clocks_setting, "display_clocks_setting"},
}};

/// The reasons in `bits`, lowest bit first; bits of later drivers are left out.
[[nodiscard]] inline std::vector<std::string_view> throttle_reasons(std::uint64_t bits) {
    std::vector<std::string_view> reasons;
    for (const auto& [bit, name] : throttle_names)
        if ((bits & bit) != 0) reasons.push_back(name);
    return reasons;
}

/// Errors that a GPU's memory has counted.
struct EccCounts {
    std::optional<std::uint64_t> corrected;
    std::optional<std::uint64_t> uncorrected;
};

/// Empty is what the GPU, its driver or the right to ask does not give: a card without ECC has no counts, and not 0 errors.
struct GpuReading {
    unsigned index = 0;  ///< NVML's, in the order of PCI addresses
    std::string name;
    std::string uuid;
    bool lost = false;    ///< the driver says that the GPU does not answer any more, or wants a reset
    bool silent = false;  ///< the driver answers some questions with "unknown error", and none with a value

    std::optional<int> temperature;         ///< degrees Celsius
    std::optional<int> below_slowdown;      ///< degrees until the hardware lowers its clocks
    std::optional<int> below_shutdown;      ///< degrees until it turns itself off
    EccCounts ecc_volatile;                 ///< since the driver was loaded
    EccCounts ecc_aggregate;                ///< of the card's life
    std::optional<unsigned> remapped_rows;  ///< rows of memory that were replaced because of uncorrectable errors
    std::optional<bool> remap_pending;      ///< replaced at the next reset
    std::optional<bool> remap_failed;       ///< no spare row was left: the card belongs replaced
    std::optional<unsigned> retired_pages;  ///< before Ampere: by single-bit and double-bit errors together
    std::optional<std::uint64_t> throttle;
    std::optional<double> power_watt;
    std::optional<double> power_limit_watt;
    std::optional<unsigned> fan_percent;
    std::optional<std::uint64_t> memory_total;  ///< bytes
    std::optional<std::uint64_t> memory_used;   ///< bytes, of all processes
    std::optional<unsigned> busy_percent;       ///< of the time since the last sample of the driver

    [[nodiscard]] std::optional<double> memory_used_percent() const {
        if (!memory_total || !memory_used || *memory_total == 0) return std::nullopt;
        return 100.0 * static_cast<double>(*memory_used) / static_cast<double>(*memory_total);
    }
};

}  // namespace strata::health
