// The codec: what comes back, and that no blocks are seen in it.

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/models/encoders.hpp>
#include <strata/models/linear_codec.hpp>

namespace {

using strata::models::LinearCodec;
static_assert(strata::models::Autoencoder<LinearCodec>);

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

/// A disc with a smooth edge on a slope of colours.
at::Tensor some_picture(std::int64_t H, std::int64_t W) {
    const at::Tensor y = at::linspace(-1, 1, H).view({H, 1}), x = at::linspace(-1, 1, W).view({1, W});
    const at::Tensor disc = at::sigmoid((0.5 - at::sqrt(y * y + x * x)) * 12);
    return at::stack({disc * 1.6 - 0.8 + 0 * x, 0.5 * x + 0 * y, 0.4 * y - 0.3 * disc});
}

TEST(LinearCodec, ASmoothPictureComesBack) {
    const LinearCodec codec;
    const at::Tensor picture = some_picture(64, 96);
    EXPECT_EQ(codec.encode(picture).sizes(), (at::IntArrayRef{16, 8, 12}));
    const double error = (codec.decode(codec.encode(picture)) - picture).square().mean().item<double>();
    EXPECT_LT(error, 4 * 1e-4);  // 40 dB
}

/// The mean difference of neighbours that lie on both sides of a multiple of 8, over that of all others.
double seams(const at::Tensor& image_3HW) {
    double across = 0, inside = 0;
    for (const std::int64_t dim : {1, 2}) {
        const std::int64_t n = image_3HW.size(dim) - 1;
        const at::Tensor steps =
            (image_3HW.narrow(dim, 1, n) - image_3HW.narrow(dim, 0, n)).abs().mean(at::IntArrayRef{0, 3 - dim});
        for (std::int64_t i = 0; i < n; ++i)
            (i % 8 == 7 ? across : inside) +=
                steps[i].item<double>() / static_cast<double>(i % 8 == 7 ? n / 8 : n - n / 8);
    }
    return across / inside;
}

TEST(LinearCodec, NoSeamsOfBlocksAreSeen) {
    const LinearCodec codec;
    for (const std::int64_t moved : {0, 3, 5})
        EXPECT_LT(seams(codec.decode(codec.encode(some_picture(128, 128).roll(moved, 1).roll(2 * moved, 2)))), 1.1)
            << moved;
    // Most of noise is lost, and what is left is hardly rougher at a seam.
    torch::manual_seed(2);
    EXPECT_LT(seams(codec.decode(codec.encode(at::rand({3, 64, 64}) * 2 - 1))), 1.25);
}

/// A picture and its mirror image have latents that are mirror images: odd frequencies change their sign.
TEST(LinearCodec, AMirrorImageIsCodedAsOne) {
    const LinearCodec codec;
    const at::Tensor picture = some_picture(32, 48).roll(5, 2);
    const at::Tensor latents = codec.encode(picture), mirrored = codec.encode(picture.flip(2));
    EXPECT_LT(largest(mirrored[0] - latents[0].flip(1)), 1e-5);
    EXPECT_LT(largest(mirrored[1] + latents[1].flip(1)), 1e-5);
    EXPECT_LT(largest(mirrored[2] - latents[2].flip(1)), 1e-5);
    EXPECT_LT(largest(codec.decode(mirrored) - codec.decode(latents).flip(2)), 1e-5);
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

TEST(LinearCodec, ALatentSeesAndDrawsSixteenPixels) {
    const LinearCodec codec;
    at::Tensor picture = some_picture(48, 48);
    const at::Tensor before = codec.encode(picture);
    picture.narrow(1, 24, 1).narrow(2, 24, 1).fill_(0.9f);  // within four pixels of cell 2, and in cell 3
    const at::Tensor changed = (codec.encode(picture) - before).abs().amax(0) > 1e-6;
    for (std::int64_t y = 0; y < 6; ++y)
        for (std::int64_t x = 0; x < 6; ++x)
            EXPECT_EQ(changed[y][x].item<bool>(), (y == 2 || y == 3) && (x == 2 || x == 3)) << y << ", " << x;

    at::Tensor latents = before.clone();
    latents.narrow(1, 3, 1).narrow(2, 3, 1) += 1;
    const at::Tensor drawn = (codec.decode(latents) - codec.decode(before)).abs().amax(0) > 1e-6;
    EXPECT_TRUE(drawn.narrow(0, 20, 16).narrow(1, 20, 16).any().item<bool>());
    EXPECT_EQ(drawn.sum().item<std::int64_t>(), drawn.narrow(0, 20, 16).narrow(1, 20, 16).sum().item<std::int64_t>());
}

TEST(LinearCodec, SeveralPicturesAreCodedAsOneByOne) {
    const LinearCodec codec;
    const at::Tensor one = some_picture(16, 24), other = some_picture(16, 24).flip(0);
    const at::Tensor both = codec.encode(at::stack({one, other}));
    EXPECT_TRUE(at::equal(both[0], codec.encode(one)));
    EXPECT_TRUE(at::equal(both[1], codec.encode(other)));
}

}  // namespace
