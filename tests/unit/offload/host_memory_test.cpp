// Free memory is read from folders that stand for a node, and a need that is too large is one sentence.

#include <cstdint>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include <strata/offload/host_memory.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;
namespace offload = strata::offload;
namespace fs = std::filesystem;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

void write(const fs::path& path, const std::string& text) { strata::storage::write_file(path, text); }

/// A node with 8 GiB available and no control group.
void make_node(const fs::path& root) {
    write(root / "proc/meminfo", "MemTotal:  16777216 kB\nMemFree:  100 kB\nMemAvailable:    8388608 kB\n");
}

TEST(HostMemory, WithoutControlGroupsItIsWhatTheNodeHas) {
    const TemporaryFolder node;
    make_node(node.path());
    EXPECT_EQ(offload::free_host_memory(node.path()), 8 * gib);
    write(node.path() / "proc/self/cgroup", "0::/a/b\n");  // as in a container that sees its host's path
    EXPECT_EQ(offload::free_host_memory(node.path()), 8 * gib);
}

TEST(HostMemory, TheTightestGroupAboveTheProcessCounts) {
    const TemporaryFolder node;
    make_node(node.path());
    const fs::path top = node.path() / "sys/fs/cgroup";
    write(node.path() / "proc/self/cgroup", "0::/a/b\n");
    write(top / "a/b/memory.max", "max\n");
    write(top / "a/b/memory.current", "1\n");
    write(top / "a/memory.max", std::to_string(4 * gib) + "\n");
    write(top / "a/memory.current", std::to_string(3 * gib) + "\n");
    EXPECT_EQ(offload::free_host_memory(node.path()), 1 * gib);
    write(top / "a/memory.stat", "anon 5\ninactive_file " + std::to_string(2 * gib) + "\n");  // pages of read files
    EXPECT_EQ(offload::free_host_memory(node.path()), 3 * gib);
    write(top / "a/memory.current", std::to_string(9 * gib) + "\n");  // over its limit for a moment
    EXPECT_EQ(offload::free_host_memory(node.path()), 0U);
}

TEST(HostMemory, TheFirstVersionOfControlGroupsIsReadToo) {
    const TemporaryFolder node;
    make_node(node.path());
    write(node.path() / "proc/self/cgroup", "5:devices:/x\n4:cpu,memory:/job\n");
    const fs::path group = node.path() / "sys/fs/cgroup/memory/job";
    write(group / "memory.limit_in_bytes", std::to_string(6 * gib));
    write(group / "memory.usage_in_bytes", std::to_string(4 * gib));
    write(group / "memory.stat", "inactive_file 1\ntotal_inactive_file " + std::to_string(gib) + "\n");
    EXPECT_EQ(offload::free_host_memory(node.path()), 3 * gib);
}

TEST(HostMemory, OfThisMachineIsMoreThanNothing) { EXPECT_GT(offload::free_host_memory(), 1'000'000U); }

TEST(HostMemory, ANeedThatIsTooLargeSaysBothNumbersAndAFix) {
    EXPECT_NO_THROW(offload::require_host_memory("the state", 3 * gib, "use more ranks", 3 * gib));
    const auto error =
        thrown_by([] { offload::require_host_memory("the state", 3 * gib + gib / 2, "use more ranks", 3 * gib); });
    EXPECT_EQ(error.code, Errc::not_enough_memory);
    EXPECT_EQ(error.message,
              "[ST2410] the state needs 3.50 GiB of host memory on this node, 3.00 GiB are free. Fix: use more ranks.");
}

TEST(HostMemory, ADiskThatIsTooSmallIsNamed) {
    const TemporaryFolder disk;
    EXPECT_NO_THROW(offload::require_disk_space("the state", disk.path(), 1));
    const auto error = thrown_by([&] { offload::require_disk_space("the state", disk.path(), gib << 30); });
    EXPECT_EQ(error.code, Errc::no_space);
    EXPECT_TRUE(error.says("needs 1073741824.00 GiB on " + disk.path().string())) << error.message;
    EXPECT_EQ(thrown_by([&] { (void)offload::free_disk_space(disk.path() / "no"); }).code, Errc::not_found);
}

}  // namespace
