// strata launch as a person, a batch system and the kernel meet it. Every wait polls for what must happen; none is a guess.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto deadline = 100s;

std::string text_of(const fs::path& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

struct Outcome {
    int status = -1;  ///< 128 + signal for a launcher that died; -1 for one that did not end in time
    std::string out, err;
};

struct LaunchCommand : testing::Test {
    fs::path folder = fs::path{testing::TempDir()} / ("strata_launch_" + std::to_string(::getpid()));
    pid_t launcher = -1;
    std::map<std::string, std::string> environment;
    bool hangup_ignored = false;
    bool children_ignored = false;
    int output = -1;  // a file instead of out.txt

    void SetUp() override {
        fs::remove_all(folder);
        fs::create_directories(folder / "tmp");
        environment["TMPDIR"] = (folder / "tmp").string();
    }
    void TearDown() override {
        if (launcher > 0) {
            ::kill(launcher, SIGKILL);
            ::waitpid(launcher, nullptr, 0);
        }
        EXPECT_TRUE(all_gone()) << "a rank is left";
        // An mpirun whose launcher was killed may still be removing its own folder in there.
        std::error_code busy;
        for (int i = 0; i < 200 && (fs::remove_all(folder, busy), busy); ++i) std::this_thread::sleep_for(50ms);
        EXPECT_FALSE(busy) << busy.message();
    }

    void start(std::vector<std::string> words) {
        words.insert(words.begin(), {STRATA_TOOL, "launch"});
        launcher = ::fork();
        if (launcher > 0) return;
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
            ::signal(signal, SIG_DFL);  // a test in the background ignores some
        if (hangup_ignored) ::signal(SIGHUP, SIG_IGN);
        if (children_ignored) ::signal(SIGCHLD, SIG_IGN);
        for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
        for (const char* name : {"OMP_NUM_THREADS", "STRATA_PROGRESS"})
            if (!environment.contains(name)) ::unsetenv(name);
        const auto file = [this](const char* name) {
            return ::open((folder / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
        };
        ::dup2(output >= 0 ? output : file("out.txt"), STDOUT_FILENO);
        ::dup2(file("err.txt"), STDERR_FILENO);
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    /// On two ranks.
    void start_case(const std::string& what, std::vector<std::string> more = {}) {
        std::vector<std::string> words{"-n", "2", "--", STRATA_LAUNCHED_PROGRAM, what, folder.string()};
        words.insert(words.end(), more.begin(), more.end());
        start(words);
    }
    Outcome finish() {
        int status = 0;
        const bool ended = eventually([&] { return ::waitpid(launcher, &status, WNOHANG) == launcher; });
        if (!ended) return {-1, text_of(folder / "out.txt"), text_of(folder / "err.txt")};
        launcher = -1;
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_of(folder / "out.txt"),
                text_of(folder / "err.txt")};
    }
    Outcome run(std::vector<std::string> words) {
        start(std::move(words));
        return finish();
    }

    static bool eventually(const std::function<bool()>& happened) {
        for (const auto until = std::chrono::steady_clock::now() + deadline;
             std::chrono::steady_clock::now() < until;) {
            if (happened()) return true;
            std::this_thread::sleep_for(2ms);
        }
        return happened();
    }
    bool appears(const std::string& file) {
        return eventually([&] { return fs::exists(folder / file); });
    }
    bool both_appear(const std::string& name) { return appears("rank_0." + name) && appears("rank_1." + name); }
    bool says(const std::string& text) {
        return eventually([&] { return text_of(folder / "err.txt").find(text) != std::string::npos; });
    }
    pid_t process_of(int rank) const {
        pid_t process = -1;
        std::ifstream{folder / ("rank_" + std::to_string(rank) + ".pid")} >> process;
        return process;
    }
    /// No rank holds its lock: the kernel lets go of it when the process is gone.
    bool is_free() const {
        for (const char* name : {"rank_0.lock", "rank_1.lock"}) {
            const int file = ::open((folder / name).c_str(), O_RDWR | O_CLOEXEC);
            if (file < 0) continue;
            const bool free = ::flock(file, LOCK_EX | LOCK_NB) == 0;
            ::close(file);
            if (!free) return false;
        }
        return true;
    }
    bool all_gone() const {
        return eventually([&] { return is_free(); });
    }
    /// What strata launch itself left in TMPDIR.
    std::string left_over() const {
        std::string names;
        for (const auto& entry : fs::directory_iterator{folder / "tmp"})
            if (entry.path().filename().string().starts_with("strata-"))
                names += entry.path().filename().string() + " ";
        return names;
    }
    void expect_refusal(const Outcome& outcome, const std::string& number, const std::vector<std::string>& words) {
        EXPECT_EQ(outcome.status, 2) << outcome.out << outcome.err;
        EXPECT_NE(outcome.err.find("[" + number + "]"), std::string::npos) << outcome.err;
        EXPECT_NE(outcome.err.find("Fix: "), std::string::npos) << outcome.err;
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
        for (const std::string& word : words)
            EXPECT_NE(outcome.err.find(word), std::string::npos) << word << " in " << outcome.err;
    }
};

TEST_F(LaunchCommand, EveryRankGetsTheArgumentsAsTheyAreAndNoInput) {
    // A lone colon and a second -- mean something to mpirun.
    const Outcome outcome =
        run({"-n", "2", "--", STRATA_LAUNCHED_PROGRAM, "prints", folder.string(), ":", "", "--", "a b", "-n"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const char* rank : {"rank 0", "rank 1"}) {
        EXPECT_NE(outcome.out.find(std::string{rank} + " [:][][--][a b][-n] input is empty OMP_NUM_THREADS="),
                  std::string::npos)
            << outcome.out;
        EXPECT_NE(outcome.err.find(std::string{rank} + " errors, 0 spare files"), std::string::npos) << outcome.err;
    }
    EXPECT_NE(outcome.out.find("STRATA_PROGRESS=plain"), std::string::npos) << outcome.out;
    EXPECT_EQ(left_over(), "");
}

TEST_F(LaunchCommand, WhatIsSetStaysAndVerboseSaysIt) {
    environment["OMP_NUM_THREADS"] = "3";
    environment["STRATA_PROGRESS"] = "live";
    const Outcome outcome = run({"-v", "-n", "2", "--", STRATA_LAUNCHED_PROGRAM, "prints", folder.string()});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("OMP_NUM_THREADS=3 STRATA_PROGRESS=live"), std::string::npos) << outcome.out;
    for (const char* words : {"OMP_NUM_THREADS=3 (as it was set)", "mpirun -n 2 --map-by :OVERSUBSCRIBE --bind-to none",
                              "rank 1/2 on host", "ended with status 0"})
        EXPECT_NE(outcome.err.find(words), std::string::npos) << words << " in " << outcome.err;
}

TEST_F(LaunchCommand, MoreRanksThanCoresRun) {
    const Outcome outcome = run({"-n", "9", "--", STRATA_LAUNCHED_PROGRAM, "prints", folder.string()});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 9) << outcome.out;
}

TEST_F(LaunchCommand, EachStopSignalLetsAllRanksSave) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
        for (const char* name : {"rank_0.trains", "rank_1.trains", "rank_0.saved", "rank_1.saved"})
            fs::remove(folder / name);
        start_case("trains");
        ASSERT_TRUE(both_appear("trains")) << text_of(folder / "err.txt");
        ::kill(launcher, signal);
        const Outcome outcome = finish();
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(outcome.err, "stopping after this step (again to stop at once)\n");
        EXPECT_TRUE(fs::exists(folder / "rank_0.saved") && fs::exists(folder / "rank_1.saved")) << "signal " << signal;
    }
}

