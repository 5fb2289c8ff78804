// tests/unit/health/host_reading_test.cpp - what is read of a kernel's files, in a folder that a test has made.

#include <strata/health/host_reading.hpp>

#include <fstream>

#include <gtest/gtest.h>

#include "../../support/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;
using strata::health::HostReading;
using strata::health::read_host;

class Kernel {
public:
    void write(const std::string& path, const std::string& text) const {
        fs::create_directories((folder_.path() / path).parent_path());
        std::ofstream{folder_.path() / path} << text;
    }
    [[nodiscard]] HostReading read() const { return read_host({folder_.path()}, folder_.path()); }

private:
    strata_test::TemporaryFolder folder_;
};

constexpr const char* meminfo = "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable:    600 kB\n";

TEST(HostReading, WhatAKernelDoesNotShowStaysEmpty) {
    const HostReading reading = Kernel{}.read();
    EXPECT_FALSE(reading.memory_total || reading.memory_available || reading.temperature);
    EXPECT_TRUE(reading.errors.empty());
    ASSERT_EQ(reading.space.size(), 1U);
    EXPECT_GT(reading.space[0].total, reading.space[0].available / 2);
    EXPECT_TRUE(read_host({"/no/such/folder"}, "/no/such/folder").space.empty());
}

TEST(HostReading, HowLongTasksWaitForDisksIsTheKernelsReckoning) {
    const Kernel kernel;
    EXPECT_FALSE(kernel.read().disk_wait_percent);
    kernel.write("proc/pressure/io", "some avg10=45.06 avg60=3.00 avg300=1.00 total=7\nfull avg10=0.00 avg60=0.00\n");
    EXPECT_EQ(kernel.read().disk_wait_percent, 45.06);
    kernel.write("proc/pressure/io", "some avg10=what\n");
    EXPECT_FALSE(kernel.read().disk_wait_percent);
}

TEST(HostReading, TheHostsMemoryIsTheLimitWithoutACgroups) {
    const Kernel kernel;
    kernel.write("proc/meminfo", meminfo);
    kernel.write("proc/self/cgroup", "0::/job\n");
    kernel.write("sys/fs/cgroup/job/memory.max", "max\n");
    kernel.write("sys/fs/cgroup/job/memory.current", "999\n");
    EXPECT_EQ(kernel.read().memory_total, 1'024'000U);
    EXPECT_EQ(kernel.read().memory_available, 614'400U);
}

TEST(HostReading, TheTightestCgroupUpToTheRootCounts) {
    const Kernel kernel;
    kernel.write("proc/meminfo", meminfo);
    kernel.write("proc/self/cgroup", "0::/slice/job\n");
    kernel.write("sys/fs/cgroup/slice/job/memory.max", "500000\n");
    kernel.write("sys/fs/cgroup/slice/job/memory.current", "100000\n");
    kernel.write("sys/fs/cgroup/slice/memory.max", "400000\n");
    kernel.write("sys/fs/cgroup/slice/memory.current", "390000\n");
    kernel.write("sys/fs/cgroup/slice/memory.stat", "anon 5\ninactive_file 40000\n");
    EXPECT_EQ(kernel.read().memory_total, 400'000U);
    EXPECT_EQ(kernel.read().memory_available, 50'000U);  // the page cache that goes first is no use
}

TEST(HostReading, AContainerSeesItsLimitAtTheRoot) {
    const Kernel kernel;
    kernel.write("proc/meminfo", meminfo);
    kernel.write("proc/self/cgroup", "12:cpu,memory:/docker/abc\n");
    kernel.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "300000\n");
    kernel.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "299000\n");
    EXPECT_EQ(kernel.read().memory_available, 1000U);
}

TEST(HostReading, DisksThatCountFailedRequestsAreListed) {
    const Kernel kernel;
    kernel.write("sys/block/sda/device/ioerr_cnt", "0x1f\n");
    kernel.write("sys/block/nvme0n1/stat", "1 2 3\n");
    const HostReading reading = kernel.read();
    ASSERT_EQ(reading.errors.size(), 1U);
    EXPECT_EQ(reading.errors[0].device, "sda");
    EXPECT_EQ(reading.errors[0].failed, 31U);
}

TEST(HostReading, EmptyDrivesAreNoDisksThatFail) {
    const Kernel kernel;
    kernel.write("sys/block/sda/device/ioerr_cnt", "0x2\n");
    kernel.write("sys/block/sda/removable", "0\n");
    kernel.write("sys/block/sr0/device/ioerr_cnt", "0x1f4\n");
    kernel.write("sys/block/sr0/removable", "1\n");
    const HostReading reading = kernel.read();
    ASSERT_EQ(reading.errors.size(), 1U);
    EXPECT_EQ(reading.errors[0].device, "sda");
}

TEST(HostReading, TheHottestSensorIsNamed) {
    const Kernel kernel;
    kernel.write("sys/class/hwmon/hwmon0/name", "nvme\n");
    kernel.write("sys/class/hwmon/hwmon0/temp1_input", "41850\n");
    kernel.write("sys/class/hwmon/hwmon0/temp1_crit", "99850\n");
    kernel.write("sys/class/hwmon/hwmon1/temp1_input", "-128000\n");
    kernel.write("sys/class/thermal/thermal_zone0/temp", "72000\n");
    kernel.write("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
    EXPECT_EQ(kernel.read().temperature, 72.0);
    EXPECT_EQ(kernel.read().hottest, "x86_pkg_temp");
}

}  // namespace
