#pragma once
// strata/health/impl/visible_gpu.ipp - CUDA_VISIBLE_DEVICES as CUDA reads it.

#include <algorithm>
#include <charconv>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/health/visible_gpu.hpp>

namespace strata::health {

namespace detail {

/// The GPU that one entry names; MIG-GPU-<uuid>/g/c, the older form, is part of that GPU.
STRATA_INLINE std::optional<unsigned> gpu_of_entry(std::span<const ListedGpu> gpus, std::string_view entry) {
    if (entry.starts_with("MIG-GPU-")) {
        entry.remove_prefix(4);
        entry = entry.substr(0, entry.find('/'));
    }
    std::optional<unsigned> found;
    if (entry.starts_with("GPU-")) {
        for (unsigned i = 0; i < gpus.size(); ++i) {
            if (!std::string_view{gpus[i].uuid}.starts_with(entry)) continue;
            if (found) return std::nullopt;  // the beginning of two names none
            found = i;
        }
        return found;
    }
    unsigned index = 0;
    const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
    if (error != std::errc{} || end != entry.data() + entry.size() || index >= gpus.size()) return std::nullopt;
    return index;
}

}  // namespace detail

STRATA_INLINE VisibleGpu find_visible_gpu(std::span<const ListedGpu> gpus, const std::optional<std::string>& visible,
                                          const std::optional<std::string>& order, unsigned device) {
    const bool by_address = order == "PCI_BUS_ID";
    const bool alike =
        std::all_of(gpus.begin(), gpus.end(), [&](const ListedGpu& g) { return g.name == gpus[0].name; });
    const std::string order_note =
        by_address || alike
            ? std::string{}
            : "this host has GPUs of several kinds, and CUDA numbers the fastest first: set "
              "CUDA_DEVICE_ORDER=PCI_BUS_ID to be sure that the GPU that is watched is the one that computes";
    if (!visible) {
        if (device < gpus.size()) return {device, order_note};
        return {std::nullopt, "the driver lists " + std::to_string(gpus.size()) + " GPUs, and this rank's is number " +
                                  std::to_string(device)};
    }
    unsigned passed = 0;
    for (std::size_t from = 0; from <= visible->size();) {
        const std::size_t comma = std::min(visible->find(',', from), visible->size());
        std::string_view entry = std::string_view{*visible}.substr(from, comma - from);
        const std::size_t begin = std::min(entry.find_first_not_of(" \t"), entry.size());
        const std::size_t last = entry.find_last_not_of(" \t");
        entry = last == std::string_view::npos ? std::string_view{} : entry.substr(begin, last + 1 - begin);
        if (entry.starts_with("MIG-") && !entry.starts_with("MIG-GPU-"))
            return {std::nullopt, "CUDA_VISIBLE_DEVICES names a part of a GPU (" + std::string{entry} +
                                      "), which does not say of which GPU it is"};
        const std::optional<unsigned> index = detail::gpu_of_entry(gpus, entry);
        if (!index) break;  // CUDA does not see what follows
        if (passed++ == device) return {index, entry.find("GPU-") == std::string_view::npos ? order_note : ""};
        from = comma + 1;
    }
    return {std::nullopt, "CUDA_VISIBLE_DEVICES=" + *visible + " has no entry number " + std::to_string(device) +
                              " that names a GPU of this host"};
}

}  // namespace strata::health
