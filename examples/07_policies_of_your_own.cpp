// 07_policies_of_your_own - four policies that strata does not bring, in one trainer: where state is kept, what is sharded, how the
// weights are averaged, and the update rule.
//
// None of them is known to strata: a policy brings the class that does its work. The same training with strata's own policies ends
// with the same bits, and the average is the one that a loop by hand forms. Alone or on several ranks:
//   ./07_policies_of_your_own --output /tmp/own --fresh --optimizer_friction 0.3
//   strata launch -n 3 -- ./07_policies_of_your_own --output /tmp/own --fresh

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include <strata/optim/sgd.hpp>
#include <strata/strata.hpp>
#include <strata/testing/average_conformance.hpp>
#include <strata/zero/average.hpp>
#include <strata/zero/tier.hpp>

using namespace strata;

//! [tier]
/// A tier: state in vectors of this program's own heap, parameter shards as Cpu has them.
struct Heap : Cpu {
    template <class Kept, std::size_t states, bool has_master>
    class state;
};
template <class Kept, std::size_t states, bool has_master>
class Heap::state {
public:
    static constexpr Place memory = Place::host;
    static constexpr bool fails_alone = false;
    static constexpr bool wants_folder = false;
    static PlaceBytes bytes(std::span<const std::int64_t> numels) {
        return PlaceBytes::at(Place::host, zero::sum_of(numels) * static_cast<std::int64_t>(arrays * sizeof(Kept)));
    }
    void make(const zero::TierContext& context, const std::vector<std::int64_t>& numels) {
        for (const std::int64_t numel : numels) buckets_.emplace_back(arrays * static_cast<std::size_t>(numel));
        context.meter().add(zero::MemoryKind::state, Place::host, bytes(numels)[Place::host]);
    }
    template <class WeightOf>
    void fill(const std::array<float, states>& initial, WeightOf&& weight_of) {
        for (std::size_t i = 0; i < buckets_.size(); ++i) zero::start_run(run_of(i), initial, weight_of(i));
    }
    template <class Call>
    void run(offload::Access, Call&& call) {
        for (std::size_t i = 0; i < buckets_.size(); ++i) call(run_of(i));
    }
    void prefetch() {}

private:
    static constexpr std::size_t arrays = states + (has_master ? 1 : 0);
    [[nodiscard]] zero::StateRun<Kept, states> run_of(std::size_t bucket) {
        const std::span<Kept> all{buckets_[bucket]};
        const std::size_t numel = all.size() / arrays;
        zero::StateRun<Kept, states> run;
        run.bucket = bucket;
        run.numel = static_cast<std::int64_t>(numel);
        for (std::size_t k = 0; k < states; ++k) run.state[k] = all.subspan(k * numel, numel);
        if (has_master) run.weight = all.last(numel);
        return run;
    }
    std::vector<std::vector<Kept>> buckets_;
};
//! [tier]

//! [sharding]
/// A sharding: state and parameters over all ranks, but whole gradients, which no ZeroStage has.
struct WholeGradients {
    using slot = slot::Sharding;
    static constexpr ShardedOver shards_state = ShardedOver::world;
    static constexpr ShardedOver shards_gradients = ShardedOver::nothing;
    static constexpr ShardedOver shards_parameters = ShardedOver::world;
};
//! [sharding]

//! [average]
/// An average: the plain mean of the weights from one step on (stochastic weight averaging, Izmailov et al. 2018, arXiv:1803.05407).
struct Swa {
    using slot = slot::Averaging;
    static constexpr bool enabled = true;
    static constexpr Place place = Place::host;
    struct Options {
        std::int64_t start = 1;
        std::int64_t interval = 1;
        static void describe(auto& option) {  // checked ranges, and the flags --ema_start and --ema_interval
            option("start", &Options::start, ranges::positive, "The first step whose weights are in the average");
            option("interval", &Options::interval, ranges::positive, "Steps from one to the next");
        }
    };
    template <class Kept>
    class average : public zero::AverageInMemory<place> {
    public:
        explicit average(const Options& options) : options_{options} {}
        [[nodiscard]] bool due(std::int64_t step) const {
            return step >= options_.start && (step - options_.start) % options_.interval == 0;
        }
        [[nodiscard]] double decay(std::int64_t step) const {
            const auto before = static_cast<double>((step - options_.start) / options_.interval);
            return before / (before + 1);
        }

    private:
        Options options_;
    };
};
//! [average]
//! [kit]
/// What is wrong with it, a sentence each: nothing.
std::vector<std::string> failures_of_swa() { return testing::average_failures<Swa::average<float>>(Swa::Options{}); }
//! [kit]

