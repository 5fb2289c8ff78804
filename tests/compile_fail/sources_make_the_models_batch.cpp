// fit() with a source of other batches than the model's gets ST0015.

#include <cstdint>

#include <strata/train/trainer.hpp>

using namespace strata;

// What Trainable asks for, without the 11 seconds of torch/torch.h.
struct Model {
    using Batch = at::Tensor;
    at::Tensor loss(const Batch& batch);
    int named_parameters();
    void train();
};

using Mine = Trainer<Model, ZeroStage<1>>;

struct Other {};
Other other_batch(std::int64_t);
at::Tensor some_batch(std::int64_t);

bool use(Mine& trainer) {
#ifdef STRATA_BAD
    return trainer.fit(FunctionSource{other_batch, 1, 1}).interrupted;
#else
    return sizeof(trainer) > 0 && BatchSource<FunctionSource<decltype(&some_batch)>, Model::Batch>;
#endif
}
