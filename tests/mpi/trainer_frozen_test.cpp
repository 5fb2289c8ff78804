// A model that only computes beside one that is trained: a teacher, and a network that a loss looks through.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer_runs.hpp"
#include "two_nets.hpp"

namespace {

using namespace strata;
using strata_test::Net;
using strata_test::Noise;
namespace fs = std::filesystem;

struct Student : Net {
    using Batch = Noise;
    std::function<torch::Tensor(const torch::Tensor&)> teacher;
    bool through = false;  // the loss is what the teacher makes of the answer
    Student() : Net{2} {}
    torch::Tensor loss(const Batch& batch) {
        const torch::Tensor answer = forward(batch.z);
        return through ? (teacher(answer) - teacher(batch.z)).square().mean()
                       : (answer - teacher(batch.z)).square().mean();
    }
};

struct TrainerFrozen : strata_test::TrainerRuns {
    /// Trains a student of a teacher that `make` gives; returns what it lost.
    template <int stage>
    std::vector<double> distil(
        const std::string& name, std::int64_t steps, bool through,
        const std::function<void(Session&, std::shared_ptr<Net>,
                                 const std::function<void(decltype(Student::teacher))>&)>& with) {
        in_session(name, [&](Session& session) {
            const auto teacher = std::make_shared<Net>(2);
            with(session, teacher, [&](decltype(Student::teacher) call) {
                torch::manual_seed(3);
                Trainer<Student, ZeroStage<stage>> trainer{session, Student{}, options(steps)};
                trainer.model().teacher = std::move(call);
                trainer.model().through = through;
                trainer.fit(FunctionSource{strata_test::some_noise, 10, 4});
            });
        });
        return losses(name);
    }
    static void plain_teacher(Session&, const std::shared_ptr<Net>& net,
                              const std::function<void(decltype(Student::teacher))>& train) {
        for (at::Tensor& parameter : net->parameters()) parameter.requires_grad_(false);
        train([net](const torch::Tensor& x) { return net->forward(x); });
    }
    static void sharded_teacher(Session& session, const std::shared_ptr<Net>& net,
                                const std::function<void(decltype(Student::teacher))>& train) {
        Frozen<Net, ZeroStage<3>> teacher{session, net};
        const auto& memory = teacher.memory();
        EXPECT_EQ(memory.of(zero::MemoryKind::gradients, zero::Place::device).peak +
                      memory.of(zero::MemoryKind::state, zero::Place::device).peak,
                  0);
        train([&](const torch::Tensor& x) { return x.requires_grad() ? teacher.model().forward(x) : teacher(x); });
        if (session.world() > 1) {
            EXPECT_EQ(net->block->linear->weight.storage().nbytes(), 0U) << "no rank keeps a whole unit";
        }
        teacher.with_whole_model([&] { EXPECT_EQ(net->block->linear->weight.sum().dim(), 0); });
    }
};

TEST_F(TrainerFrozen, AShardedTeacherGivesTheBitsOfAWholeOne) {
    const auto expected = distil<2>("plain", 8, false, plain_teacher);
    EXPECT_EQ(expected.size(), 8U);
    EXPECT_LT(expected[7], expected[0]);
    EXPECT_EQ(distil<2>("s2", 8, false, sharded_teacher), expected);
    EXPECT_EQ(distil<3>("s3", 8, false, sharded_teacher), expected);
}

TEST_F(TrainerFrozen, ALossMayLookThroughIt) {
    const auto expected = distil<2>("plain", 6, true, plain_teacher);
    EXPECT_EQ(distil<2>("s2", 6, true, sharded_teacher), expected);
    EXPECT_EQ(distil<3>("s3", 6, true, sharded_teacher), expected);
}

TEST_F(TrainerFrozen, AStudentResumesBesideIt) {
    const auto whole = distil<3>("whole", 6, false, sharded_teacher);
    distil<3>("run", 3, false, sharded_teacher);
    EXPECT_EQ(distil<3>("run", 6, false, sharded_teacher), whole);
}

TEST_F(TrainerFrozen, ItsPartsMayBeOnDisk) {
    const auto expected = distil<2>("plain", 4, false, plain_teacher);
    on_disk([&] { fs::create_directories(root); });
    const auto on_nvme = [&](Session& session, const std::shared_ptr<Net>& net,
                             const std::function<void(decltype(Student::teacher))>& train) {
        Frozen<Net, ZeroStage<3>, OffloadTarget<Nvme, Parameters>> teacher{
            session, net, {.tiers = {.nvme_path = root}}};
        train([&](const torch::Tensor& x) { return teacher(x); });
    };
    EXPECT_EQ(distil<2>("disk", 4, false, on_nvme), expected);
}

TEST_F(TrainerFrozen, StateThatItDoesNotHaveNeedsNoDisk) {
    const auto expected = distil<2>("plain", 4, false, plain_teacher);
    const auto composed_as_its_student = [](Session& session, const std::shared_ptr<Net>& net,
                                            const std::function<void(decltype(Student::teacher))>& train) {
        Frozen<Net, ZeroStage<3>, OffloadTarget<Nvme>, Ema<>> teacher{session, net};
        EXPECT_EQ(teacher.memory().total(zero::Place::disk).peak, 0);
        train([&](const torch::Tensor& x) { return teacher(x); });
    };
    EXPECT_EQ(distil<2>("as its student", 4, false, composed_as_its_student), expected);
}

/// Units that a student and its teacher go through side by side, so that each gathers ahead while the other computes.
struct Deep : torch::nn::Module {
    using Units = UnitList<Net::Block>;
    std::vector<std::shared_ptr<Unit<Net::Block>>> blocks;
    Deep() {
        for (int i = 0; i < 5; ++i)
            blocks.push_back(register_module("block" + std::to_string(i), std::make_shared<Unit<Net::Block>>()));
    }
};
struct DeepStudent : Deep {
    using Batch = Noise;
    Deep* teacher = nullptr;
    torch::Tensor loss(const Batch& batch) {
        torch::Tensor mine = torch::cat({batch.z, batch.z, batch.z, batch.z, torch::ones({4, 1})}, 1), theirs = mine;
        torch::Tensor sum = torch::zeros({});
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            mine = blocks[i]->forward(mine);
            theirs = teacher->blocks[i]->forward(theirs);
            sum = sum + (mine - theirs).square().mean();
        }
        return sum;
    }
};

