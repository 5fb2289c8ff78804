// strata launch when a rank or a host fails, and when one comes back: on processes of this machine, or network namespaces with a remote
// shell of this test's own. Every wait polls for what must happen; none is a guess.

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "../../tools/launch_elastic.hpp"
#include "many_hosts.hpp"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using strata::tools::LaunchHost;
using strata_test::has_ended;
using strata_test::Outcome;
using strata_test::Running;
using strata_test::text_of;

struct LaunchElastic : strata_test::ManyHosts {};

TEST_F(LaunchElastic, AFailureIsRestartedAsOftenAsAskedAndNotBegunAfresh) {
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
    EXPECT_EQ(outcome.err.find("restart"), std::string::npos)
        << "words that are not understood are not the next time either: " << outcome.err;
}

/// One of two is lost, the other goes on with twice the accumulation, the lost one comes back, and both go on.
TEST_F(LaunchElastic, NodesThatAreLeftGoOnAndOneThatComesBackJoinsThem) {
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

TEST_F(LaunchElastic, AHostThatComesIsOfUseWhereMoreRanksWouldTrain) {
    using strata::tools::Elastic;
    const std::vector<LaunchHost> all{{"a", {0}}, {"b", {0}}, {"c", {0}}, {"d", {0}}};
    const auto is_of_use = [&](std::size_t used, const std::vector<std::string>& come, const Elastic& elastic,
                               const std::string& accumulation = "1") {
        return strata::tools::would_grow({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(used)}, all, come,
                                         elastic, {{"--gradient_accumulation_steps", accumulation}, 4});
    };
    const Elastic changes{1, 4, false};
    EXPECT_TRUE(is_of_use(2, {"c"}, changes));
    EXPECT_FALSE(is_of_use(2, {}, changes));
    EXPECT_FALSE(is_of_use(2, {"z"}, changes)) << "no host of this launch";
    EXPECT_FALSE(is_of_use(2, {"c", "d"}, {1, 2, false})) << "it has as many as it may";
    // Four ranks with one micro-batch each are two with two, and three with none that is whole.
    EXPECT_FALSE(is_of_use(2, {"c"}, {1, 4, true}));
    EXPECT_TRUE(is_of_use(2, {"c", "d"}, {1, 4, true}));
    EXPECT_TRUE(is_of_use(2, {"c"}, {1, 4, true}, "3"));
    EXPECT_FALSE(is_of_use(2, {"c"}, {3, 4, true})) << "three are no number to go on with";
}

/// The third host answers every time that it is asked.
TEST_F(LaunchElastic, HostsBeyondTheMostAreInReserveAndNobodyStopsForThem) {
    start("first", joined(joined(on_hosts("a slots=1\nb slots=1\nc slots=1\n"),
                                 {"--elastic", "1:2", "--elastic-batch", "change", "--"}),
                          program("trains")));
    ASSERT_TRUE(appears("rank_1.trains")) << errors_of("first");
    // When it is asked a second time, what it answered the first time has been acted on.
    ASSERT_TRUE(eventually([&] {
        const std::string asked = text_of(folder / "asked");
        const std::size_t once = asked.find("c true\n");
        return once != std::string::npos && asked.find("c true\n", once + 1) != std::string::npos;
    }));
    running.at("first")->signal(SIGINT);
    const Outcome outcome = finish("first");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "stopping after this step (again to stop at once)\n");
}

/// A batch system sends SIGTERM once.
TEST_F(LaunchElastic, AStopWhileRanksSaveForAHostThatCameEndsTheLaunch) {
    const std::string file = yaml(2, 2);
    ::setenv("WAIT_BEFORE_SAVING", (folder / "save").c_str(), 1);
    start_node("first", file, 0, program("trains"), {"--elastic", "1:2", "--elastic-batch", "change", "--wait", "1"});
    ::unsetenv("WAIT_BEFORE_SAVING");
    ASSERT_TRUE(appears("rank_0.trains")) << errors_of("first");
    start_node("second", file, 1, program("trains"), {"--max-restarts", "3"});
    ASSERT_TRUE(says("first", "a host has come back")) << errors_of("first");
    running.at("first")->signal(SIGTERM);
    ASSERT_TRUE(says("first", "stopping after this step (again to stop at once)")) << errors_of("first");
    std::ofstream{folder / "save"} << "";
    const Outcome outcome = finish("first");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("goes on from the newest checkpoint"), std::string::npos) << outcome.err;
    EXPECT_EQ(finish("second").status, 0);
}

TEST_F(LaunchElastic, AHostWithAFaultIsLeftAndTheOthersGoOnAndKnowWhy) {
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

TEST_F(LaunchElastic, AllNodesEndWithTheStatusOfWhatTheFirstOneSays) {
    const std::string file = yaml(2, 2);
    start_node("first", file, 0, program("drains", {"1"}), {"--elastic", "2:2", "--elastic-batch", "change"});
    start_node("second", file, 1, program("drains", {"1"}), {"--max-restarts", "3"});
    expect_error(finish("first"), 75, "ST2125", {"1 host is left, and --elastic wants 2 or more"});
    EXPECT_EQ(finish("second").status, 75);
}

/// It answers all the time: its firewall is closed, say, or its Open MPI is being updated.
TEST_F(LaunchElastic, AHostThatAnswersAndCannotBeStartedOnIsLeftOut) {
    std::vector<std::string> words = on_hosts("a slots=1\nb slots=1\nc slots=1\n");
    const std::string plain = words.back();
    words.back() =
        script("shell_that_fails", "[ $1 = c ] && [ \"$2\" != true ] && [ -e '" + (folder / "broken").string() +
                                       "' ] && exit 1\nexec '" + plain + "' \"$@\"");
    const std::string trains =
        script("trains", "echo \"world $OMPI_COMM_WORLD_SIZE\"\nexec '" + std::string{STRATA_LAUNCHED_PROGRAM} +
                             "' trains '" + folder.string() + "'");
    start("first",
          joined(words, {"--elastic", "1:3", "--elastic-batch", "change", "--max-restarts", "2", "--", trains}));
    ASSERT_TRUE(appears("rank_2.trains")) << errors_of("first");
    std::ofstream{folder / "broken"} << "";
    pid_t process = -1;
    std::ifstream{folder / "rank_2.pid"} >> process;
    ::kill(process, SIGKILL);
    ASSERT_TRUE(says("first", "world 2", 2)) << errors_of("first");
    running.at("first")->signal(SIGINT);
    const Outcome outcome = finish("first");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const char* line : {"nothing could be started on c, which is left out for 5 minutes", "restart 2 of 2",
                             "goes on from the newest checkpoint on a, b\n"})
        EXPECT_NE(outcome.err.find(line), std::string::npos) << line << " in " << outcome.err;
}

TEST_F(LaunchElastic, PausesBetweenStartsThatEndSoonGrow) {
    using strata::tools::next_pause;
    auto pause = 0s;
    std::vector<std::chrono::seconds::rep> pauses;
    for (int i = 0; i < 8; ++i) pauses.push_back((pause = next_pause(pause, 1s)).count());
    EXPECT_EQ(pauses, (std::vector<std::chrono::seconds::rep>{1, 2, 4, 8, 16, 32, 60, 60}));
    EXPECT_EQ(next_pause(pause, 10s), 1s) << "it had trained";
}

TEST_F(LaunchElastic, TooFewHostsAreRefused) {
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
TEST_F(LaunchElastic, AHostWhoseNetworkFailsIsLeftBehindAndComesBack) {
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
        !does("ip link add cable netns " + a + " type veth peer name cable netns " + b) ||
        !does("ip netns exec " + a + " true"))
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
