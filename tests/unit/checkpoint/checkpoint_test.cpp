// Checkpoints by hand: what is kept, what loads into other slices, what leaves nothing behind.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <strata/checkpoint/checkpoint.hpp>
#include <strata/checkpoint/resume.hpp>
#include <strata/checkpoint/size.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/storage/safetensors.hpp>

namespace {

using namespace strata;
namespace fs = std::filesystem;

/// A run of state in memory.
struct Piece {
    std::string_view kind;
    std::int64_t begin;
    std::span<float> values;
};

/// What an engine and a trainer do, for such state.
fs::path save_pieces(comm::SelfComm& comm, const fs::path& folder, const checkpoint::Manifest& manifest,
                     const std::vector<Piece>& pieces, const std::vector<checkpoint::NamedTensor>& model) {
    std::vector<zero::StateOutline> outline;
    for (const auto& piece : pieces)
        outline.push_back({piece.kind, piece.begin, static_cast<std::int64_t>(piece.values.size())});
    const auto read = [&](auto&& sink) {
        for (const auto& piece : pieces) {  // in two parts, as windows come
            const std::size_t half = piece.values.size() / 2;
            if (half > 0) sink(piece.kind, piece.begin, piece.values.first(half));
            if (!piece.values.empty())
                sink(piece.kind, piece.begin + static_cast<std::int64_t>(half), piece.values.subspan(half));
        }
    };
    return checkpoint::save(comm, folder, manifest, outline, read, [&](const fs::path& partial) {
        return std::vector{
            checkpoint::write_model(comm, partial / checkpoint::model_file, model, [](const at::Tensor&) {})};
    });
}
checkpoint::Manifest load_pieces(comm::SelfComm& comm, const fs::path& path, const checkpoint::Manifest& expected,
                                 const std::vector<Piece>& pieces,
                                 const std::vector<checkpoint::NamedTensor>& buffers) {
    const auto manifest = checkpoint::open(comm, path, expected, buffers);
    checkpoint::StateReader reader{path, manifest};
    for (const auto& piece : pieces) reader.read(piece.kind, piece.begin, piece.values);
    return manifest;
}

struct Checkpoint : testing::Test {
    fs::path folder = fs::path{testing::TempDir()} / ("strata_checkpoint_" + std::to_string(::getpid()));
    comm::SelfComm comm;
    std::vector<float> weights = std::vector<float>(10), moments = std::vector<float>(10);
    std::vector<checkpoint::NamedTensor> model{{"a", at::arange(6, at::kFloat).reshape({2, 3})},
                                               {"count", at::arange(4, at::kLong)}};

    void SetUp() override {
        fs::remove_all(folder);
        std::iota(weights.begin(), weights.end(), 0.5F);
        std::iota(moments.begin(), moments.end(), 100.0F);
    }
    void TearDown() override { fs::remove_all(folder); }

