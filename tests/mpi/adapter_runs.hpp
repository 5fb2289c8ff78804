#pragma once
// tests/mpi/adapter_runs.hpp - AdapterRuns: whole runs that train adapters over a small Flux.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <strata/adapters/lora.hpp>
#include <strata/models/flux.hpp>

#include "trainer_runs.hpp"

namespace strata_test {

/// Two blocks of each kind, two heads of 16.
inline strata::models::FluxOptions small_flux_options() {
    return {.token_values = 16,
            .output_values = 16,
            .text_width = 32,
            .pooled_width = 24,
            .heads = 2,
            .rotary_axes = {4, 6, 6},
            .double_blocks = 2,
            .single_blocks = 2};
}

/// Depends on the generator, which the trainer seeds by micro-batch and rank.
inline strata::models::FluxBatch some_latents(std::int64_t) {
    strata::models::FluxBatch batch;
    batch.latents_BCHW = torch::randn({2, 4, 6, 4});
    batch.text_BTE = torch::randn({2, 5, 32});
    batch.pooled_BE = torch::randn({2, 24});
    return batch;
}

struct AdapterRuns : TrainerRuns {
    using Flux = strata::models::Flux;
    using MakeFlux = std::function<strata::models::FluxBatch(std::int64_t)>;

    /// Rank 4 beside attention and the single blocks' wide layers, with dropout.
    template <class Trained>
    typename Trained::Options adapter_options(std::int64_t steps) const {
        typename Trained::Options given{.max_steps = steps, .schedule = {.lr = 1e-2}};
        given.engine.max_grad_norm = 1.0;
        given.engine.bucket_numel = 3000;
        given.engine.tiers.nvme_path = root;
        given.adapter.targets = "to_q,to_k,to_v,to_out.0,proj_mlp";
        if constexpr (requires { given.adapter.kind.rank; }) given.adapter.kind.rank = 4;
        return given;
    }

    /// Trains in the folder `name`, and calls `with` at the end.
    ///
    ///   base  seed of the frozen weights
    template <class Trained>
    void train(const std::string& name, const typename Trained::Options& given,
               const std::function<void(Trained&)>& with = {}, const MakeFlux& make = some_latents,
               std::uint64_t base = 1) {
        in_session(name, [&](strata::Session& session) {
            torch::manual_seed(base);
            Trained trainer{session, std::make_shared<Flux>(small_flux_options()), given};
            trainer.fit(strata::FunctionSource{make, 10, 2});
            if (with) with(trainer);
        });
    }

    template <class Trained>
    static std::vector<float> weights_of(Trained& trainer) {
        std::vector<float> all;
        trainer.with_whole_model([&] {
            for (const auto& item : trainer.model().named_parameters()) {
                const auto values = item.value().detach().to(torch::kFloat).flatten().contiguous();
                all.insert(all.end(), values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
            }
        });
        return all;
    }
};

}  // namespace strata_test
