// The parts of an engine, each alone: what they say of one rank of several, over an exchange that writes down what it is asked.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/self_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/options/ema_options.hpp>
#include <strata/policy/ema.hpp>
#include <strata/policy/precision.hpp>
#include <strata/testing/average_conformance.hpp>
#include <strata/zero/averages/ema.hpp>
#include <strata/zero/parts/average_swap.hpp>
#include <strata/zero/parts/backward_update.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>
#include <strata/zero/parts/gradient_view.hpp>
#include <strata/zero/parts/memory_plan.hpp>
#include <strata/zero/parts/shard_store.hpp>
#include <strata/zero/parts/sharded_average.hpp>
#include <strata/zero/parts/state_pass.hpp>
#include <strata/zero/parts/state_transfer.hpp>
#include <strata/zero/parts/take_over.hpp>
#include <strata/zero/parts/weight_gathering.hpp>
#include <strata/zero/tiers/cpu.hpp>
#include <strata/zero/tiers/device.hpp>

#include "../../mpi/toy_model.hpp"

namespace {

using namespace strata;
using namespace strata::zero;

/// Rank `rank` of `world`, whose others have nothing: sums are its own, and what the others would give stays as it is.
class Lonely final : public Exchange {
public:
    explicit Lonely(int world = 1, int rank = 0) : Exchange{rank, world} {}
    void broadcast(const at::Tensor&) override { said.push_back("broadcast"); }
    void all_gather(const at::Tensor& mine, const at::Tensor& all) override {
        said.push_back("all_gather " + std::to_string(all.numel()));
        at::Tensor own = all.narrow(0, mine.numel() * rank(), mine.numel());
        if (own.data_ptr() != mine.data_ptr()) own.copy_(mine);
    }
    void reduce_scatter(const at::Tensor& all, const at::Tensor& mine) override {
        said.push_back("reduce_scatter " + std::to_string(all.numel()));
        const at::Tensor own = all.narrow(0, mine.numel() * rank(), mine.numel());
        if (own.data_ptr() != mine.data_ptr()) at::Tensor{mine}.copy_(own);
    }
    void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override {
        for (int r = 0; r < world(); ++r)
            std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(mine.size()) * r);
    }
    [[nodiscard]] std::vector<std::string> all_gather_texts(std::string_view mine) override {
        return {std::string{mine}};
    }
    comm::Ticket post(std::string_view name, std::function<void()> work) override {
        said.push_back("post " + std::string{name});
        work();
        return {};
    }
    void wait() override {}
    void close() noexcept override {}

    std::vector<std::string> said;
    [[nodiscard]] std::size_t count(std::string_view what) const {
        std::size_t found = 0;
        for (const std::string& line : said) found += line.starts_with(what) ? 1 : 0;
        return found;
    }
};

/// Two parameters outside of units (6 and 5 elements), and one of 7 in unit 0.
std::vector<Parameter> parameters() {
    std::vector<Parameter> made;
    const std::int64_t sizes[] = {6, 5, 7};
    for (int i = 0; i < 3; ++i)
        made.push_back({"p" + std::to_string(i), torch::arange(sizes[i], torch::kFloat).add(10 * i).requires_grad_(),
                        i == 2 ? 0 : -1});
    return made;
}

struct Model {
    explicit Model(Buckets::Options options, std::vector<std::size_t> groups = {0, 0, 0})
        : buckets{trained, groups, options} {}
    std::vector<Parameter> trained = parameters();
    std::vector<Parameter> frozen;
    std::shared_ptr<strata::zero::detail::BufferPool> pool = std::make_shared<strata::zero::detail::BufferPool>();
    Buckets buckets;
};

// ---- Buckets --------------------------------------------------------------------------------------------------------

TEST(Parts, BucketsShareOutElementsAndPadding) {
    const Model model{{.bucket_numel = 100, .shards_units = true, .rank = 2, .world = 4}};
    const Buckets& buckets = model.buckets;
    ASSERT_EQ(buckets.size(), 2U) << "a unit is a bucket of its own";
    EXPECT_EQ(buckets.share_of(0), 3) << "11 elements over 4 ranks";
    EXPECT_EQ(buckets.padded_of(0), 12);
    EXPECT_EQ(buckets.own(0), (ElementRun{6, 3}));
    EXPECT_EQ(buckets.part_of(0), 3);
    EXPECT_EQ(buckets.part_of(7), 0) << "there is no such bucket";
    EXPECT_EQ(buckets.place_in_bucket(0, 1), 7);
    EXPECT_FALSE(buckets[0].sharded);
    EXPECT_TRUE(buckets[1].sharded);
    EXPECT_EQ(buckets.part_numels(), (std::vector<std::int64_t>{3, 2}));
    EXPECT_EQ(buckets.shard_numels(), (std::vector<std::int64_t>{2}));
    EXPECT_EQ(buckets.parameter_piece(0, 0, 3).numel, 0) << "p0 ends before this rank's share";
    EXPECT_EQ(buckets.parameter_piece(1, 0, 3), (ElementRun{0, 3}));
}

