// The device that tests stand in for a GPU: the CPU's bits, in memory that the host cannot touch.

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include <strata/models/small_flux.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/zero/compute_device.hpp>

#include "../../support/far_device.hpp"

namespace {

namespace far = strata_test::far;
namespace optim = strata::optim;
using strata::bf16;

static_assert(strata::zero::ComputeDevice<far::Device>);

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
    if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
    const at::Tensor x = a.detach().cpu().contiguous();
    const at::Tensor y = b.detach().cpu().contiguous();
    return x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

template <class T>
std::span<T> elements(const at::Tensor& tensor) {
    return {static_cast<T*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel())};
}

at::TensorOptions on_far(at::ScalarType dtype = at::kFloat) {
    return at::TensorOptions{}.dtype(dtype).device(far::device());
}

/// Pictures and words through what models are made of.
struct Net final : torch::nn::Module {
    Net()
        : words(register_module("words", torch::nn::Embedding(11, 16))),
          pictures(
              register_module("pictures", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3).padding(1).stride(2)))),
          group_norm(register_module("group_norm", torch::nn::GroupNorm(4, 16))),
          norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})))),
          qkv(register_module("qkv", torch::nn::Linear(16, 48))),
          out(register_module("out", torch::nn::Linear(16, 5))) {}

    at::Tensor forward(const at::Tensor& ids_BT, const at::Tensor& pictures_BCHW) {
        const at::Tensor seen = group_norm(pictures(pictures_BCHW)).flatten(2).transpose(1, 2);
        const at::Tensor x = norm(at::cat({words(ids_BT), at::gelu(seen, "tanh")}, 1));
        const std::vector<at::Tensor> parts = qkv(x).unflatten(2, {-1, 8}).transpose(1, 2).chunk(3, 1);
        const at::Tensor attended =
            at::matmul(at::softmax(at::matmul(parts[0], parts[1].transpose(2, 3)) / std::sqrt(8.0), -1), parts[2]);
        return out(x + attended.transpose(1, 2).flatten(2));
    }

    at::Tensor loss(const at::Tensor& ids_BT, const at::Tensor& pictures_BCHW) {
        const at::Tensor y = forward(ids_BT, pictures_BCHW).flatten(0, 1);
        return at::cross_entropy_loss(y, at::arange(y.size(0), y.options().dtype(at::kLong)).remainder(5));
    }

    torch::nn::Embedding words;
    torch::nn::Conv2d pictures;
    torch::nn::GroupNorm group_norm;
    torch::nn::LayerNorm norm;
    torch::nn::Linear qkv, out;
};

struct Pair {
    explicit Pair(at::ScalarType dtype = at::kFloat) {
        torch::manual_seed(5);
        near->to(dtype);
        away->to(dtype);
        for (std::size_t i = 0; i < near->parameters().size(); ++i) {
            away->parameters()[i].set_data(near->parameters()[i].detach().clone());
        }
        away->to(far::device());
        ids = at::randint(11, {3, 4}, at::kLong);
        pictures = at::randn({3, 3, 8, 6}).to(dtype);
    }
    std::shared_ptr<Net> near = std::make_shared<Net>();
    std::shared_ptr<Net> away = std::make_shared<Net>();
    at::Tensor ids, pictures;
};

TEST(FarDevice, CopiesBothWaysAndConvertsTypes) {
    const at::Tensor values = at::randn({5, 7}) * 100;
    const at::Tensor away = values.to(far::device());
    EXPECT_EQ(away.device(), far::device());
    EXPECT_TRUE(far::is_far(away.data_ptr()));
    EXPECT_FALSE(far::is_far(values.data_ptr()));
    EXPECT_TRUE(same_bits(away, values));
    for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf, at::kDouble, at::kLong}) {
        EXPECT_TRUE(same_bits(values.to(far::device(), dtype), values.to(dtype))) << dtype;
        EXPECT_TRUE(same_bits(away.to(dtype), values.to(dtype))) << dtype;
        EXPECT_TRUE(same_bits(away.to(at::kCPU, dtype), values.to(dtype))) << dtype;
        EXPECT_EQ(away.to(dtype).device(), far::device());
    }
    at::Tensor turned = at::empty({7, 5}, at::kDouble);
    turned.copy_(away.t(), /*non_blocking=*/true);
    EXPECT_TRUE(same_bits(turned, values.t().to(at::kDouble)));
    EXPECT_TRUE(same_bits(at::zeros({2, 3}, on_far()).copy_(values[0][0]), values[0][0].expand({2, 3})));
}