TEST_F(TrainerFrozen, LayersOfBothMayTakeTurns) {
    const auto train = [&](const std::string& name, bool sharded) {
        in_session(name, [&](Session& session) {
            const auto teacher = std::make_shared<Deep>();
            for (at::Tensor& parameter : teacher->parameters()) parameter.requires_grad_(false);
            std::optional<Frozen<Deep, ZeroStage<3>>> holds;
            if (sharded) holds.emplace(session, teacher);
            torch::manual_seed(5);
            Trainer<DeepStudent, ZeroStage<3>> trainer{session, DeepStudent{}, options(20)};
            trainer.model().teacher = teacher.get();
            trainer.fit(FunctionSource{strata_test::some_noise, 10, 4});
        });
        return losses(name);
    };
    const auto expected = train("plain", false);
    EXPECT_LT(expected[19], expected[0]);
    EXPECT_EQ(train("sharded", true), expected);
}

TEST_F(TrainerFrozen, ItsNumbersAreLookedAt) {
    const Error error = error_of([&] {
        in_session("run", [&](Session& session) {
            const Frozen<Net, ZeroStage<3>> teacher{session, Net{2}, {.prefetch_bucket_bytes = -7}};
        });
    });
    EXPECT_EQ(error.code(), Errc::bad_value);
    EXPECT_NE(error.problem().find("prefetch_bucket_bytes is -7"), std::string::npos) << error.what();
}

}  // namespace
