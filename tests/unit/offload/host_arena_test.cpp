// Memory that is aligned, present, and pinned as long as it lives.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/mman.h>

#include <gtest/gtest.h>

#include <strata/offload/host_arena.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::offload::HostArena;
using strata_test::thrown_by;

TEST(HostArena, IsAlignedZeroAndPresentFromTheStart) {
    const HostArena arena{"a test", 100'001};
    ASSERT_EQ(arena.bytes().size(), 102'400U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.bytes().data()) % 4096, 0U);
    std::vector<unsigned char> present(25);
    ASSERT_EQ(::mincore(arena.bytes().data(), arena.bytes().size(), present.data()), 0);
    EXPECT_TRUE(std::all_of(present.begin(), present.end(), [](unsigned char page) { return (page & 1) != 0; }));
    EXPECT_TRUE(std::all_of(arena.bytes().begin(), arena.bytes().end(), [](std::byte b) { return b == std::byte{}; }));
}

TEST(HostArena, NothingIsAllocatedWhenTheNodeIsTooSmall) {
    const auto error = thrown_by([] { const HostArena arena{"holding the moon", std::size_t{1} << 46}; });
    EXPECT_EQ(error.code, Errc::not_enough_memory);
    EXPECT_TRUE(error.says("holding the moon needs 65536.00 GiB of host memory on this node, ")) << error.message;
}

TEST(HostArena, IsPinnedWhileItLives) {
    std::vector<std::string> events;
    const auto note = [&events](const char* what) {
        return [&events, what](std::span<std::byte> bytes) { events.push_back(what + std::to_string(bytes.size())); };
    };
    {
        const HostArena arena{"a test", 4096, {.pin = note("pin "), .unpin = note("unpin ")}};
        EXPECT_EQ(events, std::vector<std::string>{"pin 4096"});
    }
    EXPECT_EQ(events, (std::vector<std::string>{"pin 4096", "unpin 4096"}));
    const auto refuse = [](std::span<std::byte>) { throw std::runtime_error{"no GPU"}; };
    EXPECT_THROW((HostArena{"a test", 4096, {.pin = refuse, .unpin = note("never ")}}), std::runtime_error);
    EXPECT_EQ(events.size(), 2U);
}

}  // namespace