TEST(Parts, BucketsWithoutShardedStateARankHasAllOfIt) {
    const Model model{{.bucket_numel = 100, .replicates_state = true, .rank = 1, .world = 4}};
    EXPECT_EQ(model.buckets.part_of(0), 12);
    EXPECT_EQ(model.buckets.place_in_bucket(0, 5), 5);
    EXPECT_EQ(model.buckets.own(0), (ElementRun{3, 3}));
}

TEST(Parts, BucketsCutRunsWhereGroupsMeetAndPaddingGoesWithTheLast) {
    const Model model{{.bucket_numel = 100, .rank = 0, .world = 1}, {0, 1, 0}};
    const auto pieces = model.buckets.group_pieces(0, 0, 11);
    ASSERT_EQ(pieces.size(), 2U);
    EXPECT_EQ(pieces[0].group, 0U);
    EXPECT_EQ(pieces[0].numel, 6);
    EXPECT_EQ(pieces[1].group, 1U);
    EXPECT_EQ(pieces[1].begin, 6);
    EXPECT_EQ(pieces[1].numel, 5);
    const Model padded{{.bucket_numel = 100, .rank = 3, .world = 4}, {0, 1, 0}};
    const auto last = padded.buckets.group_pieces(0, 0, 3);
    ASSERT_EQ(last.size(), 1U);
    EXPECT_EQ(last[0].group, 1U);
    EXPECT_EQ(last[0].numel, 3) << "elements 9 and 10, and one of padding";
}

TEST(Parts, BucketsAParameterThatWasFrozenOrMovedIsNamed) {
    Model model{{.bucket_numel = 100}};
    Lonely exchange;
    ShardsOf<Device::shards<float>, float> shards{*model.pool};
    TakeOver take_over{exchange, *model.pool, model.buckets, shards, model.trained, model.frozen, {}};
    for (std::size_t i = 0; i < model.buckets.size(); ++i) (void)take_over.take_bucket(i);
    EXPECT_NO_THROW(model.buckets.check_parameters_stayed());
    model.trained[1].tensor.requires_grad_(false);
    EXPECT_NE(strata_test::error_of([&] { model.buckets.check_parameters_stayed(); }).problem().find("p1 was frozen"),
              std::string::npos);
    model.trained[1].tensor.requires_grad_(true).set_data(torch::zeros({5}));
    EXPECT_NE(strata_test::error_of([&] { model.buckets.check_parameters_stayed(); })
                  .problem()
                  .find("p1 was converted or moved"),
              std::string::npos);
}

// ---- GradientReduction ----------------------------------------------------------------------------------------------

/// What a backward pass does: every parameter but those left out gets `value` as its gradient, the last one first.
void backward(GradientReduction& gradients, Model& model, float value, std::size_t left_out = 99) {
    gradients.begin_pass();
    for (std::size_t i = model.trained.size(); i-- > 0;) {
        if (i == left_out) continue;
        model.trained[i].tensor.mutable_grad() = torch::full_like(model.trained[i].tensor, value);
        gradients.arrived(i);
    }
    gradients.end_pass();
    gradients.count_pass();
}
std::vector<float> sum_of(GradientReduction& gradients, std::size_t bucket) {
    const at::Tensor sum = gradients.open_sum(bucket, offload::Access::read).to(torch::kFloat).contiguous();
    std::vector<float> values{sum.data_ptr<float>(), sum.data_ptr<float>() + sum.numel()};
    gradients.close_sum(bucket, offload::Access::read);
    return values;
}

struct Reduced {
    explicit Reduced(GradientReduction::Options options, int world = 1, ShardStore* tier = nullptr)
        : model{{.bucket_numel = 100, .rank = 0, .world = world}}, exchange{world}, gradients{exchange,
                                                                                              *model.pool,
                                                                                              model.buckets,
                                                                                              options,
                                                                                              tier,
                                                                                              &failure} {
        if (tier != nullptr)
            tier->make({*model.pool, nullptr, "gradients", MemoryKind::gradients, {}}, model.buckets.share_numels());
        for (std::size_t i = 0; i < model.buckets.size(); ++i) {
            model.buckets[i].weight_B = torch::zeros({model.buckets.padded_of(i)});
            gradients.take(i);
        }
    }
    Model model;
    Lonely exchange;
    LocalFailure failure{true};
    GradientReduction gradients;
};

