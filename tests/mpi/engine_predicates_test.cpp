// Functions of a program's own that an engine asks, and that throw or answer otherwise on one rank: one error on all of them.

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/average.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Errc;
using strata::Error;
using strata::Except;
using strata::Fp32;
using strata::Place;
using strata::Recompute;
using strata::comm::MpiComm;
using strata::zero::parameters_of;
using namespace strata_test;

/// Which of the functions below fails now, and how; nothing on the other ranks.
struct Fault {
    std::string of;
    std::function<void()> how;
    int asked = 0;

    void meet(std::string_view function) {
        ++asked;
        if (of == function) how();
    }
};
Fault fault;

struct AskedUnits {
    static bool recomputes(std::int32_t unit, std::int32_t) {
        fault.meet("recomputes");
        return fault.of == "recomputes otherwise" ? unit == 0 : unit == 1;
    }
};
/// An average whose constructor and size are asked of the program.
struct AskedAverage {
    using slot = strata::slot::Averaging;
    static constexpr bool enabled = true;
    static constexpr Place place = Place::host;
    template <class Kept>
    class average : public strata::zero::AverageInMemory<place> {
    public:
        explicit average(const strata::optim::EmaOptions&) { fault.meet("average"); }
        static strata::PlaceBytes bytes(std::span<const std::int64_t> numels) {
            fault.meet("bytes");
            return AverageInMemory::bytes(numels);
        }
        [[nodiscard]] bool due(std::int64_t) const { return true; }
        [[nodiscard]] double decay(std::int64_t) const { return 0.5; }
    };
};

using Asking = EngineOf<ZeroStage<3>, Precision<Bf16, Except<Fp32>>, Recompute<AskedUnits>, AskedAverage>;

Asking::Options asking() {
    const auto excepts = [](std::string_view name) {
        fault.meet("excepts");
        return name == "unused" || (fault.of == "excepts otherwise" && name == "out.bias");
    };
    const auto takes = [](std::string_view name) {
        fault.meet("takes");
        return name == "out.bias" || fault.of == "takes otherwise";
    };
    return {.bucket_numel = 60, .groups = {{.takes = takes, .lr_factor = 2.0}}, .excepts = excepts};
}

struct EnginePredicates : testing::Test {
    void TearDown() override { fault = {}; }
    [[nodiscard]] bool is_last() const { return comm.rank() == comm.world() - 1; }
    /// The error on every rank where a function fails on the last.
    Error failed(const std::string& of, const std::function<void()>& how) {
        fault = {is_last() ? of : "", how};
        UnitModel model;
        const Error error = error_of([&] { Asking{comm, parameters_of(model), asking()}; });
        fault = {};
        EXPECT_EQ(comm.all_gather_varied(error.what()).front(), error.what()) << "the same on every rank";
        return error;
    }
    MpiComm comm;
};

TEST_F(EnginePredicates, WhatOneThrowsOnOneRankIsThrownOnAll) {
    for (const char* of : {"excepts", "takes", "recomputes", "average", "bytes"}) {
        const Error own = failed(of, [] { throw Error{Errc::bad_value, "no such name", "type another"}; });
        EXPECT_EQ(own.code(), Errc::bad_value) << of << ": " << own.what();
        EXPECT_EQ(own.problem(), "no such name") << of;
        const Error other = failed(of, [] { throw std::runtime_error{"the table is empty\nand a trace"}; });
        EXPECT_EQ(other.code(), Errc::rank_failed) << of;
        EXPECT_EQ(other.problem(), "rank " + std::to_string(comm.world() - 1) + " failed: the table is empty") << of;
        const Error none = failed(of, [] { throw 7; });
        EXPECT_EQ(none.code(), Errc::rank_failed) << of;
        EXPECT_NE(none.problem().find("no std::exception"), std::string::npos) << of << ": " << none.what();
    }
}

TEST_F(EnginePredicates, OptionsThatOneRankHasAloneAreRefusedOnAll) {
    UnitModel model;
    const double limit = is_last() ? -1.0 : 0.0;
    const Error error = error_of([&] {
        EngineOf<ZeroStage<2>>{comm, parameters_of(model), {.bucket_numel = 60, .max_grad_norm = limit}};
    });
    EXPECT_EQ(error.code(), Errc::bad_value) << error.what();
}

TEST_F(EnginePredicates, AnswersThatDifferByRankAreNamed) {
    if (comm.world() == 1) GTEST_SKIP() << "one rank cannot differ from itself";
    for (const auto& [of, words] : {std::pair{"excepts otherwise", "out.bias"},
                                    {"takes otherwise", "group 0"},
                                    {"recomputes otherwise", "recomputed units 0\" where rank 0 has"}}) {
        const Error error = failed(of, [] {});
        EXPECT_EQ(error.code(), Errc::rank_mismatch) << of << ": " << error.what();
        EXPECT_NE(error.problem().find(words), std::string::npos) << of << ": " << error.what();
    }
}

TEST_F(EnginePredicates, EachIsAskedOnceForTheWholeRun) {
    UnitModel model;
    Asking engine{comm, parameters_of(model), asking()};
    const auto step = [&](int index) {
        engine.backward(model.loss(rows_of(comm, index).to(torch::kBFloat16)));
        engine.step(1e-2);
    };
    step(0);
    fault = {"excepts", [] { throw std::logic_error{"was asked again"}; }};
    engine.set_trainable([](std::string_view name) { return name != "out.weight"; });
    fault = {"takes", [] { throw std::logic_error{"was asked again"}; }};
    step(1);
    engine.set_trainable([](std::string_view) { return true; });
    step(2);
    EXPECT_EQ(engine.step_count(), 3);
}

TEST_F(EnginePredicates, ThatOfSetTrainableMayThrowAnything) {
    UnitModel model;
    EngineOf<ZeroStage<3>> engine{comm, parameters_of(model)};
    const bool last = is_last();
    const Error error = error_of([&] {
        engine.set_trainable([last](std::string_view) -> bool {
            if (last) throw "a word";
            return true;
        });
    });
    EXPECT_EQ(error.code(), Errc::rank_failed) << error.what();
    engine.backward(model.loss(rows_of(comm, 0)));
    EXPECT_EQ(engine.step(1e-2).step, 1) << "and nothing has changed";
}

}  // namespace