TEST(FarDevice, TheHostCannotReadOrWriteItsMemory) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const at::Tensor away = at::ones({4}, on_far());
    auto* const address = static_cast<volatile float*>(away.data_ptr());
    EXPECT_DEATH(std::printf("%f", static_cast<double>(address[1])), "");
    EXPECT_DEATH(address[1] = 2.0F, "");
    EXPECT_EQ(far::on_host(elements<float>(away))[1], 1.0F);
}

TEST(FarDevice, AddressesThatAreNotAliveAreRefused) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    std::vector<float> near(4);
    at::Tensor away = at::ones({4}, on_far());
    const std::span<float> memory = elements<float>(away);
    EXPECT_DEATH(far::on_host(near.data()), "not an address of the device");
    EXPECT_DEATH(far::on_host(std::span<float>{memory.data(), 5}), "not to the end");
    const far::Device device;
    EXPECT_DEATH(device.update_average<float>(0.5, near, memory), "not an address of the device");
    away = at::Tensor{};
    EXPECT_DEATH(far::on_host(memory), "far device: not allocated");
}

TEST(FarDevice, MemoryIsCountedReusedAndFilledWithNaN) {
    const std::int64_t before = far::bytes_in_use();
    far::reset_peak();
    at::Tensor a = at::empty({1000}, on_far());
    at::Tensor b = at::empty({3}, on_far(at::kByte));
    void* const address = a.data_ptr();
    EXPECT_EQ(far::bytes_in_use() - before, 4003);
    EXPECT_TRUE(a.isnan().all().item<bool>());
    a.zero_();
    a = at::Tensor{};
    EXPECT_EQ(far::bytes_in_use() - before, 3);
    EXPECT_GE(far::peak_bytes() - before, 4003);
    a = at::empty({1000}, on_far());
    EXPECT_EQ(a.data_ptr(), address);
    EXPECT_TRUE(a.isnan().all().item<bool>());
    EXPECT_THROW(at::empty({std::int64_t{1} << 31}, on_far(at::kByte)), c10::Error);
    EXPECT_EQ(far::Device{}.free_memory(), (std::uint64_t{1} << 30) - static_cast<std::uint64_t>(far::bytes_in_use()));
}

TEST(FarDevice, AModelComputesTheBitsOfTheCpu) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
        const Pair pair{dtype};
        const at::Tensor near = pair.near->forward(pair.ids, pair.pictures);
        const at::Tensor away = pair.away->forward(pair.ids.to(far::device()), pair.pictures.to(far::device()));
        EXPECT_EQ(away.device(), far::device());
        EXPECT_TRUE(same_bits(near, away)) << dtype;
    }
}

TEST(FarDevice, BackwardGivesAndAccumulatesTheGradientsOfTheCpu) {
    const Pair pair;
    for (int pass = 0; pass < 3; ++pass) {
        pair.near->loss(pair.ids, pair.pictures).backward();
        pair.away->loss(pair.ids.to(far::device()), pair.pictures.to(far::device())).backward();
        const auto away = pair.away->named_parameters();
        for (const auto& item : pair.near->named_parameters()) {
            EXPECT_EQ(away[item.key()].grad().device(), far::device());
            EXPECT_TRUE(same_bits(item.value().grad(), away[item.key()].grad())) << item.key() << ", pass " << pass;
        }
    }
}

TEST(FarDevice, HooksOfLeavesSeeFinalGradientsAndMayMoveThem) {
    const Pair pair;
    pair.near->loss(pair.ids, pair.pictures).backward();
    // As an engine does: every gradient goes into one flat tensor as soon as it is there.
    std::vector<at::Tensor> leaves = pair.away->parameters();
    std::int64_t total = 0;
    for (const at::Tensor& leaf : leaves) total += leaf.numel();
    const at::Tensor flat = at::zeros({total}, on_far());
    using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<at::Tensor>()));
    std::vector<Accumulator> accumulators;
    std::int64_t offset = 0;
    for (const at::Tensor& leaf : leaves) {
        accumulators.push_back(torch::autograd::impl::grad_accumulator(leaf));
        const at::Tensor place = flat.narrow(0, offset, leaf.numel());
        accumulators.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [leaf, place](const torch::autograd::variable_list& out, const torch::autograd::variable_list&) {
                const at::NoGradGuard no_gradients;
                place.copy_(leaf.grad().view(-1));
                leaf.mutable_grad() = at::Tensor{};
                return out;
            }));
        offset += leaf.numel();
    }
    pair.away->loss(pair.ids.to(far::device()), pair.pictures.to(far::device())).backward();
    std::vector<at::Tensor> expected;
    for (const at::Tensor& parameter : pair.near->parameters()) expected.push_back(parameter.grad().view(-1));
    EXPECT_TRUE(same_bits(flat, at::cat(expected)));
    for (const at::Tensor& leaf : leaves) EXPECT_FALSE(leaf.grad().defined());
}