TEST(Parts, GradientReductionBucketsAreReducedTheLastOneFirstAndMissingGradientsAreZero) {
    Reduced r{{.sharded = true}, 2};
    backward(r.gradients, r.model, 2.0F, 1);
    EXPECT_EQ(r.exchange.said,
              (std::vector<std::string>{"post gradients", "reduce_scatter 8", "post gradients", "reduce_scatter 12"}));
    EXPECT_EQ(sum_of(r.gradients, 0), (std::vector<float>{2, 2, 2, 2, 2, 2})) << "p0, whole in this rank's share";
    EXPECT_EQ(sum_of(r.gradients, 1), (std::vector<float>{2, 2, 2, 2}));
    EXPECT_EQ(r.model.pool->meter().of(MemoryKind::gradients, Place::device).now, 10 * 4) << "whole gradients are gone";
}

TEST(Parts, GradientReductionAParameterThatIsDoneWithoutAGradientCountsAsZero) {
    Reduced r{{.sharded = true}};
    r.gradients.begin_pass();
    r.model.trained[2].tensor.mutable_grad() = torch::ones_like(r.model.trained[2].tensor);
    r.gradients.arrived(2);
    r.model.trained[1].tensor.mutable_grad() = torch::ones_like(r.model.trained[1].tensor);
    r.gradients.arrived(1);
    EXPECT_EQ(r.exchange.count("reduce_scatter"), 1U);
    EXPECT_TRUE(r.gradients.arrived(0)) << "and its bucket is complete";
    EXPECT_EQ(r.exchange.count("reduce_scatter"), 2U) << "before the pass ends";
    r.gradients.end_pass();
    EXPECT_EQ(sum_of(r.gradients, 0), (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}));
}

TEST(Parts, GradientReductionMicroBatchesAddUpInFp32) {
    Reduced r{{.dtype = at::kBFloat16, .sharded = true, .micro_batches = 2}};
    backward(r.gradients, r.model, 1.0F);
    backward(r.gradients, r.model, 0.00390625F);  // bf16 has no 1.00390625
    EXPECT_EQ(r.gradients.sum_dtype(0), at::kFloat);
    EXPECT_EQ(sum_of(r.gradients, 0).front(), 1.00390625F);
}

TEST(Parts, GradientReductionOnceAStepExchangesOnceAndAddsUpTheSame) {
    const auto sums = [](bool once, std::size_t* exchanges) {
        Reduced r{{.once_a_step = once, .micro_batches = 4}, 2};
        for (int pass = 0; pass < 4; ++pass)
            backward(r.gradients, r.model, static_cast<float>(pass + 1), pass == 2 ? 1 : 99);
        *exchanges = r.exchange.count("reduce_scatter");
        return sum_of(r.gradients, 0);
    };
    std::size_t often = 0;
    std::size_t once = 0;
    EXPECT_EQ(sums(false, &often), sums(true, &once));
    EXPECT_EQ(often, 8U) << "2 buckets, 4 micro-batches";
    EXPECT_EQ(once, 2U);
}

TEST(Parts, GradientReductionAPassThatThrewSpoilsTheMicroBatchesBeforeIt) {
    Reduced r{{.micro_batches = 2}};
    r.gradients.begin_pass();
    r.gradients.fail_pass(true, true);
    EXPECT_FALSE(r.gradients.spoiled()) << "the first micro-batch begins anew by itself";
    backward(r.gradients, r.model, 1.0F);
    r.gradients.begin_pass();
    r.gradients.fail_pass(false, true);
    EXPECT_FALSE(r.gradients.spoiled()) << "no gradient had arrived";
    r.gradients.begin_pass();
    r.gradients.fail_pass(true, true);
    EXPECT_TRUE(r.gradients.spoiled());
    r.gradients.start_step();
    EXPECT_FALSE(r.gradients.spoiled());
    EXPECT_EQ(r.gradients.passes(), 0);
}

