// A trained DDPM of handwritten digits: its training step beside one in float64, and digits drawn by every solver.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <nlohmann/json.hpp>

#include <strata/diffusion/objective.hpp>
#include <strata/diffusion/sampler.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/storage/safetensors.hpp>

namespace {

using namespace strata::diffusion;
namespace fs = std::filesystem;

const fs::path data = fs::path{STRATA_REFERENCE_DIR} / "data";
const fs::path weights_file = data / "weights/ddpm_mnist/ddpm_mnist_starter.safetensors";
const fs::path golden_file = data / "golden/ddpm_train_golden.safetensors";
const fs::path digits_file = data / "weights/ddpm_mnist/mnist_4000.safetensors";

using Tensors = std::map<std::string, at::Tensor, std::less<>>;

/// All tensors of a file whose names begin with `prefix`, without it.
Tensors read(const fs::path& path, std::string_view prefix = "") {
    using strata::storage::Dtype;
    const strata::storage::SafetensorsFile file{path};
    Tensors tensors;
    for (const auto& entry : file.header().tensors) {
        if (!entry.name.starts_with(prefix)) continue;
        const auto type = entry.dtype == Dtype::f32 ? at::kFloat : entry.dtype == Dtype::i64 ? at::kLong : at::kByte;
        at::Tensor tensor = at::empty(entry.shape, at::TensorOptions().dtype(type));
        file.read(entry, {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()});
        tensors[entry.name.substr(prefix.size())] = tensor;
    }
    return tensors;
}

/// The network of the file: predicts epsilon of (B, 1, 28, 28) at times in (0, 1].
struct DigitNet {
    Tensors weights = read(weights_file, "gt.");

