// Communicators: the kit finds nothing wrong with those there are, and what is wrong with others; trainers train over
// one's own.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/any_comm.hpp>
#include <strata/comm/mpi_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/strata.hpp>
#include <strata/testing/communicator_conformance.hpp>
#include <strata/testing/training_conformance.hpp>

#include "../../examples/counting_comm.hpp"
#include "output_folder.hpp"

namespace {

using namespace strata;
using strata::testing::communicator_failures;
using strata::testing::training_failures;
using Failures = std::vector<std::string>;
using OwnCommunicators = strata_test::OutputFolder;  // whose `comm` is the build's

//! [communicator]
TEST_F(OwnCommunicators, ACommunicatorConforms) {
    my::CountingComm counting;
    EXPECT_EQ(communicator_failures(counting), Failures{});
    EXPECT_EQ(training_failures<ZeroStage<3>>(counting), Failures{});
}
//! [communicator]

TEST_F(OwnCommunicators, TheCommunicatorsOfStrataConform) {
    EXPECT_EQ(communicator_failures(comm), Failures{});
    comm::AnyComm any{comm};
    EXPECT_EQ(communicator_failures(any), Failures{});
    comm::MpiComm by_messages{{.shared_memory = false}};
    EXPECT_EQ(communicator_failures(by_messages), Failures{});
    comm::SelfComm alone;
    EXPECT_EQ(communicator_failures(alone), Failures{});
}

/// The first failure that the kit finds in a communicator that does something wrong.
template <class Wrong>
std::string first_failure() {
    Wrong wrong;
    const Failures failures = communicator_failures(wrong);
    return failures.empty() ? "none" : failures.front();
}
struct LeavesBroadcastsAlone : my::CountingComm {
    void broadcast(std::span<std::byte>, int) {}
};
struct DoesNotWait : my::CountingComm {
    void barrier() {}
};
struct GathersBackwards : my::CountingComm {
    std::vector<std::string> all_gather_varied(std::string_view mine) {
        auto all = my::CountingComm::all_gather_varied(mine);
        return {all.rbegin(), all.rend()};
    }
};
/// Adds up in bf16 what was to be rounded once.
struct RoundsTooOften : my::CountingComm {
    using my::CountingComm::reduce_scatter;
    void reduce_scatter(std::span<const float> all, std::span<float> mine) {
        std::vector<bf16> halves(all.size()), sum(mine.size());
        for (std::size_t i = 0; i < all.size(); ++i) halves[i] = to_bf16(all[i]);
        my::CountingComm::reduce_scatter(std::span<const bf16>{halves}, std::span{sum});
        for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = to_float(sum[i]);
    }
};
struct SaysNoRank : my::CountingComm {
    int rank() const { return -1; }
};
TEST_F(OwnCommunicators, TheKitNamesWhatACommunicatorDoesWrong) {
    EXPECT_TRUE(first_failure<RoundsTooOften>().starts_with("reduce_scatter of fp32"))
        << first_failure<RoundsTooOften>();
    EXPECT_TRUE(first_failure<SaysNoRank>().starts_with("ranks are numbered from 0"));
    if (comm.world() == 1) return;
    const std::string broadcast = first_failure<LeavesBroadcastsAlone>();
    EXPECT_TRUE(broadcast.starts_with("broadcast of 1 ")) << broadcast;
    EXPECT_TRUE(first_failure<GathersBackwards>().starts_with("all_gather_varied"));
    // Whether a rank leaves before the last one has come is seen when it happens: it does, because ranks come 5 ms
    // apart.
    EXPECT_TRUE(first_failure<DoesNotWait>().starts_with("barrier waits"));
}

// ---- whole trainers ------------------------------------------------------------------------------------------------

struct Curve : torch::nn::Module {
    using Batch = torch::Tensor;
    torch::nn::Linear in{4, 8}, out{8, 1};
    Curve() {
        register_module("in", in);
        register_module("out", out);
    }
    torch::Tensor loss(const Batch& x) { return torch::mse_loss(out(torch::tanh(in(x))), x.sum(1, true).sin()); }
};

/// The losses that a trainer logs, over a communicator.
template <class... Policies, class Comm>
std::vector<double> losses_over(Comm& ranks, const std::filesystem::path& folder) {
    std::vector<std::string> words{"test", "--output", folder.string()};
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    ::testing::internal::CaptureStdout();
    {
        Session session{ranks, static_cast<int>(argv.size()), argv.data()};
        EXPECT_EQ(session.world(), ranks.world());
        Trainer<Curve, ZeroStage<2>, Policies...> trainer{session, Curve{}, {.max_steps = 5}};
        trainer.fit(FunctionSource{[](std::int64_t) { return torch::rand({8, 4}); }, 10, 8});
    }
    ::testing::internal::GetCapturedStdout();
    ranks.barrier();
    std::vector<double> losses;
    for (const auto& m : train::read_metrics(folder / "metrics.jsonl")) losses.push_back(m.loss);
    return losses;
}

TEST_F(OwnCommunicators, TrainsOverACommunicatorOfItsOwn) {
    const std::vector<double> expected = losses_over(comm, root / "mpi");
    ASSERT_EQ(expected.size(), 5U);
    my::CountingComm counting;
    EXPECT_EQ((losses_over<Ranks<my::CountingComm>>(counting, root / "counting")), expected);
    EXPECT_GE(counting.reduced_bytes, 5 * (4 * 8 + 8 + 8 + 1) * sizeof(float)) << "the engine exchanges through it";
}

TEST_F(OwnCommunicators, AProgramRunsOnACommunicatorOfItsOwn) {
    std::string words[] = {"program", "--output", (root / "program").string()};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data()};
    const int argc = 3;
    ::testing::internal::CaptureStdout();
    //! [program]
    const int status = strata::run_on<my::CountingComm>(argc, argv, [](Session& session) {
        Trainer<Curve, ZeroStage<2>, Ranks<my::CountingComm>> trainer{session, Curve{}, {.max_steps = 5}};
        trainer.fit(FunctionSource{[](std::int64_t) { return torch::rand({8, 4}); }, 10, 8});
        session.progress().note(std::to_string(session.ranks<my::CountingComm>().reduced_bytes) +
                                " bytes of gradients");
    });
    //! [program]
    const std::string said = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(status, 0);
    if (comm.rank() == 0) {
        EXPECT_NE(said.find(" bytes of gradients"), std::string::npos) << said;
    }
}