TEST(Parts, GradientReductionOfSeveralRanksOneWhosePassThrewDoesItsPartAndCountsIt) {
    Reduced r{{.once_a_step = true, .micro_batches = 2}, 2};
    r.gradients.begin_pass();
    r.gradients.fail_pass(true, true);
    EXPECT_TRUE(r.gradients.spoiled());
    EXPECT_EQ(r.gradients.passes(), 1);
    EXPECT_EQ(r.exchange.count("reduce_scatter"), 0U) << "the others reduce in the last pass";
    backward(r.gradients, r.model, 1.0F);
    EXPECT_EQ(r.exchange.count("reduce_scatter"), 2U);
}

TEST(Parts, GradientReductionWhoIsToldDecidesWhenABucketIsReduced) {
    Reduced r{{.sharded = true}};
    std::vector<std::size_t> offered;
    r.gradients.reduce_when_told([&](std::size_t bucket) { offered.push_back(bucket); });
    r.gradients.begin_pass();
    for (const std::size_t i : {2U, 1U}) {
        r.model.trained[i].tensor.mutable_grad() = torch::ones_like(r.model.trained[i].tensor);
        r.gradients.arrived(i);
    }
    EXPECT_EQ(offered, (std::vector<std::size_t>{1})) << "bucket 0 waits for p0";
    EXPECT_EQ(r.exchange.count("reduce_scatter"), 0U);
    r.gradients.prepare_rest();
    r.gradients.reduce(0);
    EXPECT_EQ(sum_of(r.gradients, 0), (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}));
}

/// Shards that notice which are open, and fail when they are told to.
class Shelf final : public ShardStore {
public:
    [[nodiscard]] at::Tensor open(std::size_t shard, offload::Access access) override {
        if (shard == fails_at) throw Error{Errc::io_failed, "the shelf is gone", "look for it"};
        EXPECT_EQ(open_, none) << "one at a time";
        open_ = shard;
        if (access == offload::Access::write) shards_[shard].fill_(-7.0F);  // undefined at first
        return shards_[shard];
    }
    void close(std::size_t shard, offload::Access access) override {
        EXPECT_EQ(open_, shard);
        open_ = none;
        if (access != offload::Access::read) said.push_back("write " + std::to_string(shard));
    }
    void read_ahead(std::size_t shard, offload::Access) override { said.push_back("ahead " + std::to_string(shard)); }
    [[nodiscard]] std::size_t count() const override { return shards_.size(); }
    [[nodiscard]] std::size_t reads_ahead() const override { return 3; }
    [[nodiscard]] Place memory_of(std::size_t) const override { return Place::host; }
    [[nodiscard]] PlaceBytes bytes(std::span<const std::int64_t>) const override { return {}; }
    [[nodiscard]] TierBytes takes(std::span<const std::int64_t>, const TierRoom&) const override { return {}; }
    void make(const TierContext&, std::span<const std::int64_t> numels) override {
        for (const std::int64_t numel : numels) shards_.push_back(torch::empty({numel}));
    }
    static constexpr std::size_t none = 99;
    std::size_t fails_at = none;
    std::vector<std::string> said;

private:
    std::vector<at::Tensor> shards_;
    std::size_t open_ = none;
};

TEST(Parts, GradientReductionATierHasTheSumsAndTheDeviceNothing) {
    Shelf shelf;
    Reduced r{{.sharded = true, .sums_on_tier = true, .micro_batches = 2}, 2, &shelf};
    EXPECT_EQ(r.model.pool->meter().of(MemoryKind::gradients, Place::device).now, 0);
    backward(r.gradients, r.model, 1.0F);
    backward(r.gradients, r.model, 2.0F, 0);
    EXPECT_EQ(r.model.pool->meter().of(MemoryKind::gradients, Place::device).now, 0);
    EXPECT_EQ(shelf.said, (std::vector<std::string>{"write 1", "write 0", "write 1", "write 0"}));
    EXPECT_EQ(sum_of(r.gradients, 0), std::vector<float>(6, 1.0F)) << "p0 was left out of the second one";
    EXPECT_EQ(shelf.said.back(), "ahead 1") << "and nothing behind the last one";
    EXPECT_EQ(sum_of(r.gradients, 1), std::vector<float>(4, 3.0F));
}

TEST(Parts, GradientReductionWhatATierFailsAtIsToldWhenAllMeet) {
    Shelf shelf;
    Reduced r{{.sharded = true, .sums_on_tier = true}, 2, &shelf};
    shelf.fails_at = 0;
    backward(r.gradients, r.model, 1.0F);
    EXPECT_EQ(r.exchange.count("reduce_scatter"), 2U) << "the others get their part";
    std::vector<std::size_t> seen;
    r.gradients.for_each_sum(offload::Access::read, [&](std::size_t i, const at::Tensor&) { seen.push_back(i); });
    EXPECT_TRUE(seen.empty());
    EXPECT_EQ(strata_test::error_of([&] { r.gradients.tell_failure(); }).code(), Errc::io_failed);
}