//! [rule]
/// An update rule with a number of its own: descent with momentum, told as friction.
struct Sledge {
    struct Options {
        double friction = 0.1;
        static void describe(auto& option) {  // a checked range, and the key optimizer_friction
            option("friction", &Options::friction, {0, 1}, "Share of its speed that the sledge loses in a step");
        }
    };
    static constexpr std::array<std::string_view, 1> state_names{"speed"};
    struct Scalars {
        float kept, lr;
    };
    static Scalars scalars(const Options& options, double lr, std::int64_t) noexcept {
        return {static_cast<float>(1 - options.friction), static_cast<float>(lr)};
    }
    [[gnu::always_inline]] STRATA_HOST_DEVICE static void apply(float& weight, float gradient, float* state,
                                                                const Scalars& s) noexcept {
        state[0] = s.kept * state[0] + gradient;
        weight -= s.lr * state[0];
    }
};
//! [rule]

struct Block : torch::nn::Module {
    torch::nn::Linear linear{32, 32};
    Block() { register_module("linear", linear); }
    torch::Tensor forward(const torch::Tensor& x) { return x + torch::tanh(linear(x)); }
};
struct Curve : torch::nn::Module {
    using Batch = torch::Tensor;  // (B, 1) where the curve is asked for
    using Units = UnitList<Block>;
    torch::nn::Linear in{1, 32}, out{32, 1};
    std::shared_ptr<Unit<Block>> block = std::make_shared<Unit<Block>>();
    Curve() {
        register_module("in", in);
        register_module("block", block);
        register_module("out", out);
    }
    torch::Tensor loss(const Batch& x_B1) {
        return torch::mse_loss(out(block->forward(torch::tanh(in(x_B1)))), torch::sin(3 * x_B1));
    }
};
torch::Tensor points(std::int64_t step) {
    return torch::linspace(-1, 1, 64).unsqueeze(1) + 0.01 * static_cast<double>(step % 7);
}

//! [compose]
using Mine = Trainer<Curve, WholeGradients, OffloadTarget<Heap>, Swa, Optimizer<Sledge>>;
using Builtin = Trainer<Curve, ZeroStage<3>, Ema<>, Optimizer<Sgd>>;
//! [compose]

/// All weights of a trainer's model, one after the other. Collective.
template <class AnyTrainer>
torch::Tensor weights_of(AnyTrainer& trainer) {
    const torch::NoGradGuard no_gradients;
    std::vector<torch::Tensor> all;
    trainer.with_whole_model([&] {
        for (const torch::Tensor& weight : trainer.model().parameters())
            all.push_back(weight.detach().flatten().cpu().clone());
    });
    return torch::cat(all);
}

int main(int argc, char** argv) {
    return strata::run<Mine::Options>(argc, argv, [](Session& session, const Mine::Options& given) {
        Mine::Options options = given;
        options.name = "mine";
        options.max_steps = 40;
        options.schedule.lr = 1e-2;
        options.engine.ema.start = 11;
        train::seed_generators(42);
        Mine mine{session, Curve{}, options};
        torch::Tensor mean;  // formed by hand
        mine.every(1, [&](const train::StepMetrics& metrics) {
            if (metrics.step < 11) return;
            const torch::Tensor now = weights_of(mine).to(torch::kDouble);
            mean = mean.defined() ? mean + (now - mean) / static_cast<double>(metrics.step - 10) : now;
        });
        const double loss = mine.fit(FunctionSource{points, 100, 64}).loss;

        train::seed_generators(42);
        Builtin builtin{session,
                        Curve{},
                        {.max_steps = 40,
                         .schedule = {.lr = 1e-2},
                         .engine = {.update = {.momentum = 1 - options.engine.update.friction}},
                         .name = "builtin"}};
        const double expected = builtin.fit(FunctionSource{points, 100, 64}).loss;
        const bool same_weights = torch::equal(weights_of(mine), weights_of(builtin));
        double off = 0;
        mine.with_average([&] { off = (weights_of(mine).to(torch::kDouble) - mean).abs().max().item<double>(); });
        if (session.rank() != 0) return;
        std::printf("loss %.9g and %.9g: they %s; the mean of 30 steps' weights is %s\n", loss, expected,
                    loss == expected && same_weights ? "agree bit by bit" : "differ",
                    off < 1e-6 && failures_of_swa().empty() ? "right" : "wrong");
    });
}
