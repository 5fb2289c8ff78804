#pragma once
// A module held against one case of a reference implementation: its weights, outputs, and gradients of inputs and weights.
//
//   GoldenCases golden{"vae_flux"};                      // or STRATA_NEED_CASES(golden, "vae_flux"), which skips without the file
//   golden.fill(model);                                  // every parameter by its name, none missing, none left over
//   auto image = golden.input("c0", "image");            // a leaf that wants a gradient when it is of numbers
//   golden.expect("c0", model, {{"mean", mean}}, {{"image", image}});

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "golden.hpp"

/// How far outputs may be from the reference, relative to the largest of the reference's values, and gradients.
struct GoldenBounds {
    double outputs = 1e-5;
    double gradients = 1e-4;
    /// Gradients whose largest value is below this are mathematically zero: they are compared with it.
    double zero = 1e-7;
};

class GoldenCases {
public:
    using Named = std::map<std::string, at::Tensor>;

    /// The file golden/NAME.safetensors.
    explicit GoldenCases(const std::string& name) : file_(name + ".safetensors") {}

    /// Names of the tensors that are weights of the module: those of no case.
    [[nodiscard]] std::vector<std::string> weights() const {
        std::vector<std::string> names;
        for (const std::string& name : file_.names())
            if (std::none_of(std::begin(kinds), std::end(kinds),
                             [&](const char* kind) { return name.starts_with(kind); }))
                names.push_back(name);
        return names;
    }

    /// The cases of the file that a model went through forwards and backwards: what stands behind "grad." in its names.
    [[nodiscard]] std::vector<std::string> tags() const {
        constexpr std::string_view kind = "grad.";
        std::set<std::string> tags;
        for (const std::string& name : file_.names())
            if (name.starts_with(kind))
                tags.insert(name.substr(kind.size(), name.find('.', kind.size()) - kind.size()));
        return {tags.begin(), tags.end()};
    }

    /// Copies the weights `prefix` + name into the parameters and buffers of the module, whatever its dtype; fails for one that
    /// either does not have.
    void fill(torch::nn::Module& module, const std::string& prefix = "") const {
        torch::NoGradGuard no_gradient;
        std::set<std::string> unused;
        for (const std::string& name : weights())
            if (name.starts_with(prefix)) unused.insert(name);
        const auto copy = [&](const std::string& name, at::Tensor& tensor) {
            if (unused.erase(prefix + name) == 0) {
                ADD_FAILURE() << "the reference has no weight " << prefix + name;
                return;
            }
            const at::Tensor weight = file_(prefix + name);
            ASSERT_EQ(weight.sizes(), tensor.sizes()) << name;
            tensor.copy_(weight);
        };
        for (auto& parameter : module.named_parameters()) copy(parameter.key(), parameter.value());
        for (auto& buffer : module.named_buffers()) copy(buffer.key(), buffer.value());
        for (const std::string& name : unused) ADD_FAILURE() << "the model has no weight " << name;
    }

    /// in.CASE.NAME, as a leaf that wants a gradient where the reference has one.
    [[nodiscard]] at::Tensor input(const std::string& tag, const std::string& name) const {
        at::Tensor tensor = file_("in." + tag + "." + name);
        if (file_.has("grad." + tag + ".in." + name)) tensor.requires_grad_();
        return tensor;
    }
    [[nodiscard]] bool has(const std::string& name) const { return file_.has(name); }
    [[nodiscard]] at::Tensor operator()(const std::string& name) const { return file_(name); }

    /// The outputs are those of the case; so is the loss, the sum over outputs with a loss_w of mean(output * loss_w), and so are its
    /// gradients for `inputs` and for every weight that the reference keeps one of. Leaves gradients of the module zeroed.
    void expect(const std::string& tag, torch::nn::Module& module, const Named& outputs, const Named& inputs,
                const GoldenBounds& bounds = {}, const std::string& prefix = "") const {
        module.zero_grad();
        at::Tensor loss = at::zeros({});
        for (const auto& [name, output] : outputs) {
            const std::string weight = "in." + tag + ".loss_w." + name;
            expect_near("out." + tag + "." + name, output, bounds.outputs, 0);
            if (file_.has(weight)) loss = loss + (output.to(at::kFloat) * file_(weight)).mean();
        }
        loss.backward();
        for (const auto& [name, input] : inputs)
            if (file_.has("grad." + tag + ".in." + name))
                expect_near("grad." + tag + ".in." + name, input.grad(), bounds.gradients, bounds.zero);
        std::size_t compared = 0;
        for (const auto& parameter : module.named_parameters()) {
            const std::string name = "grad." + tag + ".w." + prefix + parameter.key();
            if (!file_.has(name)) continue;
            ++compared;
            ASSERT_TRUE(parameter.value().grad().defined()) << name;
            expect_near(name, parameter.value().grad(), bounds.gradients, bounds.zero);
        }
        EXPECT_GT(compared, 0U) << "no gradient of a weight in case " << tag;
        module.zero_grad();
    }

    /// The same of what the file may lack: steps in the middle are kept of some cases.
    void expect_near_if_there(const std::string& name, const at::Tensor& tensor, double bound) const {
        if (has(name)) expect_near(name, tensor, bound);
    }

    /// `tensor` is the one of the file, up to `bound` times its largest value.
    void expect_near(const std::string& name, const at::Tensor& tensor, double bound, double zero = 0) const {
        const at::Tensor expected = file_(name).to(at::kDouble);
        ASSERT_EQ(tensor.sizes(), expected.sizes()) << name;
        const double scale = expected.abs().max().item<double>();
        const double error = (tensor.detach().to(at::kDouble) - expected).abs().max().item<double>();
        EXPECT_LE(error, scale <= zero ? zero : bound * scale) << name << ", whose largest value is " << scale;
    }

private:
    static constexpr const char* kinds[] = {"in.", "out.", "grad.", "mid."};
    Golden file_;
};

/// Declares `name`, or skips the test where the file is absent.
#define STRATA_NEED_CASES(name, file)                                                                                 \
    if (!std::filesystem::exists(Golden::path(std::string{file} + ".safetensors")))                                   \
        GTEST_SKIP() << Golden::path(std::string{file} + ".safetensors") << " is not there: nothing to compare with"; \
    const GoldenCases name { file }
