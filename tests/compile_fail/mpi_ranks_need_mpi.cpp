// tests/compile_fail/mpi_ranks_need_mpi.cpp - in a build without MPI a trainer over MpiComm gets ST0131, and one over SelfComm compiles.

#undef STRATA_WITH_MPI
#include <strata/train/trainer.hpp>

using namespace strata;

// What Trainable asks for, without the 11 seconds of torch/torch.h.
struct Model {
    using Batch = at::Tensor;
    at::Tensor loss(const Batch& batch);
    int named_parameters();
    void train();
};

#ifdef STRATA_BAD
using Mine = Trainer<Model, ZeroStage<2>, Ranks<comm::MpiComm>>;
#else
using Mine = Trainer<Model, ZeroStage<2>>;
static_assert(std::same_as<train::compute_of_t<Mine::setup>::Comm, comm::SelfComm>);
#endif

int main() { return sizeof(Mine) == 0; }