TEST(FarDevice, ViewsShareMemoryAndParametersMayBeViews) {
    const at::Tensor flat = at::zeros({4, 6}, on_far());
    flat.narrow(1, 2, 3).copy_(at::ones({4, 3}));
    flat.view(-1).narrow(0, 6, 12).add_(1.5);
    flat.t()[2].zero_();
    at::Tensor expected = at::zeros({4, 6});
    expected.narrow(1, 2, 3).fill_(1);
    expected.view(-1).narrow(0, 6, 12).add_(1.5);
    expected.t()[2].zero_();
    EXPECT_TRUE(same_bits(flat, expected));
    EXPECT_EQ(flat.t().data_ptr(), flat.data_ptr());
    EXPECT_EQ(flat.expand({3, 4, 6}).unbind(0)[2].data_ptr(), flat.data_ptr());

    torch::nn::Linear layer{3, 2};
    const at::Tensor weights = at::randn({8}, on_far());
    layer->weight.set_data(weights.narrow(0, 0, 6).view({2, 3}));
    layer->bias.set_data(weights.narrow(0, 6, 2));
    layer(at::ones({1, 3}, on_far())).sum().backward();
    EXPECT_TRUE(same_bits(layer->weight.grad(), at::ones({2, 3})));
    {
        const at::NoGradGuard no_gradients;
        layer->bias.sub_(layer->bias.grad());
    }
    EXPECT_TRUE(same_bits(weights.narrow(0, 6, 2), layer->bias));
}

TEST(FarDevice, AStorageLosesItsMemoryAndGetsAnother) {
    at::Tensor flat = at::arange(8, on_far());
    const at::Tensor view = flat.narrow(0, 4, 4);
    auto* const storage = flat.storage().unsafeGetStorageImpl();
    const std::int64_t with = far::bytes_in_use();
    storage->set_data_ptr_noswap(at::DataPtr{nullptr, storage->device()});
    storage->set_nbytes(0);
    EXPECT_EQ(with - far::bytes_in_use(), 32);
    EXPECT_THROW((view + 1).cpu(), c10::Error);
    storage->set_data_ptr_noswap(storage->allocator()->allocate(32));
    storage->set_nbytes(32);
    EXPECT_TRUE(view.isnan().all().item<bool>());
    flat.copy_(at::arange(8, at::kFloat));
    EXPECT_TRUE(same_bits(view, at::arange(4, 8, at::kFloat)));
}

TEST(FarDevice, TensorsMayBeMadeOverItsMemory) {
    at::DataPtr memory = c10::GetAllocator(far::device().type())->allocate(24);
    at::Tensor over = at::for_blob(memory.get(), {2, 3}).options(on_far()).target_device(far::device()).make_tensor();
    over.copy_(at::ones({2, 3}));
    EXPECT_EQ(over.sum().item<float>(), 6.0F);
    EXPECT_EQ(far::on_host(static_cast<float*>(memory.get()))[5], 1.0F);
}