TEST_F(LaunchCommand, AStopThatComesBeforeTheProgramListensIsKept) {
    start_case("hears_late");
    ASSERT_TRUE(both_appear("pid")) << text_of(folder / "err.txt");
    ::kill(launcher, SIGINT);
    ASSERT_TRUE(says("stopping after this step"));
    std::ofstream{folder / "listen"} << "";
    const Outcome outcome = finish();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(fs::exists(folder / "rank_0.saved") && fs::exists(folder / "rank_1.saved"));
}

/// The shell never hears SIGUSR1, and the program that it starts later was not there when it was sent first.
TEST_F(LaunchCommand, AStopIsRepeatedUntilAProgramBehindAShellHearsIt) {
    const std::string script =
        ": > \"$1/rank_$OMPI_COMM_WORLD_RANK.shell\"; while [ ! -e \"$1/listen\" ]; do sleep 0.01; done; \"$0\" trains \"$1\"; exit $?";
    start({"-n", "2", "--", "/bin/sh", "-c", script, STRATA_LAUNCHED_PROGRAM, folder.string()});
    ASSERT_TRUE(both_appear("shell")) << text_of(folder / "err.txt");
    ::kill(launcher, SIGTERM);
    ASSERT_TRUE(says("stopping after this step"));
    std::ofstream{folder / "listen"} << "";
    const Outcome outcome = finish();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(fs::exists(folder / "rank_0.saved") && fs::exists(folder / "rank_1.saved"));
}