TEST(Parts, GradientReductionASumIsClosedWhenWhoLooksAtItThrows) {
    Shelf shelf;
    Reduced r{{.sharded = true, .sums_on_tier = true}, 1, &shelf};
    backward(r.gradients, r.model, 1.0F);
    const auto look = [&] {
        r.gradients.for_each_sum(offload::Access::update, [](std::size_t, const at::Tensor&) { throw 7; });
    };
    EXPECT_THROW(look(), int);
    EXPECT_EQ(sum_of(r.gradients, 0).front(), 1.0F) << "and may be opened again";
}

// ---- BackwardUpdate ---------------------------------------------------------------------------------------------------

/// One rank of two whose buckets are used as soon as they are reduced.
struct Early {
    explicit Early(bool replicates = false)
        : model{{.bucket_numel = 100, .replicates_state = replicates, .rank = 0, .world = 2}} {
        for (std::size_t i = 0; i < model.buckets.size(); ++i) {
            model.buckets[i].weight_B = torch::zeros({model.buckets.padded_of(i)});
            gradients.take(i);
        }
        gradients.hand_over([this](std::size_t i, const at::Tensor& gradient_B) { update.use(i, gradient_B); });
    }
    Model model;
    Lonely exchange{2};
    std::vector<std::string> said;
    BackwardUpdate update{
        exchange,
        model.buckets,
        {.squares = [](const at::Tensor& sum_S) { return sum_S.square().sum().item().toDouble(); },
         .prefetch = [this](std::size_t bucket) { said.push_back("prefetch " + std::to_string(bucket)); },
         .update =
             [this](std::size_t bucket, const at::Tensor& sums) {
                 said.push_back("update " + std::to_string(bucket) + " with " + std::to_string(sums.numel()));
             }}};
    GradientReduction gradients{exchange, *model.pool, model.buckets, {.sharded = true, .used_at_once = true}};
};

TEST(Parts, BackwardUpdateUsesEveryBucketWhenItIsReducedAndKeepsNothing) {
    Early early;
    early.update.begin_pass();
    backward(early.gradients, early.model, 2.0F);
    EXPECT_EQ(early.said, (std::vector<std::string>{"prefetch 1", "prefetch 1", "prefetch 0", "update 1 with 4",
                                                    "prefetch 0", "update 0 with 6"}));
    EXPECT_EQ(early.exchange.said, (std::vector<std::string>{"post gradients", "reduce_scatter 8", "all_gather 8",
                                                             "post gradients", "reduce_scatter 12", "all_gather 12"}))
        << "the new weights follow at once";
    EXPECT_EQ(early.model.pool->meter().of(MemoryKind::gradients, Place::device).now, 0);
    EXPECT_EQ((std::vector<double>{early.update.squares().begin(), early.update.squares().end()}),
              (std::vector<double>{24, 16, 24, 16}))
        << "by rank, then by bucket";
    EXPECT_TRUE(early.update.has_begun());
    early.update.end_step();
    EXPECT_FALSE(early.update.has_begun());
}

TEST(Parts, BackwardUpdateWhereEveryRankHasAllOfTheStateItGetsAllSums) {
    Early early{true};
    early.update.begin_pass();
    backward(early.gradients, early.model, 1.0F);
    EXPECT_EQ(early.said.back(), "update 0 with 12");
    EXPECT_EQ(early.exchange.count("all_gather"), 2U) << "of sums, and not of weights";
}

TEST(Parts, BackwardUpdateEndsWithTheFirstBucketThatIsNotFinite) {
    Early early;
    early.update.begin_pass();
    early.gradients.begin_pass();
    for (const std::size_t i : {2U, 1U, 0U}) {
        early.model.trained[i].tensor.mutable_grad() =
            torch::full_like(early.model.trained[i].tensor, i == 0 ? NAN : 1.0);
        early.gradients.arrived(i);
    }
    early.gradients.end_pass();
    EXPECT_EQ(early.said.back(), "prefetch 0") << "bucket 0 is not updated";
    EXPECT_TRUE(early.update.has_begun()) << "bucket 1 was";
    EXPECT_TRUE(std::isnan(early.update.squares()[0]));
}

