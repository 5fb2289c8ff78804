// strata launch on many hosts, which here are processes of this machine: of a hostfile, and each started by itself.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "../../tools/launch_environment.hpp"
#include "../../tools/launch_hosts.hpp"
#include "many_hosts.hpp"

namespace {

namespace fs = std::filesystem;
using strata::tools::LaunchHost;
using strata_test::code_of;
using strata_test::has_ended;
using strata_test::Outcome;
using strata_test::text_of;

struct LaunchHosts : strata_test::ManyHosts {};

TEST_F(LaunchHosts, SlurmsListsAreRead) {
    using strata::tools::names_of_nodelist;
    EXPECT_EQ(names_of_nodelist("gpu[08-10,12],login,n[1-2]-ib"),
              (std::vector<std::string>{"gpu08", "gpu09", "gpu10", "gpu12", "login", "n1-ib", "n2-ib"}));
    EXPECT_EQ(names_of_nodelist("r[1-2]n[09,10]-ib,login"),
              (std::vector<std::string>{"r1n09-ib", "r1n10-ib", "r2n09-ib", "r2n10-ib", "login"}));
    for (const char* bad : {"", "a[", "a[1", "a[1-]", "a[3-1]", "a[x]", ",a", "a[1][", "a]1[", "a[1][x]"})
        EXPECT_EQ(code_of([&] { (void)names_of_nodelist(bad); }), "[ST2605]") << bad;
    const auto hosts = strata::tools::hosts_of_slurm("a[1-3]", "2(x2),1");
    EXPECT_EQ(strata::tools::host_list(hosts), "a1:2,a2:2,a3:1");
    for (const char* bad : {"", "2", "2(x3", "2(x4)", "0(x3)", "2(x2),x", "2(x2),1,1"})
        EXPECT_EQ(code_of([&] { (void)strata::tools::hosts_of_slurm("a[1-3]", bad); }), "[ST2605]") << bad;
}

TEST_F(LaunchHosts, TheFirstSlotsAreTakenAndUnevenHostsAreTold) {
    const std::vector<LaunchHost> hosts{{"a", {0, 1}}, {"b", {0, 1}}, {"c", {0, 1}}};
    EXPECT_EQ(strata::tools::warning_of_uneven(hosts), "");
    const auto three = strata::tools::first_slots(hosts, 3);
    EXPECT_EQ(strata::tools::host_list(three), "a:2,b:1");
    EXPECT_NE(strata::tools::warning_of_uneven(three).find("(a 2, b 1)"), std::string::npos);
    EXPECT_EQ(code_of([&] { (void)strata::tools::first_slots(hosts, 7); }), "[ST2601]");
}

TEST_F(LaunchHosts, GpusThatAreIdleAndCoresWithoutTimeAreKnown) {
    using strata::tools::warning_of_gpus;
    EXPECT_EQ(warning_of_gpus("a", 8, 8), "");
    EXPECT_EQ(warning_of_gpus("a", 4, 0), "") << "it trains on processors";
    EXPECT_EQ(warning_of_gpus("a", 9, 8), "host a has 9 ranks on 8 GPUs");
    EXPECT_EQ(warning_of_gpus("a", 1, 8), "host a has 1 rank on 8 GPUs, and a rank takes one: the others are idle");

    fs::create_directories(folder / "dev/nvidia-caps");
    for (const char* name : {"nvidia2", "nvidia3", "nvidia5", "nvidiactl", "nvidia-uvm", "null"})
        std::ofstream{folder / "dev" / name} << "";
    using strata::tools::visible_gpus;
    EXPECT_EQ(visible_gpus(folder / "dev", nullptr), 3) << "a container has those that it was given";
    EXPECT_EQ(visible_gpus(folder / "dev", "0,2"), 2);
    EXPECT_EQ(visible_gpus(folder / "dev", "GPU-1b2c"), 1);
    EXPECT_EQ(visible_gpus(folder / "dev", ""), 0);
    EXPECT_EQ(visible_gpus(folder / "dev", "0,-1,1"), 1);
    EXPECT_EQ(visible_gpus(folder / "none", "0,1"), 0);

    using strata::tools::cores_within;
    using strata::tools::parse_quota;
    EXPECT_EQ(cores_within(64, parse_quota("400000 100000\n")), 4);
    EXPECT_EQ(cores_within(64, parse_quota("250000 100000")), 2);
    EXPECT_EQ(cores_within(64, parse_quota("50000 100000")), 1);
    EXPECT_EQ(cores_within(2, parse_quota("400000 100000")), 2);
    EXPECT_EQ(cores_within(64, parse_quota("max 100000")), 64);
    EXPECT_EQ(cores_within(64, parse_quota("")), 64);
}

TEST_F(LaunchHosts, RanksRunOnAllHostsOfAHostfileAndNoCommandLineShowsTheKey) {
    ::setenv("NCCL_DEBUG", "WARN", 1);
    const Outcome outcome =
        run(joined(on_hosts("a slots=1\nb slots=2\n"),
                   {"-v", "--", "/bin/sh", "-c",
                    "echo \"rank $OMPI_COMM_WORLD_RANK on $STRATA_LAUNCH_HOST, threads "
                    "${OMP_NUM_THREADS:+set}, key '$STRATA_LAUNCH_KEY', secret '$STRATA_LAUNCH_SECRET'\""}));
    ::unsetenv("NCCL_DEBUG");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const char* line : {"rank 0 on a, threads set, key '', secret ", "rank 1 on b, threads set, key ''",
                             "rank 2 on b, threads set, key ''"})
        EXPECT_NE(outcome.out.find(line), std::string::npos) << line << " in " << outcome.out;
    for (const char* line : {"warning: hosts have different numbers of ranks (a 1, b 2)", "--host a:1,b:2",
                             "on all hosts NCCL_DEBUG=WARN", "OMPI_MCA_plm_rsh_agent="})
        EXPECT_NE(outcome.err.find(line), std::string::npos) << line << " in " << outcome.err;
    const std::regex key{"[0-9a-f]{64}"};
    EXPECT_FALSE(std::regex_search(text_of(folder / "asked"), key)) << text_of(folder / "asked");
    EXPECT_FALSE(std::regex_search(outcome.err, key)) << outcome.err;
}

