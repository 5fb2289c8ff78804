// Passes over windows: the right bytes in the right order, within the buffers, and no error lost.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <strata/offload/window_pipeline.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::offload::Access;
using strata::offload::IoDirection;
using strata::offload::IoEngine;
using strata::offload::PipelineOptions;
using strata::offload::SwapFile;
using strata::offload::SwapFolder;
using strata::offload::Window;
using strata::offload::WindowArrays;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;
namespace offload = strata::offload;

/// 12 windows of two arrays whose sizes divide by nothing.
std::vector<WindowArrays> twelve_windows() {
    std::vector<WindowArrays> windows;
    for (std::size_t i = 0; i < 12; ++i) windows.push_back({4 * (1001 + 97 * i), 2 * (3 + i)});
    return windows;
}
constexpr std::size_t largest = SwapFile::bytes_of(4 * (1001 + 97 * 11) + 64 + 64);

class WindowPipeline : public testing::TestWithParam<IoEngine> {
protected:
    void SetUp() override {
        if (GetParam() == IoEngine::uring && !strata::offload::has_uring()) {
            GTEST_SKIP() << "this kernel refuses io_uring; the threads are tested";
        }
        options_.io.engine = GetParam();
        options_.io.block_bytes = 4096;
        options_.budget_bytes = 3 * largest;
    }
    std::unique_ptr<offload::WindowPipeline> make() {
        return std::make_unique<offload::WindowPipeline>(folder_, "state", twelve_windows(), options_);
    }
    static void fill(const Window& window) {
        const auto numbers = window.array<float>(0);
        std::iota(numbers.begin(), numbers.end(), static_cast<float>(100 * window.index()));
        for (std::uint16_t& value : window.array<std::uint16_t>(1)) value = static_cast<std::uint16_t>(window.index());
    }
    static void add_one(const Window& window) {
        for (float& value : window.array<float>(0)) value += 1.0F;
        for (std::uint16_t& value : window.array<std::uint16_t>(1)) ++value;
    }
    /// Expects every number to have been raised `times` times.
    static void expect_raised(offload::WindowPipeline& state, int times) {
        state.run(Access::read, [times](const Window& window) {
            const auto numbers = window.array<float>(0);
            ASSERT_EQ(numbers.size(), 1001 + 97 * window.index());
            for (std::size_t i = 0; i < numbers.size(); ++i) {
                ASSERT_EQ(numbers[i], static_cast<float>(100 * window.index() + i) + static_cast<float>(times));
            }
            ASSERT_EQ(window.array<std::uint16_t>(1).size(), 3 + window.index());
            for (const std::uint16_t value : window.array<std::uint16_t>(1)) {
                ASSERT_EQ(value, window.index() + static_cast<std::size_t>(times));
            }
        });
    }

    TemporaryFolder disk_;
    SwapFolder folder_{disk_.path(), "run", 0};
    PipelineOptions options_;
};

TEST_P(WindowPipeline, KeepsWhatUpdatesDoOverManyPasses) {
    for (const std::size_t buffers : {2U, 3U, 5U, 12U, 40U}) {
        options_.budget_bytes = buffers * largest;
        const auto state = make();
        EXPECT_EQ(state->engine(), GetParam());
        state->run(Access::write, fill);
        for (int pass = 1; pass <= 4; ++pass) {
            if (pass % 2 == 0) state->prefetch();
            state->run(Access::update, add_one);
            if (pass == 3) state->flush();
        }
        expect_raised(*state, 4);
        EXPECT_EQ(state->buffer_count(), std::min<std::size_t>(buffers, 12));
    }
}

TEST_P(WindowPipeline, UpdatesEveryWindowOnceInOrder) {
    const auto state = make();
    state->run(Access::write, fill);
    std::vector<std::size_t> order;
    state->run(Access::update, [&order](const Window& window) { order.push_back(window.index()); });
    std::vector<std::size_t> expected(12);
    std::iota(expected.begin(), expected.end(), 0U);
    EXPECT_EQ(order, expected);
}

TEST_P(WindowPipeline, NeverUsesMoreBuffersThanTheBudgetHolds) {
    for (const std::size_t buffers : {2U, 3U, 4U}) {
        options_.budget_bytes = buffers * largest + largest / 2;
        const auto state = make();
        EXPECT_EQ(state->buffer_count(), buffers);
        EXPECT_LE(state->buffer_bytes(), options_.budget_bytes);
        std::set<const void*> places;
        const auto note = [&places](const Window& window) { places.insert(window.array<float>(0).data()); };
        state->run(Access::write, note);
        for (int pass = 0; pass < 3; ++pass) {
            state->prefetch();
            state->run(Access::update, note);
        }
        EXPECT_EQ(places.size(), buffers);
        EXPECT_EQ(state->counts().most_buffers, buffers) << "and it does use them";
    }
}