TEST(Parts, BackwardUpdateARankThatGaveUpKeepsAllFromUpdating) {
    Early early;
    early.update.begin_pass();
    early.update.give_up();
    backward(early.gradients, early.model, 1.0F);
    EXPECT_FALSE(early.update.has_begun());
    EXPECT_EQ(early.exchange.count("reduce_scatter"), 2U) << "the others get their part";
    EXPECT_EQ(early.exchange.count("all_gather"), 0U);
    early.gradients.start_step();
    early.update.begin_pass();
    backward(early.gradients, early.model, 1.0F);
    EXPECT_TRUE(early.update.has_begun()) << "a step later it is forgotten";
}

TEST(Parts, BackwardUpdateRaisesTheVersionsOfABucketBeforeItIsUpdated) {
    Early early;
    const auto versions = [&] {
        std::vector<std::uint32_t> all;
        for (const Parameter& parameter : early.model.trained)
            all.push_back(static_cast<std::uint32_t>(parameter.tensor._version()));
        return all;
    };
    const auto before = versions();
    early.update.begin_pass();
    early.gradients.begin_pass();
    early.model.trained[2].tensor.mutable_grad() = torch::ones_like(early.model.trained[2].tensor);
    early.gradients.arrived(2);
    EXPECT_EQ(versions(), (std::vector<std::uint32_t>{before[0], before[1], before[2] + 1}));
    early.gradients.end_pass();
}

TEST(Parts, GradientViewGivesPiecesOfParametersAndTheirNorms) {
    Reduced r{{.sharded = true},
              2};  // this rank's share of bucket 0 is p0, that of bucket 1 the first 4 elements of p2
    backward(r.gradients, r.model, 3.0F);
    GradientView view{r.model.buckets, r.gradients, r.exchange, 0.5};
    std::vector<std::string> seen;
    view.for_each([&](const GradientPiece& piece) {
        seen.push_back(piece.parameter.name + " " + std::to_string(piece.begin) + " " +
                       std::to_string(piece.sum.numel()));
        if (piece.index == 0) at::Tensor{piece.sum}.zero_();
    });
    EXPECT_EQ(seen, (std::vector<std::string>{"p0 0 6", "p2 0 4"}));
    EXPECT_EQ(sum_of(r.gradients, 0), std::vector<float>(6, 0.0F)) << "what is written is used";
    const std::vector<double> norms = view.norms();
    EXPECT_EQ(norms[0], 0.0);
    EXPECT_NEAR(norms[2], 0.5 * std::sqrt(2 * 4 * 9.0), 1e-12) << "the other rank says the same as this one";
}

// ---- weights --------------------------------------------------------------------------------------------------------

TEST(Parts, WeightGatheringGathersWhatIsWholeOnAllRanksAndLeavesShards) {
    Model model{{.bucket_numel = 100, .shards_units = true, .rank = 0, .world = 2}};
    for (std::size_t i = 0; i < 2; ++i) model.buckets[i].weight_B = torch::zeros({model.buckets.padded_of(i)});
    Lonely exchange{2};
    WeightGathering weights{exchange, model.buckets};
    weights.next();
    weights.finish();
    EXPECT_EQ(exchange.said, (std::vector<std::string>{"post weights", "all_gather 12"}));
}

// ---- passes over state, and what is made of them ----------------------------------------------------------------------

using Numerics = Precision<Bf16>;
using State = Cpu::state<float, 1, true>;
using Pass = StatePass<Numerics, 1, State, CpuDevice>;

/// One rank of one, with masters, one state of 2s, and an average.
struct Kept {
    Kept() {
        TierContext context{*model.pool, nullptr, "optimizer", MemoryKind::state, {}};
        TakeOver take_over{exchange,      *model.pool,  model.buckets,           shards,
                           model.trained, model.frozen, {.dtype = at::kBFloat16}};
        state.make(context, model.buckets.part_numels());
        average.make(context, model.buckets.part_numels());
        state.fill({2.0F}, [&](std::size_t bucket) { return take_over.start_of_state(take_over.take_bucket(bucket)); });
        for (std::size_t i = 0; i < model.buckets.size(); ++i)
            std::fill(average.values(i).begin(), average.values(i).end(), 0.25F);
    }
    Model model{{.bucket_numel = 100}};
    Lonely exchange;
    ShardsOf<Device::shards<bf16>, bf16> shards{*model.pool};
    State state;
    LocalFailure failure{true};
    AverageOf<Ema<>::average<float>> average{optim::EmaOptions{.decay = 0.5, .min_decay = 0.5, .interval = 2}};
    Pass pass{state, shards, model.buckets, *model.pool, failure};
    WeightGathering weights{exchange, model.buckets};
};

