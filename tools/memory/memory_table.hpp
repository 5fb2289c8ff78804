#pragma once
// tools/memory/memory_table.hpp - what usual compositions take on a rank, side by side, by the engine's own forecast.

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <strata/core/option_description.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lion.hpp>
#include <strata/options/engine_options.hpp>
#include <strata/policy/ema.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/memory_forecast.hpp>

namespace strata::tools {

/// "23.8", and behind it what is in host memory and on a disk: "1.4 + 18.0 host + 0.3 disk". GB.
[[nodiscard]] inline std::string memory_cell(const PlaceBytes& bytes) {
    const auto in_gb = [](std::int64_t count) {
        char text[32];
        std::snprintf(text, sizeof text, count < 100'000'000'000 ? "%.1f" : "%.0f", static_cast<double>(count) / 1e9);
        return std::string{text};
    };
    std::string text = in_gb(bytes[Place::device]);
    if (bytes[Place::host] > 0) text += " + " + in_gb(bytes[Place::host]) + " host";
    if (bytes[Place::disk] > 0) text += " + " + in_gb(bytes[Place::disk]) + " disk";
    return text;
}

/// A table in Markdown: a line for each composition, the bytes of one rank in a step for each number of ranks.
///
///   parameters       of the model; their values are not looked at
///   free_host_bytes  of a machine, which buffers for a disk depend on
///   numbers          of a configuration; the options' own where there is none
[[nodiscard]] inline std::string memory_table(const std::vector<zero::Parameter>& parameters,
                                              std::span<const int> worlds, std::uint64_t free_host_bytes,
                                              const zero::EngineOptions<zero::NoRule>& numbers = {}) {
    std::string text = "| trainer, GB a rank |";
    std::string rule = "|---|";
    for (const int world : worlds) {
        text += " " + std::to_string(world) + (world == 1 ? " rank |" : " ranks |");
        rule += "---|";
    }
    text += "\n" + rule + "\n";
    const auto line = [&]<class... Policies>(const char* name, Setup<Policies...>) {
        text += "| `" + std::string{name} + "` |";
        zero::engine_options_t<Setup<Policies...>> options;
        take_options(numbers, options);
        for (const int world : worlds) {
            const auto forecast = zero::forecast_memory<Setup<Policies...>>(
                parameters, {.world = world, .free_host_bytes = free_host_bytes}, options);
            text += " " + memory_cell(forecast.most_in_all()) + " |";
        }
        text += "\n";
    };
    using Half = Precision<Bf16>;
    line("ZeroStage<0>", Setup<Half, ZeroStage<0>>{});
    line("ZeroStage<1>", Setup<Half, ZeroStage<1>>{});
    line("ZeroStage<2>", Setup<Half, ZeroStage<2>>{});
    line("ZeroStage<2>, OffloadTarget<Cpu>", Setup<Half, ZeroStage<2>, OffloadTarget<Cpu>>{});
    line("ZeroStage<3>", Setup<Half, ZeroStage<3>>{});
    line("ZeroStage<3>, Ema<Cpu>", Setup<Half, ZeroStage<3>, Ema<Cpu>>{});
    line("ZeroStage<3>, OffloadTarget<Cpu>", Setup<Half, ZeroStage<3>, OffloadTarget<Cpu>>{});
    line("ZeroStage<3>, OffloadTarget<Nvme>", Setup<Half, ZeroStage<3>, OffloadTarget<Nvme>>{});
    line("ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>",
         Setup<Half, ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>{});
    line("ZeroStage<3>, Precision<PureBf16>, Optimizer<Lion>",
         Setup<ZeroStage<3>, Precision<PureBf16>, Optimizer<Lion>>{});
    return text;
}

}  // namespace strata::tools