TEST_P(WindowPipeline, ReadsTheNextWindowBeforeThisOneIsUpdated) {
    options_.budget_bytes = 2 * largest;
    const auto state = make();
    state->run(Access::write, fill);
    state->flush();
    state->run(Access::read, [](const Window&) {});  // the buffers hold windows 10 and 11 now
    const std::uint64_t before = state->counts().windows_read;
    state->run(Access::read, [&](const Window& window) {
        EXPECT_EQ(state->counts().windows_read - before, std::min<std::size_t>(window.index() + 2, 12));
    });
}

TEST_P(WindowPipeline, AFinishedUpdateIsOnItsWayToTheDiskBeforeTheNextOne) {
    const auto state = make();
    state->run(Access::write, fill);
    state->run(Access::update,
               [&](const Window& window) { EXPECT_EQ(state->counts().windows_written, 12 + window.index()); });
}

TEST_P(WindowPipeline, AWindowThatIsStillInABufferIsNotReadAgain) {
    options_.budget_bytes = 12 * largest;
    const auto state = make();
    state->run(Access::write, fill);
    for (int pass = 0; pass < 3; ++pass) state->run(Access::update, add_one);
    EXPECT_EQ(state->counts().windows_read, 0U);
    EXPECT_EQ(state->counts().windows_written, 48U);
    expect_raised(*state, 3);
}

TEST_P(WindowPipeline, PrefetchReadsTheFirstWindowsAndNoneTwice) {
    const auto state = make();
    state->run(Access::write, fill);
    state->flush();
    state->prefetch();
    const auto first = state->counts().windows_read;
    EXPECT_LE(first, 3U) << "as many as there are buffers";
    // A write that took longer than those behind it has left its buffer with one of the first windows, which is not read again.
    const auto kept = 3U - first;
    EXPECT_LE(kept, 2U);
    state->prefetch();
    EXPECT_EQ(state->counts().windows_read, first);
    state->run(Access::read, [](const Window&) {});
    EXPECT_EQ(state->counts().windows_read, 12U - kept);
    EXPECT_EQ(state->counts().windows_written, 12U) << "a pass that only reads writes nothing";
}

TEST_P(WindowPipeline, WindowsCanBeHeldInAnyOrderUpToTheBuffers) {
    const auto state = make();
    state->run(Access::write, fill);
    state->flush();
    EXPECT_TRUE(state->prefetch(7));
    const Window seven = state->acquire(7, Access::read);
    const Window two = state->acquire(2, Access::update);
    const Window five = state->acquire(5, Access::read);
    EXPECT_FALSE(state->prefetch(9)) << "no buffer is free";
    EXPECT_EQ(thrown_by([&] { (void)state->acquire(9); }).code, Errc::wrong_call_order);
    EXPECT_EQ(thrown_by([&] { (void)state->acquire(7); }).code, Errc::wrong_call_order);
    EXPECT_EQ(seven.array<float>(0)[3], 703.0F);
    two.array<float>(0)[0] = -1.0F;
    state->release(two, Access::update);
    state->release(five, Access::read);
    state->release(seven, Access::read);
    EXPECT_EQ(thrown_by([&] { state->release(seven, Access::read); }).code, Errc::wrong_call_order);
    for (const std::size_t window : {9U, 10U, 11U}) state->release(state->acquire(window, Access::read), Access::read);
    const Window again = state->acquire(2, Access::read);
    EXPECT_EQ(again.array<float>(0)[0], -1.0F);
    EXPECT_EQ(again.array<float>(0)[1], 201.0F);
    state->release(again, Access::read);
}

TEST_P(WindowPipeline, PartsOfAPassComeInAnyOrderAndTogetherAreAPass) {
    const auto state = make();
    state->run(Access::write, fill);
    std::vector<std::size_t> order;
    for (const std::size_t first : {9U, 6U, 0U, 3U}) {
        state->prefetch(first);
        state->run(first, first + 3, Access::update, [&order](const Window& window) {
            order.push_back(window.index());
            add_one(window);
        });
    }
    EXPECT_EQ(order, (std::vector<std::size_t>{9, 10, 11, 6, 7, 8, 0, 1, 2, 3, 4, 5}));
    state->run(4, 4, Access::update, [](const Window&) { FAIL() << "there is no window in it"; });
    expect_raised(*state, 1);
    state->prefetch();
    state->run(Access::update, add_one);
    expect_raised(*state, 2);
}

