// A composition that cannot work prints its sentence and nothing more, whatever is done with the trainer. The docs test
// compares what is used here with the public members of detail::TrainerBody.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <torch/torch.h>

#include <strata/adapters/lora.hpp>
#include <strata/strata.hpp>

using namespace strata;

struct Model : torch::nn::Module {
    using Batch = torch::Tensor;
    torch::Tensor loss(const Batch& batch) { return batch.mean(); }
};

#ifdef STRATA_BAD
using Mine = Trainer<Model, ZeroStage<0>, OffloadTarget<Cpu>, Optimizer<Sgd>, Ema<>, Adapter<Lora>>;
#else
using Mine = Trainer<Model, ZeroStage<1>, OffloadTarget<Cpu>, Optimizer<Sgd>, Ema<>, Adapter<Lora>>;
#endif

struct Mirror {  // what it may be held as
    Mine::Options options;
    Mine::Rule::Options update;
    Mine::Batch batch;
    static constexpr bool averages = Mine::setup::averaging::enabled;
};

void use(Session& session) {
    Mine trainer{
        session,
        Model{},
        {.max_steps = 3, .engine = {.update = {.momentum = 0.5, .nesterov = true}}, .adapter = {.kind = {.rank = 4}}}};
    Mine shared{session, std::make_shared<Model>(), Mine::Options{}};
    trainer.every(1, [](const train::StepMetrics&) {});
    trainer.report().title = trainer.folder().string() + std::to_string(trainer.model().parameters().size());
    const FitResult result = trainer.fit(FunctionSource{[](std::int64_t) { return torch::ones({1}); }, 1, 1});
    FunctionSource source{[](std::int64_t) { return torch::ones({1}); }, 1, 1};
    trainer.evaluate_every(2, "held_out", source);
    trainer.at_start([](const train::StepMetrics&) {});
    trainer.note_samples({});
    trainer.report().title += std::to_string(trainer.fit(source, 5).step);
    trainer.report().title += std::to_string(fit_in_turns(Turn{trainer, source}, Turn{shared, source, 2})[1].step);
    trainer.run().release_room();
    trainer.set_trainable([](std::string_view name) { return name != "table"; });
    trainer.with_average([&] { trainer.model().eval(); });
    trainer.without_adapter([&] { trainer.model().eval(); });
    if (trainer.base_is_frozen()) trainer.model().eval();
    trainer.report().title += std::to_string(trainer.adapted().numel());
    trainer.with_whole_model([&] { trainer.model().eval(); });
    trainer.report().title += trainer.save_weights("model.safetensors", {.average = true}).front().string();
    const at::Device where = trainer.device();
    const std::int64_t bytes = trainer.memory().total(zero::Place::host).now;
    trainer.report().title += result.interrupted || where.is_cuda() || bytes > 0 ? "!" : "";
}