TEST_F(LaunchHosts, FiltersChooseSlotsWhichBecomeTheVisibleGpus) {
    const auto hosts = on_hosts("a slots=2\nb slots=4\n");
    const std::vector<std::string> shown{"--", "/bin/sh", "-c",
                                         "echo \"$STRATA_LAUNCH_HOST sees $CUDA_VISIBLE_DEVICES.\""};
    const Outcome outcome = run(joined(joined(hosts, {"--include", "a@b:1,3"}), shown));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("a sees ."), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("b sees 1,3."), std::string::npos) << outcome.out;
    expect_error(run(joined(joined(hosts, {"--exclude", "c"}), shown)), 2, "ST2601", {"'c'"});
    expect_error(run(joined({"-n", "1", "--include", "a"}, shown)), 2, "ST2601", {"--hostfile"});
    expect_error(run(joined(joined(hosts, {"-n", "7"}), shown)), 2, "ST2601", {"7 ranks", "6 slots"});
}

TEST_F(LaunchHosts, OutputIsTaggedAndKept) {
    const Outcome outcome =
        run(joined(on_hosts("a slots=1\nb slots=1\n"), {"--tag-output", "--log-dir", (folder / "logs").string(), "--",
                                                        "/bin/sh", "-c", "echo first; echo second >&2; printf third"}));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const std::string rank : {"0", "1"}) {
        for (const char* line : {"first\n", "third\n"})
            EXPECT_NE(outcome.out.find("[rank " + rank + "] " + line), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.err.find("[rank " + rank + "] second\n"), std::string::npos) << outcome.err;
        const std::string log = text_of(folder / "logs" / ("rank_" + rank + ".log"));
        for (const char* word : {"first\n", "second\n", "third"}) EXPECT_NE(log.find(word), std::string::npos) << log;
    }
    std::ofstream{folder / "a_file"} << "";
    expect_error(run({"-n", "1", "--log-dir", (folder / "a_file").string(), "--", "/bin/true"}), 1, "ST2602",
                 {"a_file"});
}