TEST(Parts, StatePassVisitsEveryElementOnceWithItsParameter) {
    Kept kept;
    std::int64_t numel = 0;
    kept.pass.on_host(offload::Access::read, ParameterUse::read, [&](const Pass::HostPart& run) {
        numel += run.numel;
        for (std::size_t i = 0; i < run.weight.size(); ++i) {
            EXPECT_EQ(to_float(run.parameters[i]), run.weight[i]) << "small whole numbers are exact in bf16";
            EXPECT_EQ(run.state[0][i], 2.0F);
        }
    });
    EXPECT_EQ(numel, 18);
    EXPECT_NO_THROW(kept.failure.rethrow());
}

TEST(Parts, StatePassWhatFailsOnThisRankIsKeptUntilAllAreTold) {
    Kept kept;
    EXPECT_NO_THROW(kept.pass.on_host(offload::Access::read, ParameterUse::none, [](const Pass::HostPart&) {
        throw Error{Errc::io_failed, "the disk is gone", "look for it"};
    }));
    EXPECT_EQ(strata_test::error_of([&] { kept.failure.tell(kept.exchange); }).code(), Errc::io_failed);
}

TEST(Parts, StateTransferWhatIsReadAndWrittenBackIsTheSame) {
    Kept kept;
    StateTransfer<Pass> transfer{kept.pass,     {"weight", "speed"}, &kept.average, kept.model.buckets,
                                 kept.exchange, *kept.model.pool,    kept.failure};
    EXPECT_EQ(transfer.outline().size(), 6U) << "3 kinds of 2 buckets";
    std::map<std::string, std::vector<float>> state;
    transfer.read([&](std::string_view kind, std::int64_t begin, std::span<const float> values) {
        auto& all = state[std::string{kind}];
        all.resize(18);
        std::copy(values.begin(), values.end(), all.begin() + begin);
    });
    EXPECT_EQ(state["weight"][7], 11.0F) << "p1[1]";
    EXPECT_EQ(state["speed"], std::vector<float>(18, 2.0F));
    EXPECT_EQ(state["average"], std::vector<float>(18, 0.25F));
    transfer.write(
        [](std::string_view kind, std::int64_t begin, std::span<float> values) {
            for (std::size_t i = 0; i < values.size(); ++i)
                values[i] = kind == "weight" ? static_cast<float>(begin) + static_cast<float>(i) : 7.0F;
        },
        false);
    EXPECT_EQ(kept.model.trained[1].tensor.to(torch::kFloat).sum().item<float>(), 6 + 7 + 8 + 9 + 10)
        << "parameters follow their masters";
    EXPECT_EQ(kept.average.values(0).front(), 0.25F) << "it was not asked for";
}

TEST(Parts, AverageSwapPutsTheAverageInTheWeightsPlaceAndTheMastersBack) {
    Kept kept;
    AverageSwap<Pass, Place::host> swap{kept.pass, kept.average, kept.weights, kept.model.buckets, *kept.model.pool};
    swap.swap();
    swap.done();
    EXPECT_TRUE(swap.is_in());
    EXPECT_EQ(kept.model.trained[2].tensor.to(torch::kFloat).sum().item<float>(), 7 * 0.25F);
    swap.swap();
    swap.done();
    EXPECT_FALSE(swap.is_in());
    EXPECT_EQ(kept.model.trained[2].tensor.to(torch::kFloat).sum().item<float>(), 20 + 21 + 22 + 23 + 24 + 25 + 26);
    swap.restart();
    EXPECT_EQ(kept.average.values(1).back(), 26.0F);
}

TEST(Parts, AverageKeeperAsksThePolicysClassWhenAndHowFast) {
    Kept kept;
    EXPECT_FALSE(kept.average.due(1));
    EXPECT_TRUE(kept.average.due(2));
    EXPECT_EQ(kept.average.decay(4), 0.5);
    EXPECT_EQ(kept.average.memory(), Place::host);
    const std::int64_t numels[] = {3, 4};
    EXPECT_EQ(kept.average.bytes(numels)[Place::host], 28);
}

