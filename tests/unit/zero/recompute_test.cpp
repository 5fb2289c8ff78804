// A recomputed call is the plain call, bit for bit, without its activations.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/zero/detail/gradient_hooks.hpp>
#include <strata/zero/detail/recompute.hpp>

namespace {

using strata::Errc;
using strata::Error;
using strata::zero::detail::recomputed;
using strata::zero::detail::Tensors;
using torch::Tensor;
using Forward = std::function<Tensors(const Tensors&)>;

Tensors plain(const Tensors& inputs, const Forward& forward) { return forward(inputs); }
Tensors again(const Tensors& inputs, const Forward& forward) { return recomputed(inputs, forward, {}); }
using Way = Tensors (*)(const Tensors&, const Forward&);

bool same_bits(const Tensor& a, const Tensor& b) {
    if (!a.defined() || !b.defined()) return a.defined() == b.defined();
    return a.dtype() == b.dtype() && a.sizes() == b.sizes() && torch::equal(a, b);
}
testing::AssertionResult all_same_bits(const Tensors& a, const Tensors& b) {
    if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " tensors";
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (!same_bits(a[i], b[i]))
            return testing::AssertionFailure() << "tensor " << i << ":\n" << a[i] << "\n" << b[i];
    }
    return testing::AssertionSuccess();
}

