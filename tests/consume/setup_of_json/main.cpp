// Somebody else's program: what ds_config.json says is a type and numbers, known when it is compiled.

#include <concepts>
#include <cstdio>

#include <ds_config.hpp>
#include <strata/options/train_options.hpp>

static_assert(std::same_as<ds_config::Setup::precision, strata::Precision<strata::Bf16>>);
static_assert(ds_config::given::schedule_lr == 3e-5);
static_assert(ds_config::samples_per_micro_batch == 4 && ds_config::samples_per_step == 32);

// The numbers that an AdamW has; this program does not train, so it needs no libtorch.
struct Rule {
    struct Options {
        double beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
        static void describe(auto& option) {
            option("beta1", &Options::beta1, strata::ranges::beta1, "");
            option("beta2", &Options::beta2, strata::ranges::beta2, "");
            option("epsilon", &Options::epsilon, strata::ranges::epsilon, "");
            option("weight_decay", &Options::weight_decay, strata::ranges::weight_decay, "");
        }
    };
};

int main() {
    strata::TrainOptions<Rule> options;
    ds_config::set(options);
    std::printf("stage %d, clips at %g, betas %g and %g, decays by %g, rate %g at step 6 and %g at step 61\n",
                ds_config::Setup::sharding::stage, options.engine.max_grad_norm, options.engine.update.beta1,
                options.engine.update.beta2, options.engine.update.weight_decay, options.schedule.at(6),
                options.schedule.at(61));
}