TEST_P(WindowPipeline, APartOfAPassThatAnUpdateLeftHalfDoneIsNotHandedOut) {
    const auto state = make();
    state->run(Access::write, fill);
    const auto half = [](const Window& window) {
        if (window.index() == 4) throw std::runtime_error{"half done"};
    };
    EXPECT_THROW(state->run(3, 6, Access::update, half), std::runtime_error);
    EXPECT_THROW(state->run(Access::read, [](const Window&) {}), std::runtime_error);
}

TEST_P(WindowPipeline, WindowsReadAheadInVainGiveWay) {
    const auto state = make();
    state->run(Access::write, fill);
    state->flush();
    for (const std::size_t window : {9U, 10U, 11U}) (void)state->prefetch(window);
    state->run(Access::update, add_one);
    expect_raised(*state, 1);
}

TEST_P(WindowPipeline, ShortReadsAndWritesChangeNothing) {
    options_.io.block_bytes = 8192;
    options_.io.faults.block = [](IoDirection, std::uint64_t, std::size_t length) {
        return static_cast<std::int64_t>(std::min<std::size_t>(length, 4096));
    };
    const auto state = make();
    state->run(Access::write, fill);
    for (int pass = 0; pass < 3; ++pass) state->run(Access::update, add_one);
    expect_raised(*state, 3);
}

/// Fails blocks of one direction once it is armed.
struct Trap {
    std::atomic<int> error = 0;
    void set_in(PipelineOptions& options, IoDirection direction, std::uint64_t from_offset) {
        options.io.faults.block = [this, direction, from_offset](IoDirection d, std::uint64_t offset,
                                                                 std::size_t length) {
            const int e = d == direction && offset >= from_offset ? error.load() : 0;
            return e != 0 ? -std::int64_t{e} : static_cast<std::int64_t>(length);
        };
    }
};