/// From the moment on that the launcher holds signals, which is before its main, none is lost, whatever it is about to do.
TEST_F(LaunchCommand, AStopAtAnyMomentOfTheStartEndsWithStatusZero) {
    int began = 0;
    for (int attempt = 0; attempt < 20; ++attempt) {
        for (const char* name : {"rank_0.trains", "rank_1.trains", "rank_0.saved", "rank_1.saved"})
            fs::remove(folder / name);
        start_case("trains");
        const std::string status = "/proc/" + std::to_string(launcher) + "/status";
        const std::string own = fs::canonical(STRATA_TOOL).string();
        std::error_code none;
        ASSERT_TRUE(eventually([&] {
            if (fs::read_symlink("/proc/" + std::to_string(launcher) + "/exe", none) != own) return false;
            const std::string text = text_of(status);
            const auto mask = text.find("SigBlk:\t");
            return mask != std::string::npos &&
                   (std::stoull(text.substr(mask + 8, 16), nullptr, 16) & (1ULL << (SIGINT - 1))) != 0;
        }));
        std::this_thread::sleep_for(25ms * attempt);
        ::kill(launcher, SIGINT);
        const Outcome outcome = finish();
        EXPECT_EQ(outcome.status, 0) << "after " << 25 * attempt << " ms: " << outcome.err;
        EXPECT_TRUE(is_free()) << "a rank is left, attempt " << attempt;
        EXPECT_EQ(left_over(), "");
        const bool trained = fs::exists(folder / "rank_0.saved") && fs::exists(folder / "rank_1.saved");
        const std::string told = trained ? "stopping after this step (again to stop at once)\n"
                                         : "stopped before training began; nothing was started\n";
        EXPECT_EQ(outcome.err, told) << "after " << 25 * attempt << " ms";
        EXPECT_FALSE(!trained && fs::exists(folder / "rank_0.trains")) << "a rank began and did not save";
        began += trained ? 1 : 0;
        launcher = -1;
    }
    RecordProperty("began", began);
}

TEST_F(LaunchCommand, ASecondSignalEndsAllAtOnce) {
    start_case("never_hears");
    ASSERT_TRUE(both_appear("pid"));
    ::kill(launcher, SIGTERM);
    ASSERT_TRUE(says("again to stop at once"));
    EXPECT_FALSE(is_free()) << "the first signal leaves it running";
    ::kill(launcher, SIGINT);
    const Outcome outcome = finish();
    EXPECT_EQ(outcome.status, 128 + SIGINT) << outcome.err;
    EXPECT_TRUE(is_free());
    EXPECT_EQ(left_over(), "");
}

TEST_F(LaunchCommand, AnIgnoredHangupStaysIgnored) {
    hangup_ignored = true;  // nohup
    start_case("trains");
    ASSERT_TRUE(both_appear("trains"));
    ::kill(launcher, SIGHUP);
    ::kill(launcher, SIGTERM);
    const Outcome outcome = finish();
    EXPECT_EQ(outcome.status, 0) << "the hangup counted as the first of two signals: " << outcome.err;
}

