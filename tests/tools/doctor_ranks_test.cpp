// `strata doctor` with ranks: of this host, and of hosts that are processes of this machine behind a remote shell of this test's own.

#include <filesystem>
#include <fstream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "doctor_run.hpp"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using strata_test::Outcome;

struct DoctorRanks : strata_test::DoctorRun {
    /// Hosts "one" and "two", and "dead", which does not answer.
    json lines_of_hosts(const std::string& hosts) {
        std::ofstream{folder / "hosts"} << hosts;
        const fs::path shell = folder / "shell";
        std::ofstream{shell} << "#!/bin/sh\n[ \"$1\" = dead ] && exit 255\nTMPDIR='" << folder.string()
                             << "/tmp_'$1\nmkdir -p \"$TMPDIR\"\nexport TMPDIR\nshift\nexec sh -c \"$*\"\n";
        ::chmod(shell.c_str(), 0755);
        return lines_of(
            {"--hostfile", (folder / "hosts").string(), "--remote-shell", shell.string(), "--output", folder.string()});
    }
    void expect_hosts_looked_at(const json& lines) const {
        for (const char* host : {"one", "two"}) {
            (void)one_about(lines, "processor", host);
            const json values = one_about(lines, "output folder", host).at("values");
            EXPECT_EQ(values.value("folder", ""), folder.string());
        }
    }
};

TEST_F(DoctorRanks, RanksAreStartedAndMeasured) {
    const json lines = lines_of({"-n", "2", "--output", (folder / "out").string()});
    const json ranks = one_about(lines, "ranks");
    EXPECT_EQ(ranks.at("state"), "ok") << ranks;
    EXPECT_EQ(ranks.at("values").at("started"), 2);
    EXPECT_EQ(one_about(lines, "network").at("values").at("pairs").size(), 1U);
    EXPECT_GT(one_about(lines, "all-reduce").at("values").at("seconds"), 0);
    const json shared = one_about(lines, "shared folder");
    EXPECT_EQ(shared.at("values").at("folder"), folder.string());
    EXPECT_EQ(shared.at("values").at("uids"), json{::getuid()});
    EXPECT_FALSE(fs::exists(folder / "out"));
    expect_nothing_left(folder);
}

TEST_F(DoctorRanks, HostsAreLookedAtAndOneThatDoesNotAnswerIsALine) {
    // Open MPI 5 asks the kernel by which network a peer is reached, which for the own address is none that it uses.
    variable("OMPI_MCA_reachable", "weighted");
    // Its collectives by hosts (`han`) take two names of one machine now for one host and now for two, and wait for ever.
    variable("OMPI_MCA_coll", "^han");
    const json lines = lines_of_hosts("one slots=1\ntwo slots=1\ndead slots=4\n");
    EXPECT_TRUE(has(one_about(lines, "host"), "found", "dead does not answer")) << lines;
    const json ranks = one_about(lines, "ranks");
    EXPECT_EQ(ranks.at("values").at("hosts"), (json{"one", "two"})) << ranks;
    EXPECT_EQ(ranks.at("values").at("ranks"), 2);
    const json pair = one_about(lines, "network").at("values").at("pairs").at(0);
    EXPECT_EQ(pair.at("from"), "one");
    EXPECT_EQ(pair.at("to"), "two");
    EXPECT_EQ(one_about(lines, "clocks").at("state"), "ok");
    expect_hosts_looked_at(lines);
    const Outcome bad = strata({"--hostfile", (folder / "no_such_file").string()});
    EXPECT_NE(bad.status, 0);
    EXPECT_NE(bad.err.find("no_such_file"), std::string::npos) << bad.err;
}

TEST_F(DoctorRanks, HostsAreLookedAtWhereTheirRanksDoNotReachEachOther) {
    variable("OMPI_MCA_pml", "ob1");
    variable("OMPI_MCA_btl", "self");
    const json lines = lines_of_hosts("one slots=1\ntwo slots=1\n");
    EXPECT_EQ(one_about(lines, "ranks").at("state"), "problem") << lines;
    EXPECT_TRUE(about(lines, "network").empty()) << lines;
    expect_hosts_looked_at(lines);
}

}  // namespace
