// The codec is an orthogonal projection, block by block.

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/models/encoders.hpp>
#include <strata/models/linear_codec.hpp>

namespace {

using strata::models::LinearCodec;
static_assert(strata::models::Autoencoder<LinearCodec>);

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

/// A picture whose blocks lie in the span of the codec: decode of something.
at::Tensor smooth_picture(std::int64_t h, std::int64_t w) {
    torch::manual_seed(1);
    return LinearCodec{}.decode(at::randn({16, h, w}));
}

TEST(LinearCodec, DecodeAfterEncodeKeepsWhatTheBasisSpans) {
    const LinearCodec codec;
    const at::Tensor picture = smooth_picture(3, 5);
    EXPECT_EQ(codec.encode(picture).sizes(), (at::IntArrayRef{16, 3, 5}));
    EXPECT_LT(largest(codec.decode(codec.encode(picture)) - picture), 1e-5);
}

TEST(LinearCodec, WhatIsLostIsOrthogonalToWhatIsKept) {
    const LinearCodec codec;
    torch::manual_seed(2);
    const at::Tensor picture = at::rand({3, 32, 24}) * 2 - 1;
    const at::Tensor origin = codec.decode(at::zeros({16, 4, 3}));  // differs from zero by the means of the channels
    const at::Tensor kept = codec.decode(codec.encode(picture));
    const at::Tensor lost = picture - kept;
    EXPECT_GT(largest(lost), 0.1);
    EXPECT_LT(std::abs((lost * (kept - origin)).sum().item<double>()), 1e-3);
    EXPECT_NEAR((picture - origin).square().sum().item<double>(),
                (kept - origin).square().sum().item<double>() + lost.square().sum().item<double>(), 1e-2);
}

TEST(LinearCodec, ChannelsAreOrthogonalToEachOther) {
    const LinearCodec codec;
    const at::Tensor origin = codec.decode(at::zeros({16, 1, 1}));
    at::Tensor rows = at::empty({16, 192});
    for (std::int64_t c = 0; c < 16; ++c) {
        at::Tensor unit = at::zeros({16, 1, 1});
        unit[c] = 1.0;
        rows[c] = (codec.decode(unit) - origin).flatten();
    }
    rows = rows / rows.norm(2, 1, true);
    EXPECT_LT(largest(rows.mm(rows.t()) - at::eye(16)), 1e-5);
}

TEST(LinearCodec, FlatColoursSurviveExactly) {
    const LinearCodec codec;
    at::Tensor picture = at::empty({3, 16, 16});
    picture[0] = 0.9f;
    picture[1] = -0.35f;
    picture[2] = -1.0f;
    EXPECT_LT(largest(codec.decode(codec.encode(picture)) - picture), 1e-5);
    // Grey has no chroma: channels 10 to 15 hold what a chroma of zero gives.
    const at::Tensor grey = codec.encode(at::full({3, 8, 8}, 0.25f));
    const at::Tensor black = codec.encode(at::full({3, 8, 8}, -1.0f));
    EXPECT_LT(largest((grey - black).narrow(0, 10, 6)), 1e-5);
    EXPECT_GT(largest((grey - black).narrow(0, 0, 1)), 1.0);
}

TEST(LinearCodec, EveryBlockIsCodedAlone) {
    const LinearCodec codec;
    at::Tensor picture = smooth_picture(2, 2);
    const at::Tensor before = codec.encode(picture);
    picture.narrow(1, 8, 8).narrow(2, 0, 8).fill_(0.5f);
    const at::Tensor changed = (codec.encode(picture) - before).abs().sum(0) > 1e-6;
    EXPECT_FALSE(changed[0][0].item<bool>());
    EXPECT_FALSE(changed[0][1].item<bool>());
    EXPECT_TRUE(changed[1][0].item<bool>());
    EXPECT_FALSE(changed[1][1].item<bool>());
}

}  // namespace