    checkpoint::Manifest manifest(std::int64_t step) {
        checkpoint::Manifest m;
        m.step = step;
        m.update_rule = "exp_avg";
        m.parameters = {{"a", {2, 3}, 0}, {"b", {4}, 6}};
        return m;
    }
    /// Slices as three buckets would cut them, one of them empty.
    std::vector<Piece> pieces() {
        const std::span<float> w{weights}, m{moments};
        return {{"weight", 0, w.first(4)},  {"weight", 4, w.subspan(4, 0)},  {"weight", 4, w.subspan(4)},
                {"exp_avg", 0, m.first(4)}, {"exp_avg", 4, m.subspan(4, 0)}, {"exp_avg", 4, m.subspan(4)}};
    }
    fs::path saved(std::int64_t step) { return save_pieces(comm, folder, manifest(step), pieces(), model); }
    std::vector<std::string> names() {
        std::vector<std::string> found;
        for (const auto& entry : fs::directory_iterator{folder}) found.push_back(entry.path().filename().string());
        std::sort(found.begin(), found.end());
        return found;
    }
};

TEST_F(Checkpoint, LoadsIntoSlicesCutElsewhere) {
    const fs::path path = saved(7);
    std::vector<float> w(10, -1), m(10, -1);
    std::vector<Piece> other;
    for (const std::int64_t begin : {0, 3, 5}) {
        const std::int64_t end = begin == 0 ? 3 : begin == 3 ? 5 : 10;
        const auto offset = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(end - begin);
        other.push_back({"weight", begin, std::span{w}.subspan(offset, count)});
        other.push_back({"exp_avg", begin, std::span{m}.subspan(offset, count)});
    }
    const auto found = load_pieces(comm, path, manifest(0), other, {});
    EXPECT_EQ(found.step, 7);
    EXPECT_EQ(w, weights);
    EXPECT_EQ(m, moments);
}

TEST_F(Checkpoint, ARankReadsOnlyItsShare) {
    const fs::path path = saved(1);
    std::vector<float> share(3, -1);
    std::vector<Piece> mine{{"exp_avg", 5, share}};
    load_pieces(comm, path, manifest(0), mine, {});
    EXPECT_EQ(share, (std::vector<float>{105, 106, 107}));
}

TEST_F(Checkpoint, BuffersComeBackInPlace) {
    const fs::path path = saved(1);
    std::vector<checkpoint::NamedTensor> buffers{{"count", at::zeros({4}, at::kLong)}};
    load_pieces(comm, path, manifest(0), {}, buffers);
    EXPECT_TRUE(buffers[0].tensor.equal(at::arange(4, at::kLong)));
}

TEST_F(Checkpoint, ABufferOfAnotherShapeIsRefused) {
    const fs::path path = saved(1);
    for (const at::Tensor& wrong : {at::zeros({5}, at::kLong), at::zeros({4}, at::kInt)}) {
        std::vector<checkpoint::NamedTensor> buffers{{"count", wrong}};
        EXPECT_THROW(load_pieces(comm, path, manifest(0), {}, buffers), Error);
    }
}

TEST_F(Checkpoint, TheModelFileIsPlainSafetensors) {
    const storage::SafetensorsFile file{saved(1) / "model.safetensors"};
    const auto& entry = file.header().at("a");
    EXPECT_EQ(entry.dtype, storage::Dtype::f32);
    EXPECT_EQ(entry.shape, (std::vector<std::int64_t>{2, 3}));
}

TEST_F(Checkpoint, OnlyTheNewestAreKept) {
    for (const std::int64_t step : {5, 100, 20, 3}) saved(step);
    checkpoint::keep_newest(folder, 2);
    EXPECT_EQ(names(), (std::vector<std::string>{"step_00000020", "step_00000100"}));
}

TEST_F(Checkpoint, TheNewestStaysWhateverNumberIsAskedFor) {
    for (const std::int64_t count : {0, -3}) {
        for (const std::int64_t step : {5, 20}) saved(step);
        checkpoint::keep_newest(folder, count);
        EXPECT_EQ(names(), (std::vector<std::string>{"step_00000020"})) << count;
    }
}

TEST_F(Checkpoint, SavingOverADamagedOneOfTheSameStepSetsItAside) {
    const fs::path path = saved(4);
    fs::resize_file(path / "model.safetensors", 10);
    fs::create_directories(folder / "step_00000007");
    EXPECT_EQ(saved(4), path);
    EXPECT_EQ(saved(7), folder / "step_00000007");
    EXPECT_EQ(load_pieces(comm, path, manifest(0), {}, {}).step, 4);
    EXPECT_EQ(load_pieces(comm, folder / "step_00000007", manifest(0), {}, {}).step, 7);
    EXPECT_EQ(names(), (std::vector<std::string>{"damaged_step_00000004", "damaged_step_00000007", "step_00000004",
                                                 "step_00000007"}));
    EXPECT_EQ(fs::file_size(folder / "damaged_step_00000004/model.safetensors"), 10U);

    fs::resize_file(path / "manifest.json", 10);
    saved(4);
    EXPECT_TRUE(fs::exists(folder / "damaged_step_00000004_2")) << "the one before is not lost";
}

TEST_F(Checkpoint, TheNewestWholeOneIsOpenedAndTheOthersAreNamed) {
    EXPECT_EQ(checkpoint::open_newest(comm, folder, manifest(0), {}), std::nullopt);
    for (const std::int64_t step : {1, 2, 3}) saved(step);
    fs::remove(folder / "step_00000003/manifest.json");
    fs::remove(folder / "step_00000002/model.safetensors");
    const auto opened = checkpoint::open_newest(comm, folder, manifest(0), {});
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->folder, folder / "step_00000001");
    EXPECT_EQ(opened->manifest.step, 1);
    ASSERT_EQ(opened->notes.size(), 2U);
    EXPECT_NE(opened->notes[0].find("step_00000003"), std::string::npos) << opened->notes[0];
    EXPECT_NE(opened->notes[1].find("model.safetensors is missing; it is kept as damaged_step_00000002"),
              std::string::npos)
        << opened->notes[1];
}

TEST_F(Checkpoint, ACheckpointOfAnotherModelIsNotPassedOver) {
    for (const std::int64_t step : {1, 2}) saved(step);
    auto other = manifest(0);
    other.update_rule = "momentum";
    try {
        (void)checkpoint::open_newest(comm, folder, other, {});
        FAIL() << "opened";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::checkpoint_mismatch);
    }
    EXPECT_EQ(names(), (std::vector<std::string>{"step_00000001", "step_00000002"}));
}

TEST_F(Checkpoint, WeightsThatAreNotFiniteAreNotPublished) {
    for (const float poison : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()}) {
        weights[9] = poison;
        try {
            saved(1);
            FAIL() << "published";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::non_finite);
            EXPECT_EQ(error.problem(), "the weights are not finite, and such a checkpoint is never published: b");
        }
        EXPECT_TRUE(names().empty());
    }
    weights[9] = std::numeric_limits<float>::max();
    saved(1);
}