    at::Tensor operator()(const at::Tensor& x, const at::Tensor& time_B) {
        const at::Tensor angles = time_B.unsqueeze(1) * weights.at("frequencies");
        at::Tensor time = at::cat({angles.sin(), angles.cos() - 1}, 1);
        for (const char* layer : {"0", "2", "4", "6"}) {
            const std::string name = std::string{"time_embed."} + layer;
            time = at::linear(time, weights.at(name + ".weight"), weights.at(name + ".bias"));
            if (*layer != '6') time = at::gelu(time);
        }
        at::Tensor h = x;
        for (const int block : {0, 1, 2, 3}) {
            const std::string name = "blocks." + std::to_string(block) + ".net.";
            h = at::conv2d(h, weights.at(name + "0.weight"), weights.at(name + "0.bias"), 1, 3);
            const at::Tensor& scale = weights.at(name + "1.weight");
            h = at::gelu(at::layer_norm(h, scale.sizes(), scale, weights.at(name + "1.bias")));
            if (block == 0) h = h + time.unsqueeze(2).unsqueeze(3);
        }
        return at::conv2d(h, weights.at("blocks.4.weight"), weights.at("blocks.4.bias"), 1, 1);
    }
};

/// beta grows evenly over timesteps 0 ... 1000, of which 1 to 1000 are trained.
DdpmSchedule schedule() {
    DdpmScheduleOptions options;
    for (int i = 0; i <= 1000; ++i) options.trained_betas.push_back(1e-4 + (0.02 - 1e-4) * i / 1000);
    return DdpmSchedule{options};
}

double distance(const at::Tensor& ours, const at::Tensor& theirs) {
    return ((ours - theirs).abs().max() / theirs.abs().max()).item<double>();
}

#define NEEDS(file) \
    if (!fs::exists(file)) GTEST_SKIP() << file << " is not there"

TEST(DdpmTraining, TenStepsAreThoseOfFloat64) {
    NEEDS(weights_file);
    NEEDS(golden_file);
    const Tensors golden = read(golden_file);
    const at::Tensor t = golden.at("t");
    const DdpmObjective objective{schedule(), {.least_timestep = 1}};
    const Noised noised =
        objective.at(golden.at("x0"), golden.at("eps"), {t.data_ptr<std::int64_t>(), t.data_ptr<std::int64_t>() + 8});
    EXPECT_LT(distance(noised.input, golden.at("z_t")), 1e-6);

    DigitNet net;
    std::map<std::string, std::vector<float>, std::less<>> state;
    for (auto& [name, weight] : net.weights) {
        if (name == "frequencies") continue;
        weight.requires_grad_();
        state[name].resize(static_cast<std::size_t>(2 * weight.numel()));
    }
    const strata::AdamW::Options options{.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01};
    const auto losses =
        nlohmann::json::parse(strata::storage::SafetensorsFile{golden_file}.header().metadata.at("losses_f64"))
            .get<std::vector<double>>();
    ASSERT_EQ(losses.size(), 10U);
    for (int step = 1; step <= 10; ++step) {
        const at::Tensor prediction = net(noised.input, noised.timestep_B / 1000);
        const at::Tensor loss = noised.loss(prediction);
        EXPECT_NEAR(loss.item<double>(), losses[static_cast<std::size_t>(step - 1)], 1e-5 * losses[0]) << step;
        loss.backward();
        if (step == 1) {
            EXPECT_LT(distance(prediction.detach(), golden.at("pred")), 1e-5);
        }
        const at::NoGradGuard no_gradients;
        const auto scalars = strata::AdamW::scalars(options, 2e-5, step);
        for (auto& [name, moments] : state) {
            at::Tensor& weight = net.weights.at(name);
            const at::Tensor gradient = weight.grad().contiguous();
            if (step == 1) {
                EXPECT_LT(distance(gradient, golden.at("grad." + name)), 1e-4) << name;
            }
            for (std::int64_t i = 0; i < weight.numel(); ++i)
                strata::AdamW::apply(weight.data_ptr<float>()[i], gradient.data_ptr<float>()[i], moments.data() + 2 * i,
                                     scalars);
            weight.grad().zero_();
            if (step == 1 || step == 10) {
                EXPECT_LT(distance(weight, golden.at("after" + std::to_string(step) + "." + name)), 1e-5)
                    << name << step;
            }
        }
    }
}

/// Mean over pictures of the distance to the nearest digit, (N, 784), or to the second where they are among these.
double to_nearest(const at::Tensor& pictures, const at::Tensor& digits, bool are_among_them) {
    const at::Tensor nearest = std::get<0>(at::cdist(pictures.flatten(1), digits).topk(2, 1, false));
    return nearest.select(1, are_among_them ? 1 : 0).mean().item<double>();
}

/// The share of pixels that are black or white.
double decided(const at::Tensor& pictures) { return (pictures.abs() > 0.4).to(at::kFloat).mean().item<double>(); }

TEST(DdpmTraining, EverySolverDrawsDigits) {
    NEEDS(weights_file);
    NEEDS(digits_file);
    const at::Tensor digits = read(digits_file).at("images").to(at::kFloat).flatten(1) / 255 - 0.5;
    const at::Tensor some = digits.slice(0, 0, 4000, 100);
    DigitNet net;
    const auto model = [&](const at::Tensor& x, double timestep) {
        return net(x, at::full({x.size(0)}, timestep / 1000));
    };
    const at::Tensor noise = NoiseSource::seeded(4).normal({8, 1, 28, 28});
    for (const auto solver : {Solver::dpm_solver_2m, Solver::unipc, Solver::ddim, Solver::euler}) {
        SolverOptions options{.solver = solver, .steps = 20};
        options.spacing = Spacing::trailing;
        const at::Tensor drawn = Sampler{schedule(), Prediction::epsilon, options}.draw(noise, model);
        EXPECT_LT(to_nearest(drawn, digits, false), 1.35 * to_nearest(some, digits, true)) << name_of(solver);
        EXPECT_NEAR(decided(drawn), decided(some), 0.1) << name_of(solver);
        EXPECT_GT(drawn.std(at::IntArrayRef{0}, true).mean().item<double>(), 0.1)
            << name_of(solver);  // not eight times the same
    }
}

}  // namespace
