#pragma once
// strata/webhooks/health_event.hpp - gpu_fault_event(): a fault of a GPU or a host as an event.

#include <optional>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>
#include <strata/health/fault.hpp>
#include <strata/health/gpu_reading.hpp>
#include <strata/webhooks/event.hpp>

namespace strata::webhooks {

/// `gpu.fault`, with SimpleTuner's payload. Critical, or a warning where the fault is none that opens a breaker.
///
///   gpu     of the look that found it; none: of a host
///   action  "circuit_opened", "warned"
///   thrown  what a call failed with: "RuntimeError"; empty: none did
[[nodiscard]] Event gpu_fault_event(const health::Fault& fault, const std::optional<health::GpuReading>& gpu,
                                    std::string_view action, std::string_view thrown = {});

}  // namespace strata::webhooks

#ifndef STRATA_COMPILED
#include <strata/webhooks/impl/health_event.ipp>
#endif
