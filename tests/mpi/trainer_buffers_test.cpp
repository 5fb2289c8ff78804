// A model's buffers on several ranks: all begin with rank 0's, each in its own type, and mistakes name the buffer.

#include <cstdint>
#include <memory>
#include <string>

#include <strata/zero/buffers.hpp>

#include "trainer_runs.hpp"
#include "two_nets.hpp"

namespace {

using namespace strata;

/// Random buffers of several kinds, which the loss depends on.
struct Tables : torch::nn::Module {
    using Batch = strata_test::Rows;
    torch::nn::Linear in{3, 4}, out{4, 1};
    torch::Tensor table = torch::randn({4, 2}).t();
    torch::Tensor order = torch::randint(0, 1000, {5}, torch::kLong);
    torch::Tensor none = torch::randn({0, 3});
    bool converts = true;
    Tables() {
        register_module("in", in);
        register_module("out", out);
        table = register_buffer("table", table);
        order = register_buffer("order", order);
        none = register_buffer("none", none);
    }
    torch::Tensor loss(const Batch& batch) {
        torch::Tensor h = in(batch.x.to(in->weight.dtype())) * table[0];
        if (converts) h = h.to(in->weight.dtype());
        return torch::mse_loss(out(h).to(torch::kFloat), batch.y);
    }
};

struct TrainerBuffers : strata_test::TrainerRuns {
    /// A model whose random numbers are this rank's own.
    [[nodiscard]] Tables own_tables() const {
        torch::manual_seed(static_cast<std::uint64_t>(10 + comm.rank()));
        return {};
    }
    static torch::Tensor of_rank_zero(torch::Tensor Tables::*buffer) {
        torch::manual_seed(10);
        return Tables{}.*buffer;
    }
    template <class Problem>
    void expect_refused(Errc code, const std::string& problem, Problem&& make) {
        const Error error = error_of([&] { in_session("run", make); });
        EXPECT_EQ(error.code(), code) << error.what();
        EXPECT_NE(error.problem().find(problem), std::string::npos) << error.what();
    }
};

TEST_F(TrainerBuffers, AllRanksBeginWithThoseOfRankZero) {
    in_session("run", [&](Session& session) {
        Trainer<Tables, ZeroStage<1>, Precision<Bf16>> trainer{session, own_tables(), options(3)};
        const Tables& model = trainer.model();
        EXPECT_TRUE(torch::equal(model.table, of_rank_zero(&Tables::table))) << "its columns are far apart";
        EXPECT_TRUE(torch::equal(model.order, of_rank_zero(&Tables::order)));
        EXPECT_EQ(model.table.scalar_type(), torch::kFloat) << "in a model whose parameters are in bf16";
        EXPECT_EQ(model.in->weight.scalar_type(), torch::kBFloat16);
        EXPECT_EQ(trainer.fit(FunctionSource{plain, 10, 8}).step, 3);
    });
}

TEST_F(TrainerBuffers, AModelThatOnlyComputesHasThemToo) {
    in_session("run", [&](Session& session) {
        Frozen<Tables> frozen{session, own_tables()};
        EXPECT_TRUE(torch::equal(frozen.model().table, of_rank_zero(&Tables::table)));
    });
}

TEST_F(TrainerBuffers, AnEngineAloneIsGivenThemByACall) {
    Tables model = own_tables();
    zero::take_buffers(comm, zero::buffers_of(model));
    EXPECT_TRUE(torch::equal(model.table, of_rank_zero(&Tables::table)));
}

TEST_F(TrainerBuffers, TypesThatDoNotGoTogetherNameTheBuffer) {
    expect_refused(Errc::bad_parameter,
                   "parameters are kept in bf16, and buffers and exceptions keep their own types: table in fp32",
                   [&](Session& session) {
                       Trainer<Tables, ZeroStage<1>, Precision<Bf16>> trainer{session, own_tables(), options(3)};
                       trainer.model().converts = false;
                       trainer.fit(FunctionSource{plain, 10, 8});
                   });
}

TEST_F(TrainerBuffers, OneThatHasAnotherShapeOnSomeRankIsNamed) {
    if (comm.world() == 1) GTEST_SKIP() << "one rank cannot differ from itself";
    expect_refused(Errc::rank_mismatch, "\"buffer extra [2] Float\" where rank 0 has \"buffer extra [1] Float\"",
                   [&](Session& session) {
                       const auto model = std::make_shared<Tables>();
                       model->register_buffer("extra", torch::ones({session.rank() == 0 ? 1 : 2}));
                       Trainer<Tables, ZeroStage<1>>{session, model, options(3)};
                   });
}

}  // namespace
