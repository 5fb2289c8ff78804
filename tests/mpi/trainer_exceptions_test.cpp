// A trainer with exceptions of its precision: it resumes exactly, and its checkpoints have every parameter in its own format.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trainer_runs.hpp"

namespace {

using namespace strata;
using Mixed = Precision<Bf16, Except<Fp32>>;

/// A unit with a gain that stays in fp32, and a norm outside of it.
struct GainedNet : torch::nn::Module {
    using Batch = strata_test::Rows;
    struct Block : torch::nn::Module {
        torch::nn::Linear linear{9, 9};
        torch::Tensor gain = torch::ones({9});
        Block() {
            register_module("linear", linear);
            gain = register_parameter("gain", gain);
        }
        //! [exception]
        torch::Tensor forward(const torch::Tensor& x) {
            return torch::tanh(linear((x.to(torch::kFloat) * gain).to(x.scalar_type())));
        }
        //! [exception]
    };
    using Units = UnitList<Block>;
    torch::nn::Linear in{3, 9}, out{9, 1};
    torch::Tensor gain = torch::ones({9});
    bool converts = true;
    std::shared_ptr<Unit<Block>> block = std::make_shared<Unit<Block>>();
    GainedNet() {
        register_module("in", in);
        gain = register_parameter("gain", gain);
        register_module("block", block);
        register_module("out", out);
    }
    torch::Tensor loss(const Batch& batch) {
        torch::Tensor h = in(batch.x.to(in->weight.scalar_type())) * gain;
        if (converts) h = h.to(in->weight.scalar_type());
        return torch::mse_loss(out(block->forward(h)).to(torch::kFloat), batch.y);
    }
};

struct TrainerExceptions : strata_test::TrainerRuns {
    static Options with_gains(std::int64_t steps) {
        Options given = options(steps);
        given.engine.excepted_parameters = "gain";
        given.schedule.total_steps = 6;
        return given;
    }
    template <class... Policies>
    std::vector<float> train(const std::string& name, std::int64_t steps, bool unit_by_unit = false) {
        std::vector<float> gains;
        in_session(name, [&](Session& session) {
            const auto make = [] { return GainedNet{}; };
            Trainer<GainedNet, Policies...> trainer{session, unit_by_unit ? in_units(make) : make(), with_gains(steps)};
            trainer.fit(FunctionSource{plain, 10, 8});
            trainer.with_whole_model([&] {
                for (const torch::Tensor& gain : {trainer.model().gain, trainer.model().block->gain}) {
                    EXPECT_EQ(gain.scalar_type(), torch::kFloat);
                    gains.insert(gains.end(), gain.data_ptr<float>(), gain.data_ptr<float>() + gain.numel());
                }
            });
        });
        return gains;
    }
};

TEST_F(TrainerExceptions, ARunThatIsResumedAtAnotherStageHasTheBitsOfAWholeOne) {
    const auto whole = train<Mixed, ZeroStage<2>, Ema<>>("whole", 6);
    train<Mixed, ZeroStage<2>, Ema<>>("run", 3);
    EXPECT_EQ((train<Mixed, ZeroStage<3>, Ema<>>("run", 6)), whole);
    EXPECT_EQ(losses("run"), losses("whole"));
}

TEST_F(TrainerExceptions, AModelMadeUnitByUnitHasTheSameBits) {
    const auto whole = train<Mixed, ZeroStage<2>, Ema<>>("whole", 3);
    EXPECT_EQ((train<Mixed, ZeroStage<3>, Ema<>>("unit by unit", 3, true)), whole);
    EXPECT_EQ(losses("unit by unit"), losses("whole"));
}

TEST_F(TrainerExceptions, WrittenWeightsAreThoseOfTheCheckpoint) {
    const auto folder = root / "weights";
    in_session("run", [&](Session& session) {
        Trainer<GainedNet, Mixed, ZeroStage<3>, Ema<>> trainer{session, GainedNet{}, with_gains(2)};
        trainer.fit(FunctionSource{plain, 10, 8});
        trainer.save_weights(folder / "model.safetensors");
        trainer.save_weights(folder / "model_ema.safetensors", {.average = true});
    });
    comm.barrier();
    for (const char* const name : {"model.safetensors", "model_ema.safetensors"}) {
        const weights::WeightFiles written{folder / name};
        const weights::WeightFiles expected{checkpoint("run", 2) / name};
        ASSERT_EQ(written.tensors().size(), expected.tensors().size());
        for (const auto& [tensor, place] : expected.tensors()) {
            ASSERT_NE(written.find(tensor), nullptr) << tensor;
            EXPECT_EQ(written.find(tensor)->entry->dtype, place.entry->dtype) << tensor;
            std::vector<std::byte> bytes(place.bytes());
            std::vector<std::byte> of_checkpoint(place.bytes());
            weights::WeightFiles::read(*written.find(tensor), bytes);
            weights::WeightFiles::read(place, of_checkpoint);
            EXPECT_EQ(bytes, of_checkpoint) << name << ": " << tensor;
        }
    }
}

TEST_F(TrainerExceptions, AnAverageThatThereIsNotCannotBeWritten) {
    in_session("run", [&](Session& session) {
        Trainer<GainedNet, Mixed, ZeroStage<1>> trainer{session, GainedNet{}, with_gains(1)};
        const auto error = error_of([&] { trainer.save_weights(root / "model.safetensors", {.average = true}); });
        EXPECT_EQ(error.code(), Errc::bad_value);
    });
    EXPECT_FALSE(std::filesystem::exists(root / "model.safetensors"));
}

TEST_F(TrainerExceptions, ACheckpointHasEachParameterInItsFormat) {
    train<Mixed, ZeroStage<1>>("run", 1);
    comm.barrier();
    const std::string header = text_of(checkpoint("run", 1) / "model.safetensors").substr(0, 4096);
    const auto says = [&](const std::string& name, const std::string& dtype) {
        const auto at = header.find('"' + name + '"');
        ASSERT_NE(at, std::string::npos) << name;
        EXPECT_EQ(header.substr(header.find("\"dtype\":\"", at) + 9, dtype.size()), dtype) << name;
    };
    says("block.gain", "F32");
    says("block.linear.weight", "BF16");
    EXPECT_NE(text_of(checkpoint("run", 1) / "manifest.json").find("bf16 with exceptions in fp32"), std::string::npos);
}

TEST_F(TrainerExceptions, OtherExceptionsAreAnotherModel) {
    train<Mixed, ZeroStage<1>>("run", 1);
    EXPECT_EQ(error_of([&] {
                  in_session("run", [&](Session& session) {
                      Options given = with_gains(2);
                      given.engine.excepted_parameters = "bias";
                      Trainer<GainedNet, Mixed, ZeroStage<1>> trainer{session, GainedNet{}, given};
                      trainer.fit(FunctionSource{plain, 10, 8});
                  });
              }).code(),
              Errc::checkpoint_mismatch);
}

TEST_F(TrainerExceptions, AModelThatOnlyComputesHasThemToo) {
    in_session("run", [&](Session& session) {
        Frozen<GainedNet, Mixed, ZeroStage<3>> frozen{session, GainedNet{}, {.excepted_parameters = "gain"}};
        frozen.with_whole_model([&] {
            EXPECT_EQ(frozen.model().gain.scalar_type(), torch::kFloat);
            EXPECT_EQ(frozen.model().block->gain.sum().item<float>(), 9.0F);
            EXPECT_EQ(frozen.model().block->gain.scalar_type(), torch::kFloat);
            EXPECT_EQ(frozen.model().block->linear->weight.scalar_type(), torch::kBFloat16);
        });
    });
}

TEST_F(TrainerExceptions, WhatMakesFp32OfALayersInputIsNamed) {
    const Error error = error_of([&] {
        in_session("run", [&](Session& session) {
            Trainer<GainedNet, Mixed, ZeroStage<1>> trainer{session, GainedNet{}, with_gains(2)};
            trainer.model().converts = false;
            trainer.fit(FunctionSource{plain, 10, 8});
        });
    });
    EXPECT_EQ(error.code(), Errc::bad_parameter) << error.what();
    EXPECT_NE(error.problem().find("keep their own types: gain in fp32"), std::string::npos) << error.what();
}

}  // namespace