TEST_F(OwnCommunicators, ASessionStartsTheBuildsOwn) {
    std::string words[] = {"program", "--output", (root / "session").string()};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data()};
    Session session{3, argv};
    EXPECT_EQ(session.world(), comm.world());
    EXPECT_EQ(session.ranks<comm::DefaultComm>().rank(), comm.rank());
    double sum = 1;
    session.comm().all_reduce_sum(std::span{&sum, 1});
    EXPECT_EQ(sum, comm.world());
}

TEST_F(OwnCommunicators, TrainsAloneInAJobOfSeveralRanks) {
    comm::SelfComm alone;
    const std::string folder = "alone " + std::to_string(comm.rank());
    const auto losses = losses_over<Ranks<comm::SelfComm>>(alone, root / folder);
    ASSERT_EQ(losses.size(), 5U);
    for (const std::string& other : comm.all_gather_varied(std::to_string(losses.back())))
        EXPECT_EQ(other, std::to_string(losses.back()));
    if (comm.world() == 1) {
        EXPECT_EQ(losses, losses_over(comm, root / "of the build"));
    }
}

TEST_F(OwnCommunicators, IsRefusedInASessionOfOtherRanks) {
    std::string word = "test";
    char* argv[] = {word.data()};
    Session session{comm, 1, argv};
    const auto problem = [&] {
        try {
            Trainer<Curve, Ranks<my::CountingComm>> trainer{session, Curve{}, {.max_steps = 5}};
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::bad_argument);
            return error.problem();
        }
        return std::string{};
    }();
    EXPECT_NE(problem.find("another communicator"), std::string::npos) << problem;
    EXPECT_EQ(&session.ranks<comm::MpiComm>(), &comm);
    Session again{session.comm(), 1, argv};
    EXPECT_EQ(&again.ranks<comm::MpiComm>(), &comm)
        << "what a session was made over is known to one that is made of it";
}

}  // namespace
