// Which hosts and GPUs a launch is about, as the words of `strata launch`, an Accelerate YAML and Slurm say it: nothing that is said is passed over.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "many_hosts.hpp"

namespace {

namespace fs = std::filesystem;
using strata_test::Outcome;
using strata_test::text_of;

struct LaunchCompany : strata_test::ManyHosts {
    /// A YAML with these lines.
    std::string written(const std::string& lines, const std::string& name = "some.yaml") const {
        std::ofstream{folder / name} << "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\n" << lines;
        return (folder / name).string();
    }
    Outcome refused(const std::vector<std::string>& words) { return run(joined(words, {"--", "/bin/true"})); }
};

/// The second of two machines would wait for itself.
TEST_F(LaunchCompany, KeysAboutHostsThatCannotBeTakenAreRefused) {
    const std::string wrong = (folder / "wrong.yaml").string();
    std::ofstream{wrong} << std::regex_replace(text_of(yaml(2, 2)), std::regex{"machine_rank: 0"}, "machine_rnk: 1");
    expect_error(refused({"--config", wrong}), 2, "ST2601", {"machine_rnk", "machine_rank"});
    std::ofstream{wrong} << "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 2\n"
                            "deepspeed_config:\n  deepspeed_hostfile: [hosts]\n";
    expect_error(refused({"--config", wrong}), 2, "ST2601", {"deepspeed_hostfile"});
    expect_error(refused({"--config", written("num_processes: 2\nmpirun_config:\n  mpirun_hostfile: [hosts]\n")}), 2,
                 "ST2601", {"mpirun_hostfile"});
}

TEST_F(LaunchCompany, ProcessesOfTheYamlAreSharedOutOverTheHosts) {
    const std::vector<std::string> hosts = on_hosts("a slots=4\nb slots=4\n");
    const Outcome outcome = run(joined(hosts, {"--config", written("num_processes: 2\nnum_machines: 2\n"), "--",
                                               "/bin/sh", "-c", "echo \"rank on $STRATA_LAUNCH_HOST\""}));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(outcome.out == "rank on a\nrank on b\n" || outcome.out == "rank on b\nrank on a\n") << outcome.out;
    const auto with = [&](const std::string& lines) { return joined(hosts, {"--config", written(lines)}); };
    expect_error(refused(with("num_processes: 3\n")), 2, "ST2601", {"num_processes 3", "has 2 hosts"});
    expect_error(refused(with("num_processes: 10\n")), 2, "ST2601", {"which are 5 of each host, and a has 4 slots"});
    expect_error(refused(with("num_processes: 3\nnum_machines: 3\n")), 2, "ST2601", {"num_machines 3", "has 2 hosts"});
    ::setenv("SLURM_JOB_NODELIST", "n[1-4]", 1);
    ::setenv("SLURM_TASKS_PER_NODE", "8(x4)", 1);
    const Outcome slurm = refused({"--config", written("num_processes: 8\nnum_machines: 1\n")});
    ::unsetenv("SLURM_JOB_NODELIST");
    ::unsetenv("SLURM_TASKS_PER_NODE");
    expect_error(slurm, 2, "ST2601", {"num_machines 1", "Slurm's job", "4 hosts"});
}

TEST_F(LaunchCompany, GpusOfTheYamlAreThoseThatItsRanksSee) {
    const std::vector<std::string> shown{"--", "/bin/sh", "-c", "echo \"sees $CUDA_VISIBLE_DEVICES.\""};
    for (const auto& [ids, seen] : {std::pair{"\"2,3\"", "sees 2,3."}, {"2", "sees 2."}, {"all", "sees ."}}) {
        const std::string file = written("num_processes: 1\ngpu_ids: " + std::string{ids} + "\n");
        const Outcome outcome = run(joined({"--config", file}, shown));
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_NE(outcome.out.find(seen), std::string::npos) << ids << ": " << outcome.out;
    }
    expect_error(run(joined(joined(on_hosts("a slots=4\n"), {"--config", written("gpu_ids: \"2,3\"\n")}), shown)), 2,
                 "ST2601", {"gpu_ids", "--include"});
}

TEST_F(LaunchCompany, WordsThatWouldHaveNoEffectAreRefused) {
    std::ofstream{folder / "secret"} << "a secret of this test\n";
    const std::vector<std::string> hosts = on_hosts("a slots=1\n");
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"--machine-rank", "0"}, {"--secret-file", (folder / "secret").string()}, {"--wait", "5"}}) {
        expect_error(refused(joined({"-n", "1"}, words)), 2, "ST2601", {words.front(), "started by themselves"});
        expect_error(refused(joined(hosts, words)), 2, "ST2601", {words.front(), "started by themselves"});
    }
    expect_error(refused({"-n", "1", "--remote-shell", "ssh"}), 2, "ST2601", {"--remote-shell", "--hostfile"});
    // A line that is for any number of machines, of which there is one now.
    const std::string one = written("num_processes: 1\nnum_machines: 1\n");
    EXPECT_EQ(refused({"--config", one, "--machine-rank", "0", "--wait", "5"}).status, 0);
    expect_error(refused({"--config", one, "--machine-rank", "1"}), 2, "ST2601", {"--machine-rank"});
}

TEST_F(LaunchCompany, AHostfileMayBeNoneAndIsFoundBesideItsYaml) {
    EXPECT_EQ(refused({"--config", written("num_processes: 1\nmpirun_config:\n  mpirun_hostfile: none\n")}).status, 0);
    const std::vector<std::string> hosts = on_hosts("a\nb\n");
    for (const char* lines : {"mpirun_config:\n  mpirun_hostfile: hosts\n",
                              "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_hostfile: hosts\n"}) {
        std::ofstream{folder / "beside.yaml"} << "compute_environment: LOCAL_MACHINE\n"
                                              << (lines[0] == 'm' ? "distributed_type: MULTI_CPU\n" : "") << lines;
        const Outcome outcome = run({"--config", (folder / "beside.yaml").string(), "--remote-shell", hosts.back(),
                                     "--", "/bin/sh", "-c", "echo \"rank on $STRATA_LAUNCH_HOST\""});
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_NE(outcome.out.find("rank on b\n"), std::string::npos) << outcome.out;
    }
}

}  // namespace
