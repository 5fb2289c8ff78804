// Two engines in one program: a generator and its critic, a student and its teacher. Whose collective it is has a name.

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>

#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Errc;
using strata::Error;
using strata::comm::MpiComm;
using strata::zero::parameters_of;
using torch::Tensor;
using namespace strata_test;

using Two = EngineOf<ZeroStage<2>>;
using Three = EngineOf<ZeroStage<3>>;

/// Two models and their engines, which look alike but for their names.
struct Pair {
    explicit Pair(MpiComm& comm, Three::Options options = {}) {
        options.name = "generator";
        first = std::make_unique<Three>(comm, parameters_of(one), options);
        options.name = "critic";
        second = std::make_unique<Three>(comm, parameters_of(other), options);
    }
    UnitModel one, other;
    std::unique_ptr<Three> first, second;
};

/// What a job of several ranks ends with cannot be used again: each has a communicator of its own.
TEST(EnginePairs, RanksThatCallThemInDifferentOrdersAreToldWhichTheyAre) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "one rank cannot differ from itself";
    Pair pair{comm};
    const bool odd = comm.rank() == comm.world() - 1;
    const Error error = error_of([&] {
        const torch::NoGradGuard no_grad;
        const Tensor x = rows_of(comm, 0);
        odd ? pair.other.loss(x) : pair.one.loss(x);
        odd ? pair.one.loss(x) : pair.other.loss(x);
    });
    EXPECT_EQ(error.code(), Errc::rank_mismatch) << error.what();
    EXPECT_NE(error.problem().find("'units of generator'"), std::string::npos) << error.what();
    EXPECT_NE(error.problem().find("'units of critic'"), std::string::npos) << error.what();
}

TEST(EnginePairs, WithoutANameAnEngineHasANumber) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "one rank cannot differ from itself";
    UnitModel one, other;
    Two first{comm, parameters_of(one)}, second{comm, parameters_of(other)};
    const Error error = error_of([&] {
        const Tensor x = rows_of(comm, 0);
        comm.rank() == 0 ? first.backward(one.loss(x)) : second.backward(other.loss(x));
    });
    EXPECT_EQ(error.code(), Errc::rank_mismatch) << error.what();
    EXPECT_NE(error.problem().find("'gradients of engine "), std::string::npos) << error.what();
}

/// A pass without gradients leaves the next unit on its way.
TEST(EnginePairs, AnEngineIsMadeWhileAnotherGathersAhead) {
    MpiComm comm;
    for (int i = 0; i < 20; ++i) {
        UnitModel one, other;
        Three first{comm, parameters_of(one)};
        {
            const torch::NoGradGuard no_grad;
            for (int pass = 0; pass < 2; ++pass) one.loss(rows_of(comm, pass));
        }
        Three second{comm, parameters_of(other)};
        second.backward(other.loss(rows_of(comm, 0)));
        EXPECT_EQ(second.step(1e-2).step, 1);
    }
}

}  // namespace