/// Runs `what`, expects an Error with this number, returns its message.
std::string message_of(Errc code, const std::function<void()>& what) {
    try {
        what();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

/// Two streams that attend to each other, as in a diffusion transformer: inputs used several times, dropout, a norm.
struct Joint {
    Joint(std::int64_t width, torch::Dtype dtype) {
        for (int i = 0; i < 6; ++i) {
            weights.push_back((torch::randn({width, width}) / 4).to(dtype).requires_grad_());
        }
    }
    [[nodiscard]] Tensors forward(const Tensors& inputs) const {
        const Tensor image = inputs[0];
        const Tensor text = inputs[1];
        const Tensor both = torch::cat({text, image}, 0);
        const Tensor normed = torch::layer_norm(both.to(torch::kFloat), {both.size(1)}).to(both.dtype());
        const Tensor q = normed.matmul(weights[0]), k = normed.matmul(weights[1]), v = normed.matmul(weights[2]);
        const Tensor mixed = torch::dropout(torch::softmax(q.matmul(k.t()), -1), 0.3, true).matmul(v);
        const Tensor out = both + torch::dropout(torch::gelu(mixed.matmul(weights[3])), 0.2, true).matmul(weights[4]);
        return {out.slice(0, text.size(0)) + image, (out.slice(0, 0, text.size(0)) * text).matmul(weights[5])};
    }
    Tensors weights;
};

/// Loss, gradients and random numbers of three Joints in a row.
Tensors run_joints(Way way, torch::Dtype dtype, bool inputs_train) {
    torch::manual_seed(7);
    std::vector<Joint> own;
    for (int i = 0; i < 3; ++i) own.emplace_back(8, dtype);
    const Tensor image = torch::randn({5, 8}).to(dtype).requires_grad_(inputs_train);
    const Tensor text = torch::randn({3, 8}).to(dtype).requires_grad_(inputs_train);
    Tensors streams{image, text};
    for (const Joint& block : own) streams = way(streams, [&](const Tensors& given) { return block.forward(given); });
    const Tensor after_forward = torch::rand({4});
    const Tensor loss = (streams[0].sum() * 0.5 + streams[1].pow(2).mean()).to(torch::kFloat);
    loss.backward();
    Tensors result{loss.detach(), after_forward, torch::rand({4}), image.grad(), text.grad()};
    for (const Joint& block : own) {
        for (const Tensor& weight : block.weights) result.push_back(weight.grad());
    }
    return result;
}

TEST(Recompute, HasTheBitsOfThePlainCallInFp32) {
    EXPECT_TRUE(all_same_bits(run_joints(plain, torch::kFloat, true), run_joints(again, torch::kFloat, true)));
}

TEST(Recompute, HasTheBitsOfThePlainCallInBf16) {
    EXPECT_TRUE(all_same_bits(run_joints(plain, torch::kBFloat16, true), run_joints(again, torch::kBFloat16, true)));
}

TEST(Recompute, NeedsNoInputThatRequiresAGradient) {
    const Tensors result = run_joints(again, torch::kFloat, false);
    EXPECT_TRUE(all_same_bits(run_joints(plain, torch::kFloat, false), result));
    EXPECT_TRUE(result.back().defined());
}

TEST(Recompute, NeedsNoInputAtAll) {
    const Tensor weight = torch::rand({3}).requires_grad_();
    const Tensors out = again({}, [&](const Tensors&) { return Tensors{weight * weight}; });
    out[0].sum().backward();
    EXPECT_TRUE(torch::equal(weight.grad(), 2 * weight.detach()));
}

TEST(Recompute, KeepsNoActivationAfterForward) {
    const Tensor weight = torch::rand({16}).requires_grad_();
    for (const Way way : {plain, again}) {
        std::optional<c10::weak_intrusive_ptr<at::TensorImpl>> intermediate;
        int calls = 0;
        const Tensor x = torch::rand({16}).requires_grad_();
        const Tensors out = way({x}, [&](const Tensors& given) {
            ++calls;
            const Tensor h = given[0] * weight;
            if (!intermediate) intermediate.emplace(h.getIntrusivePtr());
            return Tensors{h * h};  // its backward needs h
        });
        EXPECT_EQ(intermediate->expired(), way == again);
        EXPECT_EQ(calls, 1);
        out[0].sum().backward();
        EXPECT_EQ(calls, way == again ? 2 : 1);
    }
}

TEST(Recompute, FreesWhatForwardHoldsAsBackwardPasses) {
    const Tensor x = torch::rand({2}).requires_grad_();
    const auto held = std::make_shared<int>();
    const std::weak_ptr<int> watch = held;
    const Tensor loss = again({x}, [own = held](const Tensors& given) { return Tensors{given[0] * *own}; })[0].sum();
    EXPECT_EQ(watch.use_count(), 2);
    loss.backward();
    EXPECT_EQ(watch.use_count(), 1) << "the graph of the loss is still there, its saved tensors are not";
}

TEST(Recompute, RecordsNothingFirstAndEverythingThen) {
    const Tensor x = torch::rand({2}).requires_grad_() * 1;
    std::vector<std::pair<bool, bool>> seen;  // gradients are on, the input requires one
    const Tensors out = again({x}, [&](const Tensors& given) {
        seen.emplace_back(torch::GradMode::is_enabled(), given[0].requires_grad());
        return Tensors{given[0] * 2};
    });
    EXPECT_TRUE(torch::GradMode::is_enabled());
    out[0].sum().backward();
    EXPECT_TRUE(torch::GradMode::is_enabled());
    EXPECT_EQ(seen, (std::vector<std::pair<bool, bool>>{{false, false}, {true, true}}));
}

TEST(Recompute, IntegerOutputsPassThrough) {
    const Tensor x = torch::rand({4}).requires_grad_();
    const Tensors out = again({x}, [](const Tensors& given) {
        return Tensors{given[0].argsort(), given[0] * 3, Tensor{}};
    });
    EXPECT_EQ(out[0].scalar_type(), torch::kLong);
    EXPECT_FALSE(out[0].requires_grad());
    EXPECT_FALSE(out[2].defined());
    out[1].sum().backward();
    EXPECT_TRUE(torch::equal(x.grad(), torch::full({4}, 3.0)));

    const Tensors only = again({x}, [](const Tensors& given) { return Tensors{given[0].argsort()}; });
    EXPECT_FALSE(only[0].requires_grad());
    const Tensor buffer = torch::arange(3);
    EXPECT_TRUE(again({x}, [&](const Tensors&) { return Tensors{buffer}; })[0].is_same(buffer));
}

TEST(Recompute, GradientsOfOutputsWithoutAGraphAreDropped) {
    Tensors gradients[2];
    for (const Way way : {plain, again}) {
        torch::manual_seed(1);
        const Tensor x = torch::rand({4}).requires_grad_();
        const Tensor weight = torch::rand({4}).requires_grad_();
        const Tensors out = way({x}, [&](const Tensors& given) {
            return Tensors{given[0] * weight, (given[0] * weight).detach(), torch::ones({4})};
        });
        (out[0] * out[1] * out[2]).sum().backward();
        gradients[way == again] = {x.grad(), weight.grad()};
    }
    EXPECT_TRUE(all_same_bits(gradients[0], gradients[1]));
}

TEST(Recompute, ACallThatNoGradientReachesDoesNotRunAgain) {
    const Tensor x = torch::rand({4}).requires_grad_();
    int first = 0;
    int second = 0;
    int before = 0;
    const Tensors middle = recomputed(
        {x},
        [&](const Tensors& given) {
            ++first;
            return Tensors{given[0] * 2};
        },
        [&] { ++before; });
    const Tensors out = again(middle, [&](const Tensors& given) {
        ++second;
        return Tensors{given[0].detach() * 2, given[0] * 2};
    });
    (out[0].sum() + x.sum()).backward();
    EXPECT_TRUE(torch::equal(x.grad(), torch::ones({4})));
    EXPECT_EQ(second, 2) << "only its rerun can tell that the output has no graph";
    EXPECT_EQ(first, 1);
    EXPECT_EQ(before, 0);
}

TEST(Recompute, AnInputReturnedAsAnOutputIsThatTensor) {
    Tensors gradients[2];
    for (const Way way : {plain, again}) {
        torch::manual_seed(2);
        const Tensor leaf = torch::rand({4}).requires_grad_();
        const Tensor x = leaf * 2;
        const Tensor table = torch::rand({4});
        const Tensors out = way({x, table}, [](const Tensors& given) {
            return Tensors{given[0], given[1], torch::sin(given[0]) * given[1]};
        });
        EXPECT_TRUE(out[0].is_same(x));
        EXPECT_TRUE(out[1].is_same(table));
        EXPECT_FALSE(out[1].requires_grad());
        (out[0] * out[1] + out[2]).sum().backward();
        gradients[way == again] = {leaf.grad()};
    }
    EXPECT_TRUE(all_same_bits(gradients[0], gradients[1]));
    const Tensor x = torch::rand({4}).requires_grad_();
    EXPECT_TRUE(again({x}, [](const Tensors& given) { return given; })[0].is_same(x)) << "also when there is no other";
}

TEST(Recompute, AViewOfAnInputIsAnOutput) {
    Tensors gradients[2];
    for (const Way way : {plain, again}) {
        torch::manual_seed(3);
        const Tensor x = torch::rand({2, 3}).requires_grad_();
        const Tensors out = way({x}, [](const Tensors& given) {
            return Tensors{given[0].t(), given[0].slice(1, 0, 2)};
        });
        (out[0].sin().sum() + out[1].exp().sum()).backward();
        gradients[way == again] = {x.grad()};
    }
    EXPECT_TRUE(all_same_bits(gradients[0], gradients[1]));
}

TEST(Recompute, ATensorOfTheModelReturnedAsAnOutputStaysALeaf) {
    const Tensor weight = torch::rand({3}).requires_grad_();
    const Tensor buffer = torch::rand({3});
    const Tensor x = torch::rand({3}).requires_grad_();
    const Tensors out = again({x}, [&](const Tensors& given) { return Tensors{given[0] * buffer, weight, buffer}; });
    EXPECT_TRUE(weight.is_leaf() && buffer.is_leaf());
    EXPECT_FALSE(buffer.requires_grad());
    (out[0] + out[1] * 3 + out[2]).sum().backward();
    EXPECT_TRUE(torch::equal(weight.grad(), torch::full({3}, 3.0)));
    EXPECT_TRUE(torch::equal(x.grad(), buffer));
    EXPECT_FALSE(buffer.grad().defined());
}

TEST(Recompute, OutputsMayBeChangedInPlaceAfterwards) {
    Tensors gradients[2];
    for (const Way way : {plain, again}) {
        torch::manual_seed(9);
        const Tensor x = torch::randn({6}).requires_grad_();
        const Tensor weight = torch::randn({6}).requires_grad_();
        const Tensors out = way({x}, [&](const Tensors& given) { return Tensors{given[0] * weight}; });
        out[0].mul_(2).relu_();
        (out[0] * out[0]).sum().backward();
        gradients[way == again] = {x.grad(), weight.grad()};
    }
    EXPECT_TRUE(all_same_bits(gradients[0], gradients[1]));
}

TEST(Recompute, ManyBlocksInARowEndTheirBackwardOneByOne) {
    const Tensor x = torch::rand({4}).requires_grad_();
    const Tensor weight = torch::rand({4}).requires_grad_();
    const auto thread = std::this_thread::get_id();
    Tensors streams{x};
    for (int i = 0; i < 200; ++i) {  // libtorch nests 60 backward passes on a thread
        streams = recomputed(
            streams, [&](const Tensors& given) { return Tensors{given[0] * weight}; },
            [&] { EXPECT_EQ(std::this_thread::get_id(), thread); });
    }
    streams[0].sum().backward();
    EXPECT_TRUE(torch::allclose(x.grad(), weight.detach().pow(200)));
}

TEST(Recompute, AnOutputThatTheLossDoesNotUseGivesNoGradient) {
    for (const Way way : {plain, again}) {
        const Tensor x = torch::rand({3}).requires_grad_();
        const Tensor y = torch::rand({3}).requires_grad_();
        const Tensor used = torch::rand({3}).requires_grad_();
        const Tensor unused = torch::rand({3}).requires_grad_();
        const Tensors out = way({x, y}, [&](const Tensors& given) {
            return Tensors{given[1] * unused, given[0] * used};
        });
        out[1].sum().backward();
        EXPECT_TRUE(same_bits(x.grad(), used.detach()));
        EXPECT_TRUE(same_bits(used.grad(), x.detach()));
        EXPECT_FALSE(y.grad().defined());
        EXPECT_FALSE(unused.grad().defined()) << "zeros would be averaged, decayed and counted in norms";
    }
}

TEST(Recompute, TheSameTensorTwiceIsOneInput) {
    Tensors gradients[2];
    for (const Way way : {plain, again}) {
        torch::manual_seed(4);
        const Tensor x = torch::randn({64}).requires_grad_();
        const Tensors out = way({x, Tensor{}, x}, [](const Tensors& given) {
            EXPECT_TRUE(given[0].is_same(given[2]));
            EXPECT_FALSE(given[1].defined());
            return Tensors{given[0].sin() * 1e4 + given[2].exp() + given[0].cos() * 1e-3 + given[2].tanh()};
        });
        out[0].sum().backward();
        gradients[way == again] = {x.grad()};
    }
    EXPECT_TRUE(all_same_bits(gradients[0], gradients[1]));
}

TEST(Recompute, TheInputsGradientKeepsItsStrides) {
    std::vector<std::int64_t> strides[2];
    for (const Way way : {plain, again}) {
        const Tensor x = torch::rand({3, 5}).requires_grad_() * 1;
        x.register_hook([&](const Tensor& gradient) { strides[way == again] = gradient.strides().vec(); });
        const Tensor factor = torch::rand({5, 3});
        way({x}, [&](const Tensors& given) { return Tensors{given[0].t() * factor}; })[0].sum().backward();
    }
    EXPECT_EQ(strides[0], (std::vector<std::int64_t>{1, 3})) << "the plain call's is a transposed one";
    EXPECT_EQ(strides[1], strides[0]);
}

TEST(Recompute, Nests) {
    int calls[2] = {0, 0};
    Tensors results[2];
    for (const Way way : {plain, again}) {
        torch::manual_seed(5);
        const Tensor x = torch::rand({8}).requires_grad_();
        const Tensor outer = torch::rand({8}).requires_grad_();
        const Tensor inner = torch::rand({8}).requires_grad_();
        Tensors out = way({x}, [&](const Tensors& given) {
            const Tensor h = torch::dropout(given[0] * outer, 0.5, true);
            const Tensors middle = way({h}, [&](const Tensors& deeper) {
                ++calls[way == again];
                return Tensors{torch::dropout(deeper[0].sin() * inner, 0.5, true)};
            });
            return Tensors{torch::dropout(middle[0], 0.5, true) * outer + given[0]};
        });
        const Tensor drawn = torch::rand({3});
        out[0].sum().backward();
        results[way == again] = {out[0].detach(), drawn, torch::rand({3}), x.grad(), outer.grad(), inner.grad()};
    }
    EXPECT_TRUE(all_same_bits(results[0], results[1]));
    EXPECT_EQ(calls[0], 1);
    EXPECT_EQ(calls[1], 3);
}

TEST(Recompute, IsThePlainCallWhereNothingRequiresAGradient) {
    const Tensor x = torch::rand({2});
    int before = 0;
    const Forward forward = [&](const Tensors& given) {
        EXPECT_TRUE(given[0].is_same(x));
        return Tensors{given[0] * 2};
    };
    EXPECT_FALSE(recomputed(
                     {x}, forward, [&] { ++before; }, Tensors{torch::rand({2})})[0]
                     .requires_grad());
    {
        const torch::NoGradGuard no_grad;
        x.requires_grad_();
        EXPECT_FALSE(recomputed({x}, forward, [&] { ++before; })[0].requires_grad());
    }
    {
        const torch::InferenceMode inference;
        EXPECT_FALSE(recomputed({x}, forward, [&] { ++before; })[0].requires_grad());
    }
    EXPECT_EQ(before, 0);
    EXPECT_TRUE(recomputed(
                    {x}, [](const Tensors& given) { return Tensors{given[0] * 2}; }, {}, Tensors{})[0]
                    .requires_grad())
        << "an input that requires a gradient is enough";
}

TEST(Recompute, ASecondBackwardThroughAKeptGraphAddsTheSameAgain) {
    torch::manual_seed(6);
    const Tensor x = torch::rand({8}).requires_grad_();
    const Tensor weight = torch::rand({8}).requires_grad_();
    int calls = 0;
    const Tensor loss = again({x},
                              [&](const Tensors& given) {
                                  ++calls;
                                  return Tensors{torch::dropout(given[0] * weight, 0.5, true)};
                              })[0]
                            .sum();
    loss.backward({}, true);
    const Tensors once{x.grad().clone(), weight.grad().clone()};
    torch::rand({3});
    loss.backward();
    EXPECT_EQ(calls, 3);
    EXPECT_TRUE(all_same_bits({x.grad(), weight.grad()}, {once[0] * 2, once[1] * 2}));
    try {
        loss.backward();
        FAIL() << "the graph is gone";
    } catch (const c10::Error& error) {
        EXPECT_NE(std::string{error.what()}.find("second time"), std::string::npos) << error.what();
    }
    EXPECT_EQ(calls, 3);
}

TEST(Recompute, ParametersAreMadeReadableBeforeTheRerun) {
    const Tensor x = torch::rand({4}).requires_grad_();
    const Tensor weight = torch::rand({4}).requires_grad_();
    const Tensor values = weight.detach().clone();
    int calls = 0;
    const Tensors out = recomputed(
        {x}, [&](const Tensors& given) { return Tensors{given[0] * weight}; },
        [&] {
            ++calls;
            EXPECT_FALSE(torch::GradMode::is_enabled());
            weight.detach().copy_(values);
        });
    weight.detach().fill_(std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(calls, 0);
    out[0].sum().backward();
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(torch::equal(x.grad(), values));
}

/// Gradients of `parameters` and of an input, and how often each parameter's hook fired; one backward pass.
///
///   calls(call, x)  makes the loss with what `call` does to a forward
struct Pass {
    Tensors gradients;
    std::vector<int> fired;
    friend bool operator==(const Pass& a, const Pass& b) {
        return a.fired == b.fired && static_cast<bool>(all_same_bits(a.gradients, b.gradients));
    }
};
using Call = std::function<Tensor(const Tensor&, const std::function<Tensor(const Tensor&)>&)>;
Pass pass_of(bool recomputes, const Tensors& parameters,
             const std::function<Tensor(const Call&, const Tensor&)>& loss) {
    Pass pass{.gradients = {}, .fired = std::vector<int>(parameters.size())};
    const strata::zero::detail::GradientHooks hooks{parameters, [&](std::size_t i) { ++pass.fired[i]; }};
    torch::manual_seed(11);
    const Tensor x = torch::randn({5, 4}).to(parameters.front().dtype()).requires_grad_();
    const Call call = [&](const Tensor& input, const std::function<Tensor(const Tensor&)>& forward) {
        if (!recomputes) return forward(torch::alias(input));
        return recomputed(
            {torch::alias(input)}, [forward](const Tensors& given) { return Tensors{forward(given[0])}; }, {},
            parameters)[0];
    };
    loss(call, x).to(torch::kFloat).backward();
    pass.gradients.push_back(x.grad());
    for (const Tensor& parameter : parameters) {
        pass.gradients.push_back(parameter.grad());
        parameter.mutable_grad().reset();
    }
    return pass;
}
/// Weights with entries of many sizes: sums in another order have other bits.
Tensors uneven_weights(torch::Dtype dtype) {
    torch::manual_seed(10);
    Tensors weights;
    for (int i = 0; i < 2; ++i) {
        const Tensor sizes = torch::pow(10.0, torch::randint(-1, 2, {4, 4}));
        weights.push_back((torch::randn({4, 4}) * sizes / 4).to(dtype).requires_grad_());
    }
    return weights;
}
void expect_the_plain_pass(const std::function<Tensor(const Tensors& weights, const Call&, const Tensor&)>& loss,
                           const std::vector<int>& fired = {1, 1}) {
    for (const torch::Dtype dtype : {torch::kFloat, torch::kBFloat16}) {
        const Tensors weights = uneven_weights(dtype);
        const auto of = [&](const Call& call, const Tensor& x) { return loss(weights, call, x); };
        const Pass plainly = pass_of(false, weights, of);
        const Pass recomputing = pass_of(true, weights, of);
        EXPECT_TRUE(all_same_bits(plainly.gradients, recomputing.gradients)) << dtype;
        EXPECT_EQ(recomputing.fired, fired) << dtype;
    }
}

TEST(Recompute, AParameterOfSeveralCallsHasTheBitsOfPlainCallsAndItsHookFiresOnce) {
    const auto block = [](const Tensors& weights, const Tensor& h) {
        return torch::tanh(h.matmul(weights[0])).matmul(weights[1]) + h;
    };
    const auto times = [&](int calls) {
        return [&, calls](const Tensors& weights, const Call& call, Tensor h) {
            for (int i = 0; i < calls; ++i) h = call(h, [&](const Tensor& y) { return block(weights, y); });
            return h.sum();
        };
    };
    expect_the_plain_pass(times(1));
    expect_the_plain_pass(times(2));
    expect_the_plain_pass(times(3));
    expect_the_plain_pass(times(7));
    expect_the_plain_pass([&](const Tensors& weights, const Call& call, const Tensor& x) {  // side by side
        const auto forward = [&](const Tensor& y) { return block(weights, y); };
        const Tensor chosen = call(x, forward), rejected = call(x.flip(0), forward), third = call(x * 3, forward);
        return (chosen.sigmoid() - rejected.tanh()).sum() + third.square().mean();
    });
}

TEST(Recompute, CallsStandBesideOtherUsesOfTheirParameters) {
    expect_the_plain_pass([](const Tensors& weights, const Call& call, const Tensor& x) {
        const auto first = [&](const Tensor& y) { return y.matmul(weights[0]) + weights[1].sum(); };
        const auto second = [&](const Tensor& y) { return y.matmul(weights[1].t()).tanh().matmul(weights[0]); };
        Tensor h = x.matmul(weights[0]);
        h = call(h, first).tanh();
        h = h.matmul(weights[0]);
        h = call(h, second);
        h = call(h, first);
        return h.matmul(weights[1]).matmul(weights[0]).sum() + weights[0].square().sum();
    });
}

TEST(Recompute, OnlyTheLastCallMayUseAParameterSeveralTimesForTheBitsOfThePlainCalls) {
    expect_the_plain_pass([](const Tensors& weights, const Call& call, const Tensor& x) {
        const auto once = [weights](const Tensor& y) { return y.matmul(weights[0]).tanh().matmul(weights[1]); };
        const auto often = [once](const Tensor& y) { return once(once(once(y))); };
        return call(call(call(x, once), once), often).sum();
    });
}

TEST(Recompute, ACallThatTheLossDoesNotUseIsWaitedForByNobody) {
    int reruns = 0;
    expect_the_plain_pass([&](const Tensors& weights, const Call& call, const Tensor& x) {
        const auto forward = [weights](const Tensor& y) { return y.matmul(weights[0]).tanh() * weights[1].sum(); };
        const Tensor used = call(x, forward);
        const Tensor unused = call(x * 2, [forward, &reruns](const Tensor& y) {
            if (torch::GradMode::is_enabled()) ++reruns;
            return forward(y);
        });
        const torch::NoGradGuard no_grad;
        const Tensor reference = call(x, forward);
        const torch::AutoGradMode grad{true};
        return (used - reference).square().sum() + 0 * unused.detach().sum();
    });
    EXPECT_EQ(reruns, 2) << "of the plain passes";
}

TEST(Recompute, AParameterThatNoCallUsesGetsNone) {
    expect_the_plain_pass(
        [](const Tensors& weights, const Call& call, const Tensor& x) {
            const auto forward = [&](const Tensor& y) { return y.matmul(weights[0]); };
            return call(call(x, forward), forward).sum();
        },
        {1, 1});
}

TEST(Recompute, AfterARerunThatThrowsGradientsGoWhereTheyWent) {
    const Tensor weight = torch::rand({4}).requires_grad_();
    const Tensor x = torch::rand({4}).requires_grad_();
    const Tensor out = recomputed(
        {x},
        [&](const Tensors& given) {
            const Tensor made = given[0] * weight;
            if (torch::GradMode::is_enabled()) throw Error{Errc::no_space, "thrown by the test", "nothing"};
            return Tensors{made};
        },
        {}, Tensors{weight})[0];
    message_of(Errc::no_space, [&] { out.sum().backward(); });
    EXPECT_FALSE(weight.grad().defined());
    (x * weight).sum().backward();
    EXPECT_TRUE(torch::equal(weight.grad(), x.detach()));
}

TEST(Recompute, CallsInCallsPassParametersOn) {
    expect_the_plain_pass([](const Tensors& weights, const Call& call, const Tensor& x) {
        const auto inner = [weights](const Tensor& y) { return y.matmul(weights[0]).sin(); };
        const auto outer = [call, inner, weights](const Tensor& y) { return call(y, inner).matmul(weights[1]); };
        return call(call(x, outer), outer).sum();
    });
}

TEST(Recompute, HooksOfAParameterThatIsNotNamedFireOnceACallAndMayTakeTheGradient) {
    const Tensor own = torch::rand({4}).requires_grad_();
    const Tensor shared = torch::rand({4}).requires_grad_();
    std::vector<std::size_t> fired;
    Tensors sums{torch::zeros({4}), torch::zeros({4})};
    const Tensors parameters{own, shared};
    const strata::zero::detail::GradientHooks hooks{parameters, [&](std::size_t i) {
                                                        const torch::NoGradGuard no_grad;
                                                        fired.push_back(i);
                                                        sums[i] += parameters[i].grad();
                                                        parameters[i].mutable_grad().reset();
                                                    }};
    const Tensor x = torch::rand({4}).requires_grad_();
    for (int pass = 1; pass <= 2; ++pass) {
        Tensors out = again({x}, [&](const Tensors& given) { return Tensors{given[0] * shared * own + own}; });
        out = again(out, [&](const Tensors& given) { return Tensors{given[0] + shared, given[0] * 2}; });
        (out[0] + out[1]).sum().backward();
        EXPECT_EQ(fired.size(), 3u * static_cast<std::size_t>(pass));
    }
    const auto count = std::count(fired.begin(), fired.end(), std::size_t{0});
    EXPECT_EQ(count, 2);
    EXPECT_EQ(fired.front(), 1u) << "the later block comes first";
    const Tensor once_own = 3 * (x * shared + 1).detach();
    const Tensor once_shared = (3 * x * own + 1).detach();
    EXPECT_TRUE(torch::allclose(sums[0], 2 * once_own));
    EXPECT_TRUE(torch::allclose(sums[1], 2 * once_shared));
}

TEST(Recompute, AnInputChangedInPlaceIsNoticed) {
    const Tensor leaf = torch::rand({4}).requires_grad_();
    for (const bool trained : {true, false}) {
        const Tensor x = trained ? leaf * 2 : torch::rand({4});
        int calls = 0;
        const Tensors out = again({leaf, x}, [&](const Tensors& given) {
            ++calls;
            return Tensors{given[0] + given[1]};
        });
        x.detach().add_(1);
        try {
            out[0].sum().backward();
            FAIL() << "backward used a changed input";
        } catch (const c10::Error& error) {
            EXPECT_NE(std::string{error.what()}.find("inplace operation"), std::string::npos) << error.what();
        }
        EXPECT_EQ(calls, 1);
    }
}

TEST(Recompute, AForwardThatChangesItsInputIsRefused) {
    const Tensor x = torch::rand({4});
    const std::string message = message_of(Errc::wrong_call_order, [&] {
        again({torch::rand({4}), x}, [](const Tensors& given) { return Tensors{given[0] + given[1].add_(1)}; });
    });
    EXPECT_NE(message.find("argument 2"), std::string::npos) << message;
    EXPECT_TRUE(torch::GradMode::is_enabled());
}

TEST(Recompute, ExceptionsLeaveForwardAndBackwardAndHarmNothing) {
    const Tensor weight = torch::rand({4}).requires_grad_();
    enum class Where { nowhere, first, before_rerun, rerun } where{};
    const auto throw_at = [&](Where here, Errc code) {
        if (where == here) throw Error{code, "thrown by the test", "nothing"};
    };
    const auto run = [&] {
        const Tensor x = torch::rand({4}).requires_grad_();
        const Tensors out = recomputed(
            {x * 1},
            [&](const Tensors& given) {
                const Tensor dropped = torch::dropout(given[0] * weight, 0.5, true);
                throw_at(torch::GradMode::is_enabled() ? Where::rerun : Where::first, Errc::no_space);
                return Tensors{dropped};
            },
            [&] { throw_at(Where::before_rerun, Errc::io_failed); });
        torch::rand({5});
        (out[0] * weight).sum().backward();
        return x.grad();
    };
    const auto weight_gradient_and_next = [&] {
        weight.mutable_grad().reset();
        torch::manual_seed(8);
        const Tensor x = run();
        return Tensors{x, weight.grad().clone(), torch::rand({3})};
    };
    const Tensors expected = weight_gradient_and_next();
    for (const auto& [place, code] : {std::pair{Where::before_rerun, Errc::io_failed},
                                      {Where::rerun, Errc::no_space},
                                      {Where::first, Errc::no_space}}) {
        where = place;
        torch::manual_seed(8);
        const std::string message = message_of(code, run);
        EXPECT_NE(message.find("thrown by the test"), std::string::npos);
        EXPECT_TRUE(torch::GradMode::is_enabled());
        if (place != Where::first) {
            EXPECT_TRUE(same_bits(torch::rand({3}), expected[2])) << "random numbers go on as without the exception";
        }
        where = Where::nowhere;
        EXPECT_TRUE(all_same_bits(weight_gradient_and_next(), expected));
    }
}

TEST(Recompute, ExceptionsOfHooksLeaveBackward) {
    const Tensor weight = torch::rand({4}).requires_grad_();
    const Tensor x = torch::rand({4}).requires_grad_();
    const Forward forward = [&](const Tensors& given) { return Tensors{given[0] * weight}; };
    {
        const strata::zero::detail::GradientHooks hooks{
            Tensors{weight}, [](std::size_t) {
                throw Error{Errc::rank_failed, "thrown by the test", "nothing"};
            }};
        const Tensor loss = again({x}, forward)[0].sum();
        message_of(Errc::rank_failed, [&] { loss.backward(); });
    }
    weight.mutable_grad().reset();
    again({x}, forward)[0].sum().backward();
    EXPECT_TRUE(same_bits(weight.grad(), x.detach()));
    EXPECT_TRUE(same_bits(x.grad(), weight.detach()));
}

TEST(Recompute, ARerunThatReturnsAnotherNumberOfTensorsIsRefused) {
    const Tensor x = torch::rand({4}).requires_grad_();
    const Tensor loss =
        again({x},
              [&](const Tensors& given) { return Tensors(torch::GradMode::is_enabled() ? 2 : 1, given[0] * 2); })[0]
            .sum();
    const std::string message = message_of(Errc::wrong_call_order, [&] { loss.backward(); });
    EXPECT_NE(message.find("returned 1 tensors"), std::string::npos) << message;
}

TEST(Recompute, GradientsOfChosenTensorsAndHigherOnesAreRefused) {
    const Tensor x = torch::rand({4}).requires_grad_();
    const Tensor weight = torch::rand({4}).requires_grad_();
    const auto loss = [&] {
        return again({x}, [&](const Tensors& given) { return Tensors{given[0] * weight}; })[0].sum();
    };
    std::string message = message_of(Errc::wrong_call_order, [&] { torch::autograd::grad({loss()}, {x}); });
    EXPECT_NE(message.find("chosen tensors"), std::string::npos) << message;
    message = message_of(Errc::wrong_call_order, [&] { loss().backward({}, false, false, Tensors{x}); });
    EXPECT_NE(message.find("chosen tensors"), std::string::npos) << message;
    message = message_of(Errc::wrong_call_order, [&] { loss().backward({}, true, true); });
    EXPECT_NE(message.find("create_graph"), std::string::npos) << message;
    EXPECT_FALSE(weight.grad().defined());
}

}  // namespace