TEST(FarDevice, HalfWidthTypesComputeTheBitsOfTheCpu) {
    const at::Tensor a = at::randn({6, 32}).to(at::kBFloat16);
    const at::Tensor b = at::randn({32, 16}).to(at::kBFloat16);
    const auto run = [](const at::Tensor& x_, const at::Tensor& y_) {
        const at::Tensor x = x_.detach().requires_grad_();
        const at::Tensor y = y_.detach().requires_grad_();
        at::silu(at::matmul(x, y)).to(at::kFloat).square().mean().backward();
        return std::pair{x.grad(), y.grad()};
    };
    const auto [near_a, near_b] = run(a, b);
    const auto [far_a, far_b] = run(a.to(far::device()), b.to(far::device()));
    EXPECT_EQ(far_a.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(same_bits(near_a, far_a) && same_bits(near_b, far_b));
    EXPECT_TRUE(same_bits(a.to(far::device()).to(at::kHalf).mul_(3), a.to(at::kHalf).mul_(3)));
}

TEST(FarDevice, OutputsGrowAndListsAndIndicesWork) {
    const at::Tensor near = at::randn({4, 5});
    const at::Tensor away = near.to(far::device());
    at::Tensor out = at::empty({0}, on_far());
    at::add_out(out, away, away, 2);
    EXPECT_TRUE(same_bits(out, near + 2 * near));
    out.resize_({30}).narrow(0, 20, 10).zero_();
    EXPECT_TRUE(same_bits(out.narrow(0, 0, 20).view({4, 5}), near + 2 * near));
    out.set_(away);
    EXPECT_EQ(out.data_ptr(), away.data_ptr());

    EXPECT_TRUE(same_bits(at::cat({away, away.narrow(0, 1, 2)}), at::cat({near, near.narrow(0, 1, 2)})));
    const auto [values, places] = away.topk(2, 1);
    EXPECT_TRUE(same_bits(values, std::get<0>(near.topk(2, 1))) && same_bits(places, std::get<1>(near.topk(2, 1))));
    const at::Tensor rows = at::tensor({3, 0}, at::kLong);
    EXPECT_TRUE(same_bits(away.index({rows.to(far::device())}), near.index({rows})));
    EXPECT_TRUE(same_bits(away.index({at::indexing::Slice(), rows}), near.index({at::indexing::Slice(), rows})));
    EXPECT_TRUE(same_bits(away.clone().index_put_({rows}, at::zeros({2, 5}, on_far())),
                          near.clone().index_put_({rows}, at::zeros({2, 5}))));
    EXPECT_TRUE(at::equal(away, away.clone()));
    EXPECT_EQ(at::ones({3}, on_far()).sum().item<double>(), 3.0);
}

TEST(FarDevice, TensorsOfTwoDevicesDoNotMix) {
    at::Tensor near = at::ones({3});
    at::Tensor away = at::ones({3}, on_far());
    EXPECT_THROW(near + away, c10::Error);
    EXPECT_THROW(away + near, c10::Error);
    EXPECT_THROW(away.mul_(near), c10::Error);
    EXPECT_THROW(at::cat({near, away}), c10::Error);
    EXPECT_THROW(near.sum().add_(away.sum()), c10::Error);
    EXPECT_THROW(away.index_select(0, at::tensor({1}, at::kLong)), c10::Error);
    EXPECT_TRUE(same_bits(away * near.sum() + 1, at::full({3}, 4.0F)));
}

TEST(FarDevice, RandomNumbersAreThoseOfTheCpu) {
    const auto draw = [](at::Device where) {
        torch::manual_seed(9);
        const at::Tensor x = at::randn({64}, at::TensorOptions{}.device(where));
        const at::Tensor u = at::empty_like(x).uniform_();
        const at::Tensor p = at::randperm(10, at::TensorOptions{}.dtype(at::kLong).device(where));
        return std::vector{x, u, at::bernoulli(u), p};
    };
    const auto near = draw(at::kCPU);
    const auto away = draw(far::device());
    for (std::size_t i = 0; i < near.size(); ++i) EXPECT_TRUE(same_bits(near[i], away[i])) << i;
    EXPECT_THROW(at::randn({2}, at::detail::createCPUGenerator(), on_far()), c10::Error);
    // Dropout is another operation for devices than for the CPU, with the same numbers behind it.
    torch::manual_seed(10);
    const at::Tensor kept = at::dropout(at::ones({100}), 0.25, true);
    torch::manual_seed(10);
    EXPECT_TRUE(at::allclose(at::dropout(at::ones({100}, on_far()), 0.25, true).cpu(), kept));
}

TEST(FarDevice, StreamsAndEventsAreThere) {
    const c10::impl::VirtualGuardImpl guard{far::device().type()};
    const c10::Stream before = guard.getStream(far::device());
    const c10::Stream own = guard.getStreamFromGlobalPool(far::device());
    EXPECT_NE(before, own);
    const at::Tensor x = at::ones({2}, on_far());
    {
        const c10::StreamGuard on_own{own};
        EXPECT_EQ(guard.getStream(far::device()), own);
        c10::Event event{far::device().type()};
        EXPECT_TRUE(event.query());
        event.record(own);
        event.block(before);
        EXPECT_TRUE(event.query());
        x.record_stream(own);
        std::thread{[&] { EXPECT_NE(guard.getStream(far::device()), own); }}.join();
    }
    EXPECT_EQ(guard.getStream(far::device()), before);
}

TEST(FarDevice, ThreadsWorkSideBySide) {
    std::vector<float> sums(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        threads.emplace_back([&sums, i] {
            at::Tensor x = at::full({257}, static_cast<float>(i), on_far());
            for (int k = 0; k < 200; ++k) x = at::cat({x, x}).narrow(0, k % 3, 257).clone() + 1;
            sums[i] = x.sum().item<float>();
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], 257 * (200 + static_cast<float>(i)));
}

TEST(FarDevice, KernelsGiveTheBitsOfTheCpu) {
    const far::Device device;
    const std::int64_t N = 70000;  // more than one chunk
    torch::manual_seed(4);
    const at::Tensor gradient = at::randn({N});
    const auto scalars = strata::AdamW::scalars({}, 1e-2, 1);
    const optim::StochasticRounding rounding{.seed = 3, .step = 1, .first_element = 17};
    const auto run = [&]<class W>(W, const auto& update, at::Device where, at::ScalarType dtype) {
        std::vector<at::Tensor> t{at::linspace(-1, 1, N).to(dtype), at::zeros({N}, dtype), at::zeros({N}, dtype),
                                  at::zeros({N}, at::kBFloat16), gradient};
        for (at::Tensor& tensor : t) tensor = tensor.to(where);
        update(std::span<const float>{elements<float>(t[4])}, elements<W>(t[0]),
               std::array{elements<W>(t[1]), elements<W>(t[2])}, elements<bf16>(t[3]));
        return t;
    };
    const auto expect_same = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
        for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i], b[i])) << i;
    };
    const auto near = [&]<class W>(std::span<const float> g, std::span<W> w, const std::array<std::span<W>, 2>& s,
                                   std::span<bf16> copy) {
        if constexpr (std::same_as<W, float>)
            optim::update<strata::AdamW>(scalars, {0.5F}, g, w, s, copy);
        else
            optim::update<strata::AdamW>(scalars, {0.5F}, g, w, s, rounding);
    };
    const auto away = [&]<class W>(std::span<const float> g, std::span<W> w, const std::array<std::span<W>, 2>& s,
                                   std::span<bf16> copy) {
        device.update<strata::AdamW>(scalars, {0.5F}, g, w, s, copy, rounding);
    };
    const auto near_floats = run(float{}, near, at::kCPU, at::kFloat);
    const auto away_floats = run(float{}, away, far::device(), at::kFloat);
    expect_same(near_floats, away_floats);
    EXPECT_FALSE(same_bits(near_floats[3], at::zeros({N}, at::kBFloat16)));
    expect_same(run(bf16{}, near, at::kCPU, at::kBFloat16), run(bf16{}, away, far::device(), at::kBFloat16));

    const at::Tensor sum = at::zeros({1}, on_far(at::kDouble));
    device.sum_of_squares(std::span<const float>{elements<float>(away_floats[0])},
                          static_cast<double*>(sum.data_ptr()));
    EXPECT_EQ(sum.item<double>(), optim::sum_of_squares(std::span<const float>{elements<float>(near_floats[0])}));

    const at::Tensor near_average = at::zeros({N});
    const at::Tensor average = at::zeros({N}, on_far());
    optim::update_average(0.9, std::span<const float>{elements<float>(near_floats[0])}, elements<float>(near_average));
    device.update_average(0.9, std::span<const float>{elements<float>(away_floats[0])}, elements<float>(average));
    EXPECT_TRUE(same_bits(near_average, average));
}

