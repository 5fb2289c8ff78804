// strata launch on many hosts, which here are processes of this machine, or network namespaces with a remote shell of this test's own.
// Every wait polls for what must happen; none is a guess.

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>

#include "../../tools/launch_handshake.hpp"
#include "../../tools/launch_hosts.hpp"
#include "../../tools/launch_wire.hpp"
#include "run_tool.hpp"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using strata::tools::LaunchHost;
using strata::tools::Message;
using strata::tools::Welcome;
using strata::tools::Wire;
using strata_test::Outcome;
using strata_test::Running;
using strata_test::text_of;
using Kind = Message::Kind;

constexpr auto deadline = 100s;

/// Also where nobody asks for its end: the first process of a container may not, and then it stays as a zombie.
bool has_ended(pid_t process) {
    const std::string stat = text_of("/proc/" + std::to_string(process) + "/stat");
    const std::size_t name_ends = stat.rfind(')');
    return name_ends == std::string::npos || stat.substr(name_ends, 3) == ") Z";
}

struct LaunchHosts : ::testing::Test {
    fs::path folder = fs::path{::testing::TempDir()} / ("strata_hosts_" + std::to_string(::getpid()));
    std::map<std::string, std::unique_ptr<Running>> running;

    void SetUp() override {
        fs::remove_all(folder);
        fs::create_directories(folder / "tmp");
        ::setenv("TMPDIR", (folder / "tmp").c_str(), 1);
        ::setenv("STRATA_LAUNCH_SECRET", "a secret of this test", 1);
        ::unsetenv("OMP_NUM_THREADS");
        ::unsetenv("SLURM_JOB_NODELIST");
    }
    void TearDown() override {
        running.clear();
        for (const char* name : {"STRATA_LAUNCH_SECRET", "TMPDIR"}) ::unsetenv(name);
        std::error_code busy;  // an mpirun whose launcher was killed may still be removing its own folder in there
        for (int i = 0; i < 400 && (fs::remove_all(folder, busy), busy); ++i) std::this_thread::sleep_for(50ms);
        EXPECT_FALSE(busy) << busy.message();
    }

    static bool eventually(const std::function<bool()>& happened) {
        for (const auto until = std::chrono::steady_clock::now() + deadline;
             std::chrono::steady_clock::now() < until;) {
            if (happened()) return true;
            std::this_thread::sleep_for(2ms);
        }
        return happened();
    }
    bool appears(const std::string& file) const {
        return eventually([&] { return fs::exists(folder / file); });
    }
    bool says(const std::string& who, const std::string& text, int times = 1) const {
        return eventually([&] {
            const std::string all = text_of(folder / who / "out.txt") + text_of(folder / who / "err.txt");
            int found = 0;
            for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
            return found >= times;
        });
    }
    std::string errors_of(const std::string& who) const { return text_of(folder / who / "err.txt"); }

    /// strata launch with these words, as `who`, whose output is in a folder of that name.
    void start(const std::string& who, std::vector<std::string> words) {
        running.erase(who);
        fs::create_directories(folder / who);
        fs::create_directories(folder / "tmp" / who);
        ::setenv("TMPDIR", (folder / "tmp" / who).c_str(), 1);
        words.insert(words.begin(), {STRATA_TOOL, "launch"});
        running[who] = std::make_unique<Running>(words, folder / who);
    }
    Outcome finish(const std::string& who) {
        Running& one = *running.at(who);
        if (!eventually([&] { return one.has_ended(); })) one.signal(SIGKILL);
        const Outcome outcome = one.wait();
        running.erase(who);
        return outcome;
    }
    Outcome run(std::vector<std::string> words) {
        start("first", std::move(words));
        return finish("first");
    }

