#pragma once
// strata/webhooks/impl/health_event.ipp - the fields of a fault; what is not known is not there.

#include <cmath>

#include <nlohmann/json.hpp>

#include <strata/webhooks/health_event.hpp>
#include <strata/webhooks/impl/event.ipp>

namespace strata::webhooks {

STRATA_INLINE Event gpu_fault_event(const health::Fault& fault, const std::optional<health::GpuReading>& gpu,
                                    std::string_view action, std::string_view thrown) {
    const std::string type{health::name_of(fault.kind)};
    nlohmann::json json{{"type", type}, {"action_taken", action}};
    if (gpu && !health::is_of_host(fault.kind)) {
        nlohmann::json card{{"index", gpu->index}};
        if (!gpu->name.empty()) card["name"] = gpu->name;
        if (!gpu->uuid.empty()) card["uuid"] = gpu->uuid;
        if (gpu->temperature) card["temperature_celsius"] = *gpu->temperature;
        if (gpu->ecc_volatile.corrected) card["ecc_errors_single"] = *gpu->ecc_volatile.corrected;
        if (gpu->ecc_volatile.uncorrected) card["ecc_errors_double"] = *gpu->ecc_volatile.uncorrected;
        if (gpu->throttle) card["throttle_reasons"] = health::throttle_reasons(*gpu->throttle);
        if (const auto used = gpu->memory_used_percent()) card["memory_used_percent"] = std::round(10 * *used) / 10;
        json["gpu"] = std::move(card);
    }
    if (!thrown.empty()) json["exception_type"] = thrown;
    const std::string what = health::is_of_host(fault.kind) ? "Host fault: " : "GPU fault: ";
    return {.kind = EventKind::gpu_fault,
            .severity = fault.critical ? Severity::critical : Severity::warning,
            .title = what + type,
            .message = fault.what + ". Fix: " + fault.fix,
            .details = detail::text_of({{"fault", std::move(json)}})};
}

}  // namespace strata::webhooks