TEST(FarDevice, KernelsWithNormsGiveTheBitsOfTheCpu) {
    const far::Device device;
    torch::manual_seed(6);
    const at::Tensor gradient = at::randn({100});
    const std::array segments{optim::Segment{0, 60, 0}, optim::Segment{60, 40, 1}};
    const auto scalars = strata::Lamb::scalars({}, 1e-2, 1);
    std::vector<at::Tensor> near{at::linspace(-1, 1, 100), at::zeros({100}), at::zeros({100}), gradient};
    std::vector<at::Tensor> away;
    for (const at::Tensor& tensor : near) away.push_back(tensor.to(far::device()));
    const auto of = [](const std::vector<at::Tensor>& t, std::size_t i) { return elements<float>(t[i]); };
    using Floats = std::span<const float>;

    std::vector<optim::NormSquares> norms(2);
    optim::advance<strata::Lamb>(scalars, {}, Floats{of(near, 3)}, Floats{of(near, 0)}, {of(near, 1), of(near, 2)},
                                 segments, norms);
    const std::vector<float> ratios = optim::trust_ratios<strata::Lamb>({}, norms);
    optim::apply_direction<strata::Lamb>(scalars, of(near, 0), {of(near, 1), of(near, 2)}, segments, Floats{ratios});

    const at::Tensor far_norms = at::zeros({4}, on_far(at::kDouble));
    const std::span<optim::NormSquares> norm_span{static_cast<optim::NormSquares*>(far_norms.data_ptr()), 2};
    const std::array states{of(away, 1), of(away, 2)};
    device.advance<strata::Lamb>(scalars, {}, Floats{of(away, 3)}, Floats{of(away, 0)}, states,
                                 std::span<const optim::Segment>{segments}, norm_span, {});
    const at::Tensor host_norms = far_norms.cpu();
    EXPECT_EQ(host_norms[0].item<double>(), norms[0].weight);
    EXPECT_EQ(host_norms[3].item<double>(), norms[1].direction);
    device.apply_direction<strata::Lamb>(scalars, of(away, 0), states, std::span<const optim::Segment>{segments},
                                         Floats{ratios}, std::span<bf16>{}, {});
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(near[i], away[i])) << i;
}

