#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/hostfile.hpp>

#include "temporary_json.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::thrown_by;
using Slots = std::vector<std::int64_t>;

std::vector<Host> hosts(const std::string& text) { return parse_hostfile(text, "hosts"); }
const std::vector<Host>& two() {
    static const std::vector<Host> made = hosts("worker-0 slots=4\nworker-1 slots=4\n");
    return made;
}

TEST(Hostfile, HostsAndTheirSlots) {
    EXPECT_EQ(
        hosts(
            "# first\nworker-1 slots=2\n\n worker-2\tslots=2 max_slots=4 # more\r\nlocalhost slots=1\n123.23.12.10 slots=2"),
        (std::vector<Host>{{"worker-1", {0, 1}}, {"worker-2", {0, 1}}, {"localhost", {0}}, {"123.23.12.10", {0, 1}}}));
    const strata_test::TemporaryJson file{"a slots=1\n"};
    EXPECT_EQ(load_hostfile(file.path()).front().name, "a");
}

TEST(Hostfile, AllLinesThatAreWrongAreToldAtOnce) {
    const auto problem = thrown_by(
        [] { (void)hosts("this is bad slots=1\na slots=2\nmissing=slots\na slots=2\nb slots=0\nc slots=x\n"); });
    EXPECT_EQ(problem.code, Errc::unreadable_config);
    EXPECT_EQ(
        problem.message,
        "[ST2101] hosts:1: is no line of a hostfile; hosts:3: is no line of a hostfile; hosts:4: names 'a' a second time; "
        "hosts:5: is no line of a hostfile; hosts:6: is no line of a hostfile. Fix: write lines such as `worker-0 slots=8`; "
        "name each host once, with all of its slots.");
    for (const char* text : {"", "# nothing\n"})
        EXPECT_NE(thrown_by([&] { (void)hosts(text); }).message.find("names no hosts"), std::string::npos);
    EXPECT_EQ(thrown_by([] { (void)load_hostfile("/nowhere/hosts"); }).code, Errc::unreadable_config);
}

/// As Open MPI and Accelerate's mpirun_hostfile have it, and PBS' $PBS_NODEFILE.
TEST(Hostfile, ANameAloneIsASlotEachTime) {
    EXPECT_EQ(hosts("node1\nnode2 # the other\nnode1\nnode3 slots=2\nnode1\n"),
              (std::vector<Host>{{"node1", {0, 1, 2}}, {"node2", {0}}, {"node3", {0, 1}}}));
    for (const char* text : {"a\na slots=2\n", "a slots=2\na\n"})
        EXPECT_NE(thrown_by([&] { (void)hosts(text); }).message.find("hosts:2: names 'a' a second time"),
                  std::string::npos);
}

TEST(Hostfile, NamesThatMpirunOrSshWouldTakeForSomethingElseAreRefused) {
    for (const char* name : {"-oProxyCommand=x", "fe80::1", "a,b"}) {
        const auto problem = thrown_by([&] { (void)hosts(std::string{name} + " slots=2\n"); });
        EXPECT_EQ(problem.code, Errc::unreadable_config) << name;
        EXPECT_NE(problem.message.find("names the host '" + std::string{name} + "', which "), std::string::npos)
            << problem.message;
    }
}

TEST(Hostfile, FiltersAreDeepSpeeds) {
    EXPECT_EQ(filter_hosts(two(), "", ""), two());
    EXPECT_EQ(filter_hosts(two(), "worker-1:0,3", ""), (std::vector<Host>{{"worker-1", {0, 3}}}));
    EXPECT_EQ(filter_hosts(two(), "", "worker-1"), (std::vector<Host>{{"worker-0", {0, 1, 2, 3}}}));
    EXPECT_EQ(filter_hosts(two(), "", "worker-0:0,1@worker-1:3"),
              (std::vector<Host>{{"worker-0", {2, 3}}, {"worker-1", {0, 1, 2}}}));
    EXPECT_EQ(filter_hosts(two(), "worker-0:1@worker-0:0,1", ""), (std::vector<Host>{{"worker-0", {0, 1}}}));
}

TEST(Hostfile, FiltersThatNameNothingAreRefused) {
    const auto refused = [](const std::string& include, const std::string& exclude) {
        return thrown_by([&] { (void)filter_hosts(two(), include, exclude); });
    };
    EXPECT_NE(refused("worker-3", "").message.find("did you mean 'worker-0'"), std::string::npos);
    for (const char* filter : {"worker-0:4", "worker-0:", "worker-1@worker-0:1@5", "worker-0:x", "jeff"}) {
        EXPECT_EQ(refused(filter, "").code, Errc::bad_argument) << filter;
        EXPECT_EQ(refused("", filter).code, Errc::bad_argument) << filter;
    }
    EXPECT_EQ(refused("worker-0", "worker-1").code, Errc::bad_argument);
    EXPECT_NE(refused("", "worker-0@worker-1").message.find("leaves no slot"), std::string::npos);
}

}  // namespace