TEST_P(WindowPipeline, AFailedWriteIsThrownByThePassOrTheNextCallAndEverAfter) {
    for (const auto& [number, code] : {std::pair{ENOSPC, Errc::no_space}, std::pair{EIO, Errc::io_failed}}) {
        Trap trap;
        trap.set_in(options_, IoDirection::write, 60'000);
        const auto state = make();
        state->run(Access::write, fill);
        state->flush();
        trap.error = number;
        const auto error = thrown_by([&] {
            state->run(Access::update, add_one);
            state->flush();
        });
        EXPECT_EQ(error.code, code);
        EXPECT_TRUE(error.says("cannot write window ")) << error.message;
        trap.error = 0;
        const auto same = [&](auto call) { EXPECT_EQ(thrown_by(call).message, error.message); };
        same([&] { state->run(Access::update, add_one); });
        same([&] { state->prefetch(); });
        same([&] { (void)state->prefetch(1); });
        same([&] { (void)state->acquire(0); });
        same([&] { state->flush(); });
    }
}

TEST_P(WindowPipeline, AWriteThatFailsAfterTheLastUpdateIsNotLost) {
    Trap trap;
    trap.set_in(options_, IoDirection::write, 0);
    const auto state = make();
    state->run(Access::write, fill);
    state->flush();
    state->run(Access::update, [&](const Window& window) {
        if (window.index() == 11) trap.error = EIO;  // its write starts when this returns
    });
    EXPECT_EQ(thrown_by([&] { state->flush(); }).code, Errc::io_failed);
}

TEST_P(WindowPipeline, AFailedReadAheadIsThrownByThePass) {
    Trap trap;
    trap.set_in(options_, IoDirection::read, 0);
    const auto state = make();
    state->run(Access::write, fill);
    state->flush();
    trap.error = EIO;
    state->prefetch();
    int updates = 0;
    const auto error = thrown_by([&] { state->run(Access::update, [&updates](const Window&) { ++updates; }); });
    EXPECT_EQ(error.code, Errc::io_failed);
    EXPECT_TRUE(error.says("cannot read window ")) << error.message;
    EXPECT_LE(updates, static_cast<int>(state->buffer_count()));  // those that were still in a buffer
    EXPECT_LT(updates, static_cast<int>(state->window_count()));
}

TEST_P(WindowPipeline, ATruncatedFileIsNoticed) {
    const auto state = make();
    state->run(Access::write, fill);
    state->flush();
    ASSERT_EQ(::truncate(state->file().path().c_str(), static_cast<::off_t>(state->file().file_bytes() / 2)), 0);
    const auto error = thrown_by([&] {
        state->run(Access::update, add_one);
        state->run(Access::update, add_one);
    });
    EXPECT_EQ(error.code, Errc::stale_swap);
    EXPECT_TRUE(error.says("ends inside window ")) << error.message;
}

TEST_P(WindowPipeline, ALostWriteIsNoticedInTheNextPass) {
    // The disk acknowledges a window and keeps the old one.
    const auto state = make();
    state->run(Access::write, fill);
    state->flush();
    std::filesystem::copy_file(state->file().path(), disk_.path() / "old");
    state->run(Access::update, add_one);
    state->flush();
    std::filesystem::copy_file(disk_.path() / "old", state->file().path(),
                               std::filesystem::copy_options::overwrite_existing);
    const auto error = thrown_by([&] { state->run(Access::update, add_one); });
    EXPECT_EQ(error.code, Errc::stale_swap);
    EXPECT_TRUE(error.says("generation 1")) << error.message;
}

TEST_P(WindowPipeline, StateThatAnUpdateLeftHalfDoneIsNotHandedOut) {
    const auto state = make();
    state->run(Access::write, fill);
    EXPECT_THROW(state->run(Access::update,
                            [](const Window& window) {
                                if (window.index() == 4) throw std::runtime_error{"in the middle"};
                            }),
                 std::runtime_error);
    EXPECT_THROW(state->run(Access::update, add_one), std::runtime_error);
    EXPECT_THROW(state->flush(), std::runtime_error);
}

TEST_P(WindowPipeline, ADiskThatFillsUpInTheMiddleIsSaidSo) {
    const TemporaryFolder mountpoint;
    if (::mount("tmpfs", mountpoint.path().c_str(), "tmpfs", 0, "size=200k") != 0) {
        GTEST_SKIP() << "mounting a small disk needs root; the error numbers were checked";
    }
    {
        const SwapFolder folder{mountpoint.path(), "run", 0};
        options_.file.preallocate = [](int descriptor, std::uint64_t bytes) {  // a file system that cannot reserve
            return ::ftruncate(descriptor, static_cast<::off_t>(bytes));
        };
        offload::WindowPipeline state{folder, "state", twelve_windows(), options_};
        const int fat = ::open((mountpoint.path() / "fat").c_str(), O_WRONLY | O_CREAT, 0600);
        EXPECT_EQ(::posix_fallocate(fat, 0, 120'000), 0);  // somebody else's
        ::close(fat);
        const auto error = thrown_by([&] {
            state.run(Access::write, fill);
            state.flush();
        });
        EXPECT_EQ(error.code, Errc::no_space);
        EXPECT_TRUE(error.says("state.swap")) << error.message;
    }
    ::umount(mountpoint.path().c_str());
}

TEST_P(WindowPipeline, NoWindowsAreNoWork) {
    offload::WindowPipeline state{folder_, "empty", {}, options_};
    state.run(Access::write, fill);
    state.prefetch();
    state.run(Access::update, add_one);
    state.flush();
    EXPECT_EQ(state.counts().windows_written, 0U);
}

INSTANTIATE_TEST_SUITE_P(Engines, WindowPipeline, testing::Values(IoEngine::uring, IoEngine::threads),
                         [](const auto& instance) { return instance.param == IoEngine::uring ? "Uring" : "Threads"; });

TEST(WindowPipeline, BothEnginesWriteTheSameBytes) {
    if (!strata::offload::has_uring()) GTEST_SKIP() << "this kernel refuses io_uring";
    const TemporaryFolder disk;
    std::vector<std::vector<std::byte>> files;
    for (const IoEngine engine : {IoEngine::uring, IoEngine::threads}) {
        const SwapFolder folder{disk.path(), "run", 0};
        offload::WindowPipeline state{folder, "state", twelve_windows(), {.io = {.engine = engine}}};
        EXPECT_EQ(state.engine(), engine);
        state.run(Access::write, [](const Window& window) {
            for (float& value : window.array<float>(0)) value = static_cast<float>(window.index());
        });
        for (int pass = 0; pass < 2; ++pass) {
            state.run(Access::update, [](const Window& window) {
                for (float& value : window.array<float>(0)) value *= 1.5F;
            });
        }
        std::vector<std::byte> bytes;
        state.run(Access::read, [&bytes](const Window& window) {
            const auto all = window.array<std::byte>(0);
            bytes.insert(bytes.end(), all.begin(), all.end());
        });
        files.push_back(std::move(bytes));
    }
    EXPECT_FALSE(files[0].empty());
    EXPECT_EQ(files[0], files[1]);
}

TEST(WindowPipeline, ABudgetTooSmallForTwoWindowsIsRefused) {
    const TemporaryFolder disk;
    const SwapFolder folder{disk.path(), "run", 0};
    const auto error = thrown_by([&] {
        const offload::WindowPipeline state{folder, "state", twelve_windows(), {.budget_bytes = largest}};
    });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_FALSE(std::filesystem::exists(folder.file("state.swap")));
}

}  // namespace