TEST_F(LaunchHosts, AStopReachesAllHostsAndASecondOneEndsThem) {
    start("first", joined(joined(on_hosts("a slots=1\nb slots=1\n"), {"--"}), program("trains")));
    ASSERT_TRUE(appears("rank_0.trains") && appears("rank_1.trains")) << errors_of("first");
    running.at("first")->signal(SIGINT);
    const Outcome outcome = finish("first");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "stopping after this step (again to stop at once)\n");
    EXPECT_TRUE(fs::exists(folder / "rank_0.saved") && fs::exists(folder / "rank_1.saved"));

    for (const char* name : {"rank_0.pid", "rank_1.pid"}) fs::remove(folder / name);
    start("first", joined(joined(on_hosts("a slots=1\nb slots=1\n"), {"--"}), program("never_hears")));
    ASSERT_TRUE(appears("rank_0.pid") && appears("rank_1.pid")) << errors_of("first");
    running.at("first")->signal(SIGTERM);
    ASSERT_TRUE(says("first", "again to stop at once"));
    running.at("first")->signal(SIGTERM);
    EXPECT_EQ(finish("first").status, 128 + SIGTERM);
}

TEST_F(LaunchHosts, ARankOfAnotherHostThatDiesIsNamed) {
    start("first", joined(joined(on_hosts("a slots=1\nb slots=1\n"), {"--"}), program("never_hears")));
    ASSERT_TRUE(appears("rank_0.pid") && appears("rank_1.pid")) << errors_of("first");
    pid_t process = -1;
    std::ifstream{folder / "rank_1.pid"} >> process;
    ::kill(process, SIGKILL);
    expect_error(finish("first"), 128 + SIGKILL, "ST2606", {"rank 1/2 on host ", "SIGKILL"});
}

TEST_F(LaunchHosts, NodesThatWereStartedByThemselvesRunOneProgram) {
    const std::string file = yaml(3, 3);
    const std::vector<std::string> shown{"/bin/sh", "-c",
                                         "echo \"rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE\"; "
                                         "[ $OMPI_COMM_WORLD_RANK = 2 ] && exit 7; sleep 100"};
    start_node("second", file, 1, shown);  // in any order
    start_node("third", file, 2, shown);
    start_node("first", file, 0, shown);
    const Outcome first = finish("first");
    EXPECT_EQ(first.status, 7) << first.err;
    EXPECT_NE(first.out.find("rank 2 of 3"), std::string::npos) << first.out;
    EXPECT_EQ(finish("second").status, 7) << "all nodes end alike";
    EXPECT_EQ(finish("third").status, 7);
}

TEST_F(LaunchHosts, ANodeWithAnotherSecretOrNumberIsToldSoAndTheOthersGoOn) {
    const std::string file = yaml(2, 2);
    start_node("first", file, 0, {"/bin/true"});
    ::setenv("STRATA_LAUNCH_SECRET", "another secret than theirs", 1);
    start_node("stranger", file, 1, {"/bin/true"});
    const Outcome stranger = finish("stranger");
    expect_error(stranger, 2, "ST2122", {"another secret", "STRATA_LAUNCH_SECRET"});
    EXPECT_EQ(stranger.err.find("another secret than theirs"), std::string::npos) << "the secret itself";
    EXPECT_TRUE(says("first", "does not know the secret"));
    ::setenv("STRATA_LAUNCH_SECRET", "a secret of this test", 1);

    const std::string other = (folder / "other.yaml").string();
    std::ofstream{other} << std::regex_replace(text_of(file), std::regex{"num_machines: 2\nnum_processes: 2"},
                                               "num_machines: 3\nnum_processes: 3");
    start_node("stranger", other, 2, {"/bin/true"});
    expect_error(finish("stranger"), 2, "ST2122", {"num_machines is 3"});
    std::ofstream{other} << std::regex_replace(text_of(file), std::regex{"num_processes: 2"}, "num_processes: 4");
    start_node("stranger", other, 1, {"/bin/true"});
    expect_error(finish("stranger"), 2, "ST2122", {"2 ranks", "num_processes"});

    start_node("second", file, 1, {"/bin/true"});
    EXPECT_EQ(finish("first").status, 0);
    EXPECT_EQ(finish("second").status, 0);
}

TEST_F(LaunchHosts, ASecondNodeOfTheSameNumberIsRefused) {
    const std::string file = yaml(2, 2);
    start_node("first", file, 0, program("trains"));
    start_node("second", file, 1, program("trains"));
    ASSERT_TRUE(appears("rank_0.trains") && appears("rank_1.trains")) << errors_of("first");
    start_node("twin", file, 1, program("trains"));
    expect_error(finish("twin"), 2, "ST2122", {"machine_rank 1 is already that of host"});
    running.at("second")->signal(SIGTERM);  // a pod that is to go: all save
    EXPECT_EQ(finish("first").status, 0);
    EXPECT_EQ(finish("second").status, 0);
    EXPECT_TRUE(fs::exists(folder / "rank_0.saved") && fs::exists(folder / "rank_1.saved"));
}