    std::string script(const std::string& name, const std::string& text) const {
        std::ofstream{folder / name} << "#!/bin/sh\n" << text << "\n";
        ::chmod((folder / name).c_str(), 0755);
        return (folder / name).string();
    }
    /// A hostfile, and a remote shell for which all hosts are this one; it writes down what it is asked.
    std::vector<std::string> on_hosts(const std::string& lines) const {
        std::ofstream{folder / "hosts"} << lines;
        // Each has temporary files of its own, as hosts have: Open MPI's daemons take one folder for one host's, and away.
        const std::string shell = script(
            "shell", "echo \"$@\" >> '" + (folder / "asked").string() + "'\nTMPDIR='" + (folder / "tmp").string() +
                         "/'$1\nmkdir -p \"$TMPDIR\"\nexport TMPDIR\nshift\n" + "exec sh -c \"$*\"");
        return {"--hostfile", (folder / "hosts").string(), "--remote-shell", shell};
    }
    /// An Accelerate YAML for nodes that are each started by themselves; every call gives another port.
    std::string yaml(int machines, int processes) const {
        const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        socklen_t size = sizeof address;
        ::bind(probe, reinterpret_cast<const sockaddr*>(&address), size);
        ::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
        ::close(probe);
        const fs::path file = folder / "accelerate.yaml";
        std::ofstream{file} << "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmachine_rank: 0\n"
                            << "main_process_ip: 127.0.0.1\nmain_process_port: " << ntohs(address.sin_port)
                            << "\nnum_machines: " << machines << "\nnum_processes: " << processes << "\n";
        return file.string();
    }
    void start_node(const std::string& who, const std::string& file, int machine_rank,
                    const std::vector<std::string>& program, const std::vector<std::string>& more = {}) {
        std::vector<std::string> words{"--config", file, "--machine-rank", std::to_string(machine_rank)};
        words.insert(words.end(), more.begin(), more.end());
        words.emplace_back("--");
        words.insert(words.end(), program.begin(), program.end());
        start(who, words);
    }
    std::vector<std::string> program(const std::string& what, std::vector<std::string> more = {}) const {
        std::vector<std::string> words{STRATA_LAUNCHED_PROGRAM, what, folder.string()};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    static std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more) {
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    void expect_error(const Outcome& outcome, int status, const std::string& number,
                      const std::vector<std::string>& words) const {
        EXPECT_EQ(outcome.status, status) << outcome.out << outcome.err;
        EXPECT_NE(outcome.err.find("[" + number + "]"), std::string::npos) << outcome.err;
        EXPECT_NE(outcome.err.find("Fix: "), std::string::npos) << outcome.err;
        for (const std::string& word : words)
            EXPECT_NE(outcome.err.find(word), std::string::npos) << word << " in " << outcome.err;
    }
};

std::string code_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const strata::Error& error) {
        return std::string{error.what()}.substr(0, 8);
    }
    return "nothing";
}