TEST(FarDevice, WhatIsAskedOfItIsCounted) {
    const far::Device device;
    const far::Counts before = far::counts();
    {
        const far::Device::Operation operation{device};
        const auto fence = device.fence();
        fence.wait();
        fence.wait();
        device.finish();
    }
    std::vector<std::byte> memory(100);
    const auto pinning = device.pinning();
    pinning.pin(memory);
    const far::Counts after = far::counts();
    pinning.unpin(memory);
    EXPECT_EQ(after.operations - before.operations, 1);
    EXPECT_EQ(after.fences - before.fences, 1);
    EXPECT_EQ(after.waits - before.waits, 2);
    EXPECT_EQ(after.finishes - before.finishes, 1);
    EXPECT_EQ(after.pinned_bytes - before.pinned_bytes, 100);
    EXPECT_EQ(far::counts().pinned_bytes, before.pinned_bytes);
}

/// In fp64 the CPU runs the composed operations too, and the bits are the same; in fp32 and bf16 it runs its own
/// kernels.
TEST(FarDevice, SmallFluxTrainsThere) {
    using strata::models::SmallFlux;
    strata::models::SmallFluxOptions options;
    options.latent_channels = 4;
    options.text_width = 32;
    options.heads = 2;
    options.rotary_axes = {4, 6, 6};
    options.double_blocks = 1;
    options.single_blocks = 1;
    for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 0.0}, {at::kFloat, 1e-4}, {at::kBFloat16, 0.1}}) {
        std::vector<std::vector<at::Tensor>> results;
        for (const at::Device where : {at::Device{at::kCPU}, far::device()}) {
            torch::manual_seed(1);
            SmallFlux model{options};
            for (at::Tensor& parameter : model.parameters()) {
                parameter.set_data((parameter.detach() + at::randn_like(parameter) * 0.05).to(dtype));
            }
            model.to(where);
            const at::ScalarType given = dtype == at::kDouble ? at::kDouble : at::kFloat;
            SmallFlux::Batch batch;
            batch.latents_BCHW = at::randn({2, 4, 6, 4}).to(where, given);
            batch.text_BTE = at::randn({2, 3, 32}).to(where, given);
            batch.pooled_BE = at::randn({2, 32}).to(where, given);
            const at::Tensor loss = model.loss(batch);
            EXPECT_EQ(loss.device(), where);
            loss.backward();
            results.push_back({loss});
            for (const at::Tensor& parameter : model.parameters()) results.back().push_back(parameter.grad());
        }
        for (std::size_t i = 0; i < results[0].size(); ++i) {
            const at::Tensor near = results[0][i].to(at::kDouble);
            const double error = (near - results[1][i].cpu().to(at::kDouble)).norm().item<double>();
            EXPECT_LE(error, tolerance * near.norm().item<double>()) << dtype << ", result " << i;
        }
    }
}

}  // namespace