TEST_F(LaunchHosts, NodesThatDoNotComeAreNamed) {
    const std::string file = yaml(3, 3);
    start_node("second", file, 1, {"/bin/true"}, {"--wait", "1"});
    expect_error(finish("second"), 75, "ST2123", {"127.0.0.1", "within 1 s"});
    start_node("first", file, 0, {"/bin/true"}, {"--wait", "2"});
    start_node("second", file, 1, {"/bin/true"});
    expect_error(finish("first"), 75, "ST2123", {"machine_rank 2 did not come within 2 s"});
    EXPECT_EQ(finish("second").status, 75);
}

TEST_F(LaunchHosts, WordsAboutNodesThatAreNotUnderstoodAreOneSentence) {
    ::unsetenv("STRATA_LAUNCH_SECRET");
    const std::string file = yaml(2, 2);
    start_node("first", file, 0, {"/bin/true"});
    expect_error(finish("first"), 2, "ST2601", {"need a secret", "openssl rand"});
    std::ofstream{folder / "short"} << "short\n";
    start_node("first", file, 0, {"/bin/true"}, {"--secret-file", (folder / "short").string()});
    expect_error(finish("first"), 2, "ST2601", {"shorter than 16"});
    start_node("first", file, 2, {"/bin/true"});
    expect_error(finish("first"), 2, "ST2601", {"--machine-rank"});
    const std::string wrong = (folder / "wrong.yaml").string();
    std::ofstream{wrong} << std::regex_replace(text_of(file), std::regex{"main_process_port: "},
                                               "main_process_port: 9");
    start_node("first", wrong, 0, {"/bin/true"});
    expect_error(finish("first"), 2, "ST2601", {"main_process_port", "wrong.yaml:5"});
    std::ofstream{wrong} << std::regex_replace(text_of(file), std::regex{"num_processes: 2"}, "num_processes: 3");
    start_node("first", wrong, 0, {"/bin/true"});
    expect_error(finish("first"), 2, "ST2601", {"3 processes for 2 machines", "multiple of num_machines"});
    expect_error(run(joined(on_hosts("a slots=1\nb slots=1\n"), {"--elastic", "1:2", "--", "/bin/true"})), 2, "ST2601",
                 {"--elastic-batch keep"});
    expect_error(run(joined(on_hosts("a slots=1\nb slots=1\n"), {"--elastic", "2", "--", "/bin/true"})), 2, "ST2601",
                 {"--elastic 2:4"});
    expect_error(run(joined(on_hosts("a slots=1\nb slots=1\n"),
                            {"--elastic", "1:2", "--elastic-batch", "keep", "--", "/bin/true"})),
                 2, "ST2601", {"--gradient_accumulation_steps"});
}

TEST_F(LaunchHosts, ANodeThatIsLostEndsTheLaunchAndNoRankIsLeft) {
    const std::string file = yaml(2, 2);
    start_node("first", file, 0, program("never_hears"));
    start_node("second", file, 1, program("never_hears"));
    ASSERT_TRUE(appears("rank_0.pid") && appears("rank_1.pid")) << errors_of("first");
    running.at("second")->signal(SIGKILL);
    expect_error(finish("first"), 75, "ST2124", {"node-1", "rank 1 of 2"});
    EXPECT_EQ(finish("second").status, 128 + SIGKILL);
    for (const char* name : {"rank_0.pid", "rank_1.pid"}) {
        pid_t process = -1;
        std::ifstream{folder / name} >> process;
        EXPECT_TRUE(eventually([&] { return has_ended(process); })) << name;
        fs::remove(folder / name);
    }

    const std::string again = yaml(2, 2);
    start_node("first", again, 0, program("never_hears"));
    start_node("second", again, 1, program("never_hears"));
    ASSERT_TRUE(appears("rank_0.pid") && appears("rank_1.pid")) << errors_of("first");
    running.at("first")->signal(SIGKILL);
    expect_error(finish("second"), 75, "ST2124", {"the first node at 127.0.0.1"});
    EXPECT_EQ(finish("first").status, 128 + SIGKILL);
    pid_t process = -1;
    std::ifstream{folder / "rank_1.pid"} >> process;
    EXPECT_TRUE(eventually([&] { return has_ended(process); }));
}

}  // namespace