/// Every way to be wrong: memory that is not counted, one place for all buckets, and a decay that depends on what was asked before.
struct Wrong {
    static constexpr Place memory = Place::host;
    explicit Wrong(const optim::EmaOptions&) {}
    static PlaceBytes bytes(std::span<const std::int64_t>) { return {}; }
    void make(const TierContext& context, const std::vector<std::int64_t>&) {
        all = context.empty<float>(64, MemoryKind::state, memory);
    }
    std::span<float> values(std::size_t) { return strata::zero::detail::elements<float>(all); }
    [[nodiscard]] bool due(std::int64_t) const { return true; }
    [[nodiscard]] double decay(std::int64_t) const { return static_cast<double>(++asked); }
    at::Tensor all;
    mutable int asked = 0;
};

TEST(Parts, AverageConformanceNamesWhatIsWrong) {
    EXPECT_EQ((strata::testing::average_failures<Ema<>::average<float>>(optim::EmaOptions{})),
              std::vector<std::string>{});
    const auto failures = strata::testing::average_failures<Wrong>(optim::EmaOptions{});
    const auto says = [&](std::string_view words) {
        return std::any_of(failures.begin(), failures.end(),
                           [&](const std::string& line) { return line.find(words) != std::string::npos; });
    };
    EXPECT_TRUE(says("bytes() says 0 and make() takes 256"));
    EXPECT_TRUE(says("64 elements for a share of 5"));
    EXPECT_TRUE(says("two buckets the same memory"));
    EXPECT_TRUE(says("depends on what was asked before"));
    EXPECT_TRUE(says("which is no share"));
}

// ---- memory -----------------------------------------------------------------------------------------------------------

TEST(Parts, MemoryPlanCountsWhatIsKeptAndWhatTheModelGivesBack) {
    const Model model{{.bucket_numel = 100, .rank = 0, .world = 2}};  // 12 and 8 elements with padding, 18 of the model
    const MemoryPlan whole{.gradients = {.sharded = false}, .state = PlaceBytes::at(Place::host, 80)};
    // parameters and gradients of 20, the largest bucket once in fp32 while it is taken over, less the model's own 18
    EXPECT_EQ(whole.need(model.buckets, {}).host, 20 * 4 + 20 * 4 + 80 + 12 * 4 - 18 * 4);
    const MemoryPlan sharded{.gradients = {.sharded = true, .buckets_in_flight = 1},
                             .state = PlaceBytes::at(Place::disk, 80)};
    // of gradients a share of 10, and two buckets that wait
    EXPECT_EQ(sharded.need(model.buckets, {}).host, 20 * 4 + 10 * 4 + 12 * 2 * 4 - 18 * 4);
    EXPECT_NE(sharded.fix({true, true, false}).find("more ranks"), std::string::npos) << "it is on disk already";
}

TEST(Parts, MemoryPlanCountsExceptionsInTheirOwnFormat) {
    std::vector<Parameter> trained = parameters();
    trained[2].excepted = true;
    const Buckets buckets{trained, {0, 0, 0}, {.bucket_numel = 100, .rank = 0, .world = 2}};  // 12 elements, and 8
    const MemoryPlan plan{.dtype = at::kBFloat16, .gradients = {.dtype = at::kBFloat16, .sharded = false}};
    EXPECT_EQ(plan.need(buckets, {}).host, 2 * (12 * 2 + 8 * 4) + 12 * 4 - 18 * 4) << "of parameters and of gradients";
}

TEST(Parts, MemoryPlanCountsSumsWhereTheyAre) {
    const Model model{{.bucket_numel = 100, .rank = 0, .world = 2}};
    const auto host_need = [&](Place place) {
        const MemoryPlan plan{.gradients = {.sharded = true, .sums_on_tier = true, .buckets_in_flight = 1},
                              .sums = PlaceBytes::at(place, 40)};
        return plan.need(model.buckets, {}).host;
    };
    // parameters, two buckets that wait, the largest share on its way to the tier, less the model's own
    EXPECT_EQ(host_need(Place::disk), 20 * 4 + 12 * 2 * 4 + 6 * 4 - 18 * 4);
    EXPECT_EQ(host_need(Place::host) - host_need(Place::disk), 40);
}

TEST(Parts, MemoryPlanTellsTheDeviceFromItsHost) {
    const Model model{{.bucket_numel = 100}};
    const MemoryPlan plan{
        .device_is_host = false, .gradients = {.sharded = false}, .state = PlaceBytes::at(Place::host, 1000)};
    const MemoryPlan::Need need = plan.need(model.buckets, {});
    EXPECT_EQ(need.host, 1000 - 18 * 4) << "the model is on the host, and leaves it";
    EXPECT_EQ(need.device, 18 * 4 * 2 + 11 * 4);
}

}  // namespace