TEST_F(LaunchHosts, SlurmsListsAreRead) {
    using strata::tools::names_of_nodelist;
    EXPECT_EQ(names_of_nodelist("gpu[08-10,12],login,n[1-2]-ib"),
              (std::vector<std::string>{"gpu08", "gpu09", "gpu10", "gpu12", "login", "n1-ib", "n2-ib"}));
    for (const char* bad : {"", "a[", "a[1", "a[1-]", "a[3-1]", "a[x]", ",a", "a[1][2]"})
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

TEST_F(LaunchHosts, BothEndsProveThatTheyKnowTheSecretAndWhatFollowsCannotBeChanged) {
    for (const bool same : {true, false}) {
        std::array<int, 2> sockets{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
        Wire listener{sockets[0]};
        Wire caller{sockets[1]};
        const Welcome welcome{listener, "one"};
        std::string why;
        std::thread calling{[&] { why = strata::tools::introduce(caller, same ? "one" : "other", 5); }};
        const auto proof = strata::tools::await_message(listener, 5);
        ASSERT_TRUE(proof);
        EXPECT_EQ(proof->words.at(1).find("one"), std::string::npos);
        const bool right = welcome.take(listener, *proof) == Welcome::Answer::right;
        if (!right) ::shutdown(sockets[0], SHUT_RDWR);
        calling.join();
        EXPECT_EQ(right, same);
        EXPECT_EQ(why.empty(), same) << why;
        if (!same) continue;
        caller.send({Kind::line, {"as it was", "sent"}});
        const auto message = strata::tools::await_message(listener, 5);
        ASSERT_TRUE(message);
        EXPECT_EQ(message->words, (std::vector<std::string>{"as it was", "sent"}));

        // Somebody on the way sends a message of their own: well formed, and without a code.
        const std::string forged{"\x0b\x00\x00\x00x\x06\x00\x00\x00rm -rf", 15};
        ASSERT_EQ(::write(sockets[1], forged.data(), forged.size()), static_cast<ssize_t>(forged.size()));
        EXPECT_FALSE(strata::tools::await_message(listener, 1));
        EXPECT_EQ(listener.failure(), EBADMSG);
    }
}

TEST_F(LaunchHosts, AMessageThatIsSentAgainIsRefused) {
    std::array<int, 2> sockets{};
    std::array<int, 2> copy{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, copy.data()), 0);
    Wire sender{sockets[0]};
    Wire receiver{copy[1]};
    sender.seal("key", true);
    receiver.seal("key", false);
    sender.send({Kind::stop, {}});
    std::array<char, 256> bytes{};
    const ssize_t size = ::read(sockets[1], bytes.data(), bytes.size());
    for (int i = 0; i < 2; ++i) ASSERT_EQ(::write(copy[0], bytes.data(), static_cast<std::size_t>(size)), size);
    EXPECT_TRUE(strata::tools::await_message(receiver, 5));
    EXPECT_FALSE(strata::tools::await_message(receiver, 1));
    EXPECT_EQ(receiver.failure(), EBADMSG);
    ::close(sockets[1]);
    ::close(copy[0]);
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

TEST_F(LaunchHosts, AFailureIsRestartedAsOftenAsAskedAndNotBegunAfresh) {
    const std::string fails =
        script("fails", "echo \"start $*\"\necho x >> '" + (folder / "starts").string() + "'\n[ $(wc -l < '" +
                            (folder / "starts").string() + "') -gt $1 ] || exit 5");
    Outcome outcome = run({"-n", "1", "--max-restarts", "2", "--", fails, "2", "--fresh"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "start 2 --fresh\nstart 2\nstart 2\n");
    EXPECT_NE(outcome.err.find("status 5; restart 2 of 2"), std::string::npos) << outcome.err;
    fs::remove(folder / "starts");
    outcome = run({"-n", "1", "--max-restarts", "1", "--", fails, "9"});
    EXPECT_EQ(outcome.status, 5) << outcome.err;
    EXPECT_NE(outcome.err.find("all 1 restarts are used up"), std::string::npos) << outcome.err;
    outcome = run({"-n", "1", "--max-restarts", "3", "--", "/bin/sh", "-c", "exit 2"});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, "") << "words that are not understood are not the next time either";
}

/// One of two is lost, the other goes on with twice the accumulation, the lost one comes back, and both go on.
TEST_F(LaunchHosts, NodesThatAreLeftGoOnAndOneThatComesBackJoinsThem) {
    const std::string file = yaml(2, 2);
    const std::string trains =
        script("trains", "echo \"world $OMPI_COMM_WORLD_SIZE $*\"\nexec '" + std::string{STRATA_LAUNCHED_PROGRAM} +
                             "' trains '" + folder.string() + "'");
    const std::vector<std::string> words{trains, "--gradient_accumulation_steps", "2"};
    const std::vector<std::string> elastic{"--elastic", "1:2", "--elastic-batch", "keep", "--wait", "1"};
    start_node("first", file, 0, words, elastic);
    // A start that waits a second may be over before this one has come; then it joins, which is as good a beginning.
    start_node("second", file, 1, words, {"--max-restarts", "3"});
    ASSERT_TRUE(says("first", "world 2 --gradient_accumulation_steps 2", 2)) << errors_of("first");
    ASSERT_TRUE(appears("rank_1.trains"));
    running.at("second")->signal(SIGKILL);
    const int alone = errors_of("first").find("a host has come back") == std::string::npos ? 1 : 2;
    ASSERT_TRUE(says("first", "world 1 --gradient_accumulation_steps 4", alone)) << errors_of("first");
    start_node("third", file, 1, words, {"--max-restarts", "3"});
    ASSERT_TRUE(says("first", "world 2 --gradient_accumulation_steps 2", 4)) << errors_of("first");
    running.at("first")->signal(SIGINT);
    const Outcome first = finish("first");
    EXPECT_EQ(first.status, 0) << first.err;
    EXPECT_NE(first.err.find("[ST2124]"), std::string::npos) << first.err;
    EXPECT_NE(first.err.find("a host has come back: stopping after this step"), std::string::npos) << first.err;
    EXPECT_EQ(finish("third").status, 0);
}

TEST_F(LaunchHosts, AHostWithAFaultIsLeftAndTheOthersGoOnAndKnowWhy) {
    const auto words = [&](const std::string& elastic) {
        return joined(on_hosts("a slots=1\nb slots=1\n"), joined({"--elastic", elastic, "--elastic-batch", "change"},
                                                                 joined({"--"}, program("drains", {"1"}))));
    };
    Outcome outcome = run(words("1:2"));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("b has a fault, and is left for the rest of this launch"), std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find("goes on from the newest checkpoint on a\n"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.out.find("rank 0, restarted after: rank "), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find(") ended with status 70\n"), std::string::npos) << outcome.out;
    // Where the others are too few it ends, with the sentence that says so.
    for (const char* file : {"rank_0.left", "rank_1.left", "rank_1.faulty"}) fs::remove(folder / file);
    outcome = run(words("2:2"));
    expect_error(outcome, 75, "ST2125", {"1 host is left, and --elastic wants 2 or more"});
}

TEST_F(LaunchHosts, TooFewHostsAreRefused) {
    const std::string file = yaml(2, 4);
    const std::vector<std::string> elastic{"--elastic", "1:2", "--elastic-batch", "keep"};
    // 4 ranks with one micro-batch are 3 with none that is whole; of two nodes one is left with 2.
    start_node("first", file, 0, joined(program("never_hears"), {"--gradient_accumulation_steps", "1"}),
               {"--elastic", "2:2", "--elastic-batch", "keep", "--wait", "2"});
    start_node("second", file, 1, program("never_hears"), {"--max-restarts", "3"});
    ASSERT_TRUE(appears("rank_0.pid") && appears("rank_3.pid")) << errors_of("first");
    running.at("second")->signal(SIGKILL);
    expect_error(finish("first"), 75, "ST2123", {"machine_rank 1 did not come"});
    const Outcome refused =
        run(joined(on_hosts("a slots=2\nb slots=1\n"), {"-n", "3", "--elastic", "1:1", "--elastic-batch", "keep", "--",
                                                        "/bin/true", "--gradient_accumulation_steps", "3"}));
    expect_error(refused, 75, "ST2125", {"effective batch of 3 ranks cannot be kept"});
}

/// Two hosts with nothing between them but a cable, which is pulled out and put back.
TEST_F(LaunchHosts, AHostWhoseNetworkFailsIsLeftBehindAndComesBack) {
    const std::string a = "strataA" + std::to_string(::getpid());
    const std::string b = "strataB" + std::to_string(::getpid());
    const auto does = [](const std::string& line) { return std::system((line + " >/dev/null 2>&1").c_str()) == 0; };
    struct Namespaces {
        std::vector<std::string> names;
        ~Namespaces() {
            for (const std::string& name : names)
                [[maybe_unused]] const int status = std::system(("ip netns del " + name + " 2>/dev/null").c_str());
        }
    } const made{{a, b}};
    if (!does("ip netns add " + a) || !does("ip netns add " + b) ||
        !does("ip link add cable netns " + a + " type veth peer name cable netns " + b))
        GTEST_SKIP() << "network namespaces cannot be made here: run as root, with CAP_NET_ADMIN and CAP_SYS_ADMIN";
    for (const auto& [name, address] : {std::pair{a, "10.77.0.1/24"}, std::pair{b, "10.77.0.2/24"}})
        ASSERT_TRUE(does("ip -n " + name + " addr add " + address + " dev cable") &&
                    does("ip -n " + name + " link set cable up") && does("ip -n " + name + " link set lo up"));
    const std::string shell =
        script("shell", "host=$1; shift\nip -n " + b +
                            " link show cable | grep -q 'state UP' || exit 255\nexec ip netns exec " + b +
                            " unshare -u sh -c 'hostname \"$0\"; exec sh -c \"$1\"' $host \"$*\"");
    std::ofstream{folder / "hosts"} << "hosta slots=1\nhostb slots=1\n";
    const std::string trains =
        script("trains", "echo \"world $OMPI_COMM_WORLD_SIZE on $(hostname) $*\"\nexec '" +
                             std::string{STRATA_LAUNCHED_PROGRAM} + "' trains '" + folder.string() + "'");
    fs::create_directories(folder / "first");
    running["first"] = std::make_unique<Running>(std::vector<std::string>{"/usr/bin/env",
                                                                          "ip",
                                                                          "netns",
                                                                          "exec",
                                                                          a,
                                                                          "unshare",
                                                                          "-u",
                                                                          "sh",
                                                                          "-c",
                                                                          "hostname hosta; exec \"$@\"",
                                                                          "sh",
                                                                          STRATA_TOOL,
                                                                          "launch",
                                                                          "--hostfile",
                                                                          (folder / "hosts").string(),
                                                                          "--remote-shell",
                                                                          shell,
                                                                          "--elastic",
                                                                          "1:2",
                                                                          "--elastic-batch",
                                                                          "keep",
                                                                          "--",
                                                                          trains,
                                                                          "--gradient_accumulation_steps",
                                                                          "3"},
                                                 folder / "first");
    ASSERT_TRUE(says("first", "world 2 on hostb --gradient_accumulation_steps 3")) << errors_of("first");
    ASSERT_TRUE(appears("rank_1.trains"));
    pid_t process = -1;
    std::ifstream{folder / "rank_1.pid"} >> process;
    ASSERT_TRUE(does("ip -n " + b + " link set cable down"));
    ASSERT_TRUE(says("first", "world 1 on hosta --gradient_accumulation_steps 6")) << errors_of("first");
    EXPECT_NE(errors_of("first").find("[ST2124] the connection to host hostb broke while rank 1 of 2 ran there"),
              std::string::npos)
        << errors_of("first");
    EXPECT_TRUE(eventually([&] { return has_ended(process); })) << "it ends when its launcher is silent";
    ASSERT_TRUE(does("ip -n " + b + " link set cable up"));
    ASSERT_TRUE(says("first", "world 2 on hostb --gradient_accumulation_steps 3", 2)) << errors_of("first");
    running.at("first")->signal(SIGINT);
    const Outcome outcome = finish("first");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(fs::exists(folder / "rank_1.saved"));
}

}  // namespace