TEST_F(Checkpoint, AParameterThatItsElementTypeCannotHoldIsNotPublishedAndABufferMayHoldInfinity) {
    model.push_back({"mask", at::zeros({2}, at::kHalf).fill_(-std::numeric_limits<double>::infinity())});
    saved(1);
    model.push_back({"b", at::zeros({4}, at::kHalf).fill_(std::numeric_limits<double>::infinity()), true});
    try {
        saved(2);
        FAIL() << "published";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::non_finite);
        EXPECT_EQ(
            error.problem(),
            "the weights are not finite, and such a checkpoint is never published: b does not fit into the Half of model.safetensors");
    }
    EXPECT_EQ(names(), (std::vector<std::string>{"step_00000001"}));
}

TEST_F(Checkpoint, ItsSizeIsKnownBeforeItIsWritten) {
    std::vector<zero::StateOutline> outline;
    for (const auto& piece : pieces())
        outline.push_back({piece.kind, piece.begin, static_cast<std::int64_t>(piece.values.size())});
    const fs::path path = saved(1);
    std::uint64_t taken = 0;
    for (const auto& entry : fs::directory_iterator{path}) taken += (entry.file_size() + 4095) / 4096 * 4096;
    const std::uint64_t bytes = checkpoint::bytes_on_disk(outline, model, 1);
    EXPECT_GE(bytes, taken);
    EXPECT_LE(bytes, taken + (64U << 10U));
    EXPECT_GT(checkpoint::bytes_on_disk(outline, model, 2), bytes);
}

TEST_F(Checkpoint, SavingAStepTwiceLeavesTheFirst) {
    const fs::path path = saved(4);
    const auto before = fs::last_write_time(path / "manifest.json");
    weights[0] = 77;
    EXPECT_EQ(saved(4), path);
    EXPECT_EQ(fs::last_write_time(path / "manifest.json"), before);
}

TEST_F(Checkpoint, AFailedSaveLeavesNothing) {
    model.push_back({"a", at::zeros({1})});  // a name twice cannot be written
    EXPECT_THROW(saved(4), Error);
    EXPECT_TRUE(names().empty());
}

TEST_F(Checkpoint, AGapInTheStateIsRefused) {
    const std::span<float> w{weights};
    const std::vector<Piece> gap{{"weight", 0, w.first(4)}, {"weight", 5, w.subspan(5)}};
    const fs::path path = save_pieces(comm, folder, manifest(1), gap, model);
    std::vector<float> all(10);
    std::vector<Piece> mine{{"weight", 0, all}};
    try {
        load_pieces(comm, path, manifest(0), mine, {});
        FAIL() << "loaded a checkpoint with a gap";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::corrupt_checkpoint);
        EXPECT_NE(error.problem().find("element 4"), std::string::npos) << error.what();
    }
}

TEST_F(Checkpoint, AnotherModelIsNamedByItsFirstDifference) {
    const fs::path path = saved(1);
    const auto refusal = [&](checkpoint::Manifest expected) -> std::string {
        try {
            load_pieces(comm, path, expected, {}, {});
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::checkpoint_mismatch);
            return error.problem();
        }
        return "";
    };
    auto expected = manifest(0);
    expected.parameters[1].name = "c";
    EXPECT_NE(refusal(expected).find("the parameter b where this model has c"), std::string::npos);
    expected = manifest(0);
    expected.frozen = {expected.parameters[1]};
    expected.parameters.pop_back();
    EXPECT_NE(refusal(expected).find("trains the parameter b, and this trainer was made with it frozen"),
              std::string::npos);
    expected.began_with = {"a", "b"};
    EXPECT_EQ(refusal(expected), "") << "set_trainable() has frozen it since";
    expected.frozen[0].shape = {2, 2};
    EXPECT_NE(refusal(expected).find("the parameter b, which this model lacks or has in another shape"),
              std::string::npos);
    expected = manifest(0);
    expected.parameters[1].shape = {2, 2};
    EXPECT_NE(refusal(expected).find("of another shape"), std::string::npos);
    expected = manifest(0);
    expected.parameters.pop_back();
    EXPECT_NE(refusal(expected).find("the parameter b, which this model lacks"), std::string::npos);
    expected = manifest(0);
    expected.update_rule = "exp_avg,exp_avg_sq";
    EXPECT_NE(refusal(expected).find("optimizer state"), std::string::npos);
}

TEST_F(Checkpoint, AFolderWithTheNameOfAnotherStepIsRefused) {
    const fs::path path = saved(1);
    fs::rename(path, folder / "step_00000009");
    EXPECT_THROW(load_pieces(comm, folder / "step_00000009", manifest(0), {}, {}), Error);
}

TEST_F(Checkpoint, ATruncatedFileIsRefusedBeforeAnythingIsOverwritten) {
    const fs::path path = saved(1);
    fs::resize_file(path / "state_00000_of_00001.safetensors", 100);
    std::vector<float> all(10, -1);
    std::vector<Piece> mine{{"weight", 0, all}};
    EXPECT_THROW(load_pieces(comm, path, manifest(0), mine, {}), Error);
    EXPECT_EQ(all, std::vector<float>(10, -1));
}

}  // namespace