/// Some daemons ignore SIGCHLD, and what they start inherits it: then the kernel tells nobody that mpirun has ended.
TEST_F(LaunchCommand, TheEndIsSeenWhereSigchldWasIgnored) {
    children_ignored = true;
    const Outcome outcome = run({"-n", "2", "--", STRATA_LAUNCHED_PROGRAM, "prints", folder.string()});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(LaunchCommand, ATemporaryFolderThatIsMissingIsNamedAndALongOneWorks) {
    environment["TMPDIR"] = (folder / "none").string();
    expect_refusal(run({"-n", "2", "--", STRATA_LAUNCHED_PROGRAM, "prints", folder.string()}), "ST2605",
                   {"none", "TMPDIR"});
    const fs::path deep = folder / std::string(120, 'd');  // beyond what an address of a socket holds
    fs::create_directories(deep);
    environment["TMPDIR"] = deep.string();
    const Outcome outcome = run({"-n", "1", "--", STRATA_LAUNCHED_PROGRAM, "prints", folder.string()});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

/// `strata launch ... | tee log` and Ctrl-C: tee is gone at once.
TEST_F(LaunchCommand, RanksSaveThoughNobodyReadsTheirOutputAnyMore) {
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    output = pipe[1];
    start_case("trains");
    ::close(pipe[1]);
    ASSERT_TRUE(both_appear("trains"));
    ::close(pipe[0]);
    ::kill(launcher, SIGINT);
    const Outcome outcome = finish();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(fs::exists(folder / "rank_0.saved") && fs::exists(folder / "rank_1.saved"));
}

TEST_F(LaunchCommand, ATerminalsCtrlCReachesTheLauncherAlone) {
    start_case("trains");
    ASSERT_TRUE(both_appear("trains"));
    for (const char* name : {"rank_0.pid", "rank_1.pid"}) {
        pid_t process = 0;
        pid_t session = 0;
        std::ifstream{folder / name} >> process >> session;
        EXPECT_NE(session, ::getsid(0)) << "a terminal signals the processes of its session";
    }
    ::kill(launcher, SIGINT);
    EXPECT_EQ(finish().status, 0);
}

TEST_F(LaunchCommand, NoRankSurvivesALauncherThatIsKilled) {
    start_case("never_hears");
    ASSERT_TRUE(both_appear("pid"));
    ::kill(launcher, SIGKILL);
    EXPECT_EQ(finish().status, 128 + SIGKILL);
    EXPECT_TRUE(all_gone());
    EXPECT_EQ(left_over(), "");
}

TEST_F(LaunchCommand, ARankThatIsKilledIsNamedInOneLine) {
    start_case("never_hears");
    ASSERT_TRUE(both_appear("pid"));
    const pid_t killed = process_of(1);
    ::kill(killed, SIGKILL);
    const Outcome outcome = finish();
    EXPECT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
    char host[256];
    ::gethostname(host, sizeof host);
    EXPECT_TRUE(outcome.err.starts_with("[ST2606] rank 1/2 on host " + std::string{host} + " (pid " +
                                        std::to_string(killed) + ") was ended by SIGKILL"))
        << outcome.err;
    EXPECT_NE(outcome.err.find("Fix: "), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_TRUE(is_free()) << "the other rank is left";
}

/// It cannot have told anybody itself: the next start does.
TEST_F(LaunchCommand, AProgramIsToldWhyItWasStartedAgainOnOneHostToo) {
    const Outcome outcome = run({"-n", "2", "--max-restarts", "1", "--", "/bin/sh", "-c",
                                 "[ -n \"$STRATA_RESTARTS\" ] || kill -9 $$; echo \"restart $STRATA_RESTARTS after "
                                 "$STRATA_RESTARTED_AFTER\""});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("restart 1 after [ST2606] rank "), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("SIGKILL"), std::string::npos) << outcome.out;
}

TEST_F(LaunchCommand, ATrainerDoesNotSurviveAShellThatIsKilled) {
    const std::string script = std::string{"'"} + STRATA_LAUNCHED_PROGRAM + "' trains '" + folder.string() + "' & wait";
    start({"-n", "2", "--", "/bin/sh", "-c", script});
    ASSERT_TRUE(both_appear("trains"));
    std::string skipped;
    pid_t shell = -1;  // the fourth word
    std::ifstream{"/proc/" + std::to_string(process_of(1)) + "/stat"} >> skipped >> skipped >> skipped >> shell;
    ASSERT_GT(shell, 1);
    ::kill(shell, SIGKILL);
    EXPECT_EQ(finish().status, 128 + SIGKILL);
    EXPECT_TRUE(all_gone()) << "the shell's trainer is left";
}

TEST_F(LaunchCommand, RanksDoNotSurviveAnMpirunThatIsKilled) {
    start_case("never_hears");
    ASSERT_TRUE(both_appear("pid"));
    const auto parent_of = [](pid_t process) {
        const std::string text = text_of("/proc/" + std::to_string(process) + "/status");
        return static_cast<pid_t>(std::stoi(text.substr(text.find("PPid:") + 5)));
    };
    ::kill(parent_of(parent_of(process_of(0))), SIGKILL);
    const Outcome outcome = finish();
    EXPECT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
    EXPECT_NE(outcome.err.find("[ST2606] mpirun was ended by SIGKILL"), std::string::npos) << outcome.err;
    EXPECT_TRUE(all_gone());
}

TEST_F(LaunchCommand, ACrashIsNamedWithTheWayToItsCause) {
    start_case("ends", {"1", "-" + std::to_string(SIGSEGV)});
    const Outcome outcome = finish();
    EXPECT_EQ(outcome.status, 128 + SIGSEGV) << outcome.err;
    EXPECT_NE(outcome.err.find("rank 1/2"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("was ended by SIGSEGV: it crashed"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("gdb " STRATA_LAUNCHED_PROGRAM), std::string::npos) << outcome.err;
}

TEST_F(LaunchCommand, TheFirstRankThatFailsGivesTheStatusAndTheOthersAreEnded) {
    start_case("ends", {"0", "7"});
    const Outcome outcome = finish();
    EXPECT_EQ(outcome.status, 7);
    EXPECT_TRUE(outcome.err.starts_with("[ST2606] rank 0/2 on host ")) << outcome.err;
    EXPECT_NE(outcome.err.find(" ended with status 7 and did not tell"), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << "mpirun's lines about it help nobody";
    EXPECT_TRUE(is_free());
}

TEST_F(LaunchCommand, ARankThatHasSaidWhyItFailsIsNotSpokenFor) {
    start_case("says_why", {"1", "7"});
    const Outcome outcome = finish();
    EXPECT_EQ(outcome.status, 7);
    EXPECT_EQ(outcome.err, "rank 1 failed, and this is why\n");
}

TEST_F(LaunchCommand, AProgramThatCannotBeRunIsOneSentence) {
    expect_refusal(run({"-n", "2", "--", "./nope"}), "ST2605", {"./nope"});
    expect_refusal(run({"-n", "2", "--", "no_such_program"}), "ST2605", {"no_such_program", "PATH"});
    expect_refusal(run({"-n", "2", "--", folder.string()}), "ST2605", {"folder"});
    std::ofstream{folder / "data.txt"} << "\x01\x02";
    expect_refusal(run({"-n", "2", "--", (folder / "data.txt").string()}), "ST2605", {"data.txt", "chmod +x"});
    ::chmod((folder / "data.txt").c_str(), 0755);
    expect_refusal(run({"-n", "2", "--", (folder / "data.txt").string()}), "ST2605", {"data.txt", "#!"});
}

TEST_F(LaunchCommand, WordsThatAreNotUnderstoodAreOneSentence) {
    for (const char* number : {"0", "-2", "two", "1.5", "99999999999999999999", ""})
        expect_refusal(run({"-n", number, "--", STRATA_LAUNCHED_PROGRAM}), "ST2601", {"-n"});
    expect_refusal(run({"--", STRATA_LAUNCHED_PROGRAM}), "ST2601", {"number of ranks", "-n RANKS"});
    expect_refusal(run({"-n", "2"}), "ST2601", {"needs a program"});
    expect_refusal(run({"-n", "2", "--"}), "ST2601", {"needs a program"});
    expect_refusal(run({"-n", "2", "./program", "x"}), "ST2601", {"-- ./program x"});
    expect_refusal(run({"-m", "2", "--", STRATA_LAUNCHED_PROGRAM}), "ST2601", {"-m"});
}

TEST_F(LaunchCommand, OneRankNeedsNoMpirunAndSeveralSayThatTheyDo) {
    environment["PATH"] = (folder / "tmp").string();
    const Outcome one = run({"-n", "1", "--", STRATA_LAUNCHED_PROGRAM, "prints", folder.string(), "x"});
    EXPECT_EQ(one.status, 0) << one.err;
    EXPECT_NE(one.out.find("rank 0 [x]"), std::string::npos) << one.out;
    expect_refusal(run({"-n", "2", "--", STRATA_LAUNCHED_PROGRAM, "prints", folder.string()}), "ST2605",
                   {"mpirun", "openmpi-bin"});
}

TEST_F(LaunchCommand, WhatAFailingMpirunSaysIsShown) {
    const auto use_mpirun = [&](const std::string& script) {
        fs::create_directories(folder / "bin");
        std::ofstream{folder / "bin/mpirun"} << "#!/bin/sh\n" << script << "\n";
        ::chmod((folder / "bin/mpirun").c_str(), 0755);
        environment["PATH"] = (folder / "bin").string() + ":/usr/bin:/bin";
    };
    use_mpirun("echo 'There are not enough slots.' >&2; exit 3");
    const Outcome outcome = run({"-n", "2", "--", STRATA_LAUNCHED_PROGRAM, "prints", folder.string()});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_TRUE(outcome.err.starts_with("There are not enough slots.\n[ST2605] mpirun ended with status 3"))
        << outcome.err;

    // One that starts processes and does not say which rank each is.
    use_mpirun("shift 6; for i in 1 2; do \"$@\" & done; wait");
    expect_refusal(run({"-n", "2", "--", STRATA_LAUNCHED_PROGRAM, "prints", folder.string()}), "ST2605",
                   {"number its processes", "Open MPI"});
}

}  // namespace
