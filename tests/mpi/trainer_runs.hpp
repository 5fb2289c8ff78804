#pragma once
// tests/mpi/trainer_runs.hpp - TrainerRuns: whole runs of a small network, and ways to spoil them.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/step_name.hpp>
#include <strata/strata.hpp>

#include "output_folder.hpp"

namespace strata_test {

struct Rows {
    torch::Tensor x, y;
    bool breaks_forward = false;
    bool breaks_gradient = false;  // the loss is a number, its gradient is not
};

/// A unit and parameters outside of it, 505 elements: no number of ranks above one that is tested divides them but 5. Has
/// dropout and a buffer that every forward pass changes.
struct SmallNet : torch::nn::Module {
    using Batch = Rows;
    struct Block : torch::nn::Module {
        torch::nn::Linear linear{18, 18};
        Block() { register_module("linear", linear); }
        torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(linear(x)); }
    };
    using Units = strata::UnitList<Block>;
    torch::nn::Linear in{3, 18}, out{18, 1};
    std::shared_ptr<strata::Unit<Block>> block = std::make_shared<strata::Unit<Block>>();
    torch::Tensor calls = torch::zeros({1}, torch::kLong);
    torch::Tensor mean = torch::zeros({1});
    SmallNet() {
        register_module("in", in);
        register_module("block", block);
        register_module("out", out);
        register_buffer("calls", calls);
        register_buffer("mean", mean);
    }
    torch::Tensor loss(const Batch& batch) {
        if (is_training()) {
            calls += 1;
            mean += batch.y.mean();  // NaN for good, once
        }
        if (batch.breaks_forward) throw std::runtime_error{"the model has no answer\nand a stack trace"};
        const auto x = batch.x.to(in->weight.scalar_type());
        const auto h = torch::dropout(block->forward(torch::tanh(in(x))), 0.1, is_training());
        const auto loss = torch::mse_loss(out(h).to(torch::kFloat), batch.y);
        return batch.breaks_gradient ? loss + (in->weight.sum() * 0).sqrt() : loss;
    }
};

inline Rows some_rows() {  // depends on the generator, which the trainer seeds by micro-batch
    const auto x = torch::rand({8, 3});
    return {x, (x * x).sum(1, true).sin()};
}

struct TrainerRuns : OutputFolder {
    using Options = strata::TrainOptions<strata::AdamW>;
    using Make = std::function<Rows(std::int64_t)>;

    static Options options(std::int64_t steps) {
        return {.max_steps = steps, .schedule = {.lr = 1e-2}, .engine = {.max_grad_norm = 0.5}};
    }
    static Rows plain(std::int64_t) { return some_rows(); }

    /// A session whose output is root/name; what it prints on rank 0 is then in `said`.
    void in_session(const std::string& name, const std::function<void(strata::Session&)>& body, bool fresh = false) {
        std::vector<std::string> words{"test", "--output", (root / name).string()};
        if (fresh) words.emplace_back("--fresh");
        std::vector<char*> argv;
        for (auto& word : words) argv.push_back(word.data());
        testing::internal::CaptureStdout();
        try {
            strata::Session session{comm, static_cast<int>(argv.size()), argv.data()};
            torch::manual_seed(1);
            body(session);
        } catch (...) {
            said = testing::internal::GetCapturedStdout();
            throw;
        }
        said = testing::internal::GetCapturedStdout();
    }

    template <class... Policies>
    strata::FitResult run(const std::string& name, Options given, const Make& make = plain,
                          const std::function<void(const strata::train::StepMetrics&)>& each_step = {}) {
        strata::FitResult result;
        in_session(name, [&](strata::Session& session) {
            strata::Trainer<SmallNet, Policies...> trainer{session, SmallNet{}, given};
            if (each_step) trainer.every(1, each_step);
            result = trainer.fit(strata::FunctionSource{make, 10, 8});
            calls = trainer.model().calls.template item<std::int64_t>();
        });
        return result;
    }

    [[nodiscard]] std::vector<double> losses(const std::string& name) const {
        comm_barrier();
        std::vector<double> found;
        for (const auto& m : strata::train::read_metrics(root / name / "metrics.jsonl")) found.push_back(m.loss);
        return found;
    }
    void comm_barrier() const { const_cast<strata::comm::DefaultComm&>(comm).barrier(); }

    /// The error that `work` ends with.
    static strata::Error error_of(const std::function<void()>& work) {
        try {
            work();
        } catch (const strata::Error& error) {
            return error;
        }
        return strata::Error{strata::Errc{}, "nothing was thrown", ""};
    }

    [[nodiscard]] std::filesystem::path checkpoint(const std::string& name, int step) const {
        return root / name / "checkpoints" / strata::core::step_name(step);
    }
    /// Rank 0 changes files while no other rank looks.
    void on_disk(const std::function<void()>& change) {
        comm.barrier();
        if (comm.rank() == 0) change();
        comm.barrier();
    }
    static std::string text_of(const std::filesystem::path& file) {
        std::ifstream in{file, std::ios::binary};
        return {std::istreambuf_iterator<char>{in}, {}};
    }
    static void replace(const std::filesystem::path& file, const std::string& from, const std::string& to) {
        std::string text = text_of(file);
        const auto at = text.find(from);
        ASSERT_NE(at, std::string::npos) << from << " in " << text;
        std::ofstream{file, std::ios::binary} << text.replace(at, from.size(), to);
    }
    [[nodiscard]] bool is_last() const { return comm.rank() == comm.world() - 1; }
    void expect_said(const std::string& words) const {
        if (comm.rank() == 0) {
            EXPECT_NE(said.find(words), std::string::npos) << words << " in:\n" << said;
        }
    }

    std::string said;
    std::int64_t calls = 0;
};

}  // namespace strata_test
