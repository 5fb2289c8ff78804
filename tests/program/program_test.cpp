// The example programs as a person meets them: started on two ranks, fed wrong input, interrupted, started again.

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

/// An 8-bit RGB PNG of one colour.
void write_png(const fs::path& file, std::uint32_t width, std::uint32_t height, std::array<std::uint8_t, 3> rgb) {
    const auto big_endian = [](std::uint32_t v) {
        return std::string{static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
                           static_cast<char>(v)};
    };
    const auto chunk = [&](const std::string& name, const std::string& data) {
        const std::string body = name + data;
        const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
        return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(static_cast<std::uint32_t>(sum));
    };
    std::string row(1, '\0');
    for (std::uint32_t x = 0; x < width; ++x) row.append(reinterpret_cast<const char*>(rgb.data()), 3);
    std::string pixels;
    for (std::uint32_t y = 0; y < height; ++y) pixels += row;
    uLongf size = ::compressBound(pixels.size());
    std::string packed(size, '\0');
    ::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(pixels.data()),
               pixels.size());
    packed.resize(size);
    std::ofstream{file, std::ios::binary}
        << "\x89PNG\r\n\x1a\n"
        << chunk("IHDR", big_endian(width) + big_endian(height) + std::string{"\x08\x02\0\0\0", 5})
        << chunk("IDAT", packed) << chunk("IEND", "");
}

struct Outcome {
    int status = -1;
    std::string out, err;
};

/// A training run that does not outlive its test: whatever ends the test, the run is asked twice to stop and waited for.
class Job {
public:
    explicit Job(pid_t launcher) : launcher_{launcher} {}
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    ~Job() { end(); }

    void ask_to_stop(int signal = SIGTERM) const {
        if (!ended_) ::kill(launcher_, signal);
    }
    /// The exit status, 128 + signal, or -1 for a run that did not end by `deadline`; it is ended then.
    int wait(std::chrono::steady_clock::time_point deadline) {
        while (!poll()) {
            if (std::chrono::steady_clock::now() > deadline) {
                end();
                return -1;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        }
        return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
    }
    [[nodiscard]] pid_t process() const { return launcher_; }
    [[nodiscard]] bool poll() {
        ended_ = ended_ || ::waitpid(launcher_, &status_, WNOHANG) == launcher_;
        return ended_;
    }

private:
    /// Only the launcher can reach its ranks, so it is given time before it is killed.
    void end() {
        for (int i = 0; i < 100 && !poll(); ++i) {
            if (i % 50 < 2) ask_to_stop();
            std::this_thread::sleep_for(std::chrono::milliseconds{200});
        }
        if (poll()) return;
        ::kill(launcher_, SIGKILL);
        ::waitpid(launcher_, &status_, 0);
        ended_ = true;
    }

    pid_t launcher_;
    int status_ = 0;
    bool ended_ = false;
};

struct Program : testing::Test {
    /// Before ctest's own limit of 180 seconds, which would leave the ranks alive.
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::now() + std::chrono::seconds{150};
    fs::path folder = fs::path{testing::TempDir()} / ("strata_program_" + std::to_string(::getpid()));

    void SetUp() override {
        fs::remove_all(folder);
        fs::create_directories(folder / "pictures");
        for (int i = 0; i < 12; ++i) {
            const std::string stem = (folder / "pictures" / ("p" + std::to_string(i))).string();
            const bool wide = i % 3 == 0;
            write_png(stem + ".png", wide ? 144 : 64, wide ? 48 : 64,
                      {static_cast<std::uint8_t>(20 * i), 100, static_cast<std::uint8_t>(255 - 20 * i)});
            std::ofstream{stem + ".txt"} << "Picture number " << i << ".\n";
        }
        write_config({});
        write_datasets("\"instance_data_dir\": \"" + (folder / "pictures").string() + "\"");
    }
    void TearDown() override { fs::remove_all(folder); }

    /// config.json of a short run; `more` is added as it stands.
    void write_config(const std::string& more, int steps = 6) {
        std::ofstream{folder / "config.json"}
            << "{\"data_backend_config\": \"" << (folder / "data.json").string() << "\", \"max_train_steps\": " << steps
            << ", \"train_batch_size\": 2, \"learning_rate\": 1e-3, \"resolution\": 64, "
               "\"aspect_bucket_alignment\": 32, \"validation_step_interval\": 3, "
               "\"validation_resolution\": 32, \"validation_num_inference_steps\": 2, "
               "\"validation_prompts\": [\"one\", \"two\", \"three\"], "
               "\"checkpoint_step_interval\": 3"
            << more << "}";
    }
    void write_datasets(const std::string& image_keys) {
        std::ofstream{folder / "data.json"}
            << "[{\"id\": \"pictures\", \"type\": \"local\", " << image_keys << ", \"cache_dir_vae\": \""
            << (folder / "latents").string()
            << "\", \"text_embeds\": \"texts\"}, {\"id\": \"texts\", \"type\": \"local\", \"dataset_type\": \"text_embeds\", "
            << "\"default\": true, \"cache_dir\": \"" << (folder / "texts").string() << "\"}]";
    }

    Job start(const std::vector<std::string>& words) {
        const pid_t test = ::getpid();
        const pid_t child = ::fork();
        if (child != 0) return Job{child};
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // a test that crashes: the launcher lets its ranks save and end
        if (::getppid() != test) ::_exit(127);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
            ::signal(signal, SIG_DFL);  // tests in the background ignore some
        const auto redirect = [](const fs::path& file, int to) {
            ::dup2(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), to);
        };
        redirect(folder / "out.txt", STDOUT_FILENO);
        redirect(folder / "err.txt", STDERR_FILENO);
        std::vector<char*> argv;
        for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    Outcome finish(Job&& run) { return finish(run); }
    Outcome finish(Job& run) {
        const int status = run.wait(deadline);
        return {status, text_of(folder / "out.txt"), text_of(folder / "err.txt")};
    }
    /// Waits until `happened`; false if the run ended first or time was up.
    template <class Condition>
    bool wait_for(Job& run, Condition happened) {
        while (!happened()) {
            if (run.poll() || std::chrono::steady_clock::now() > deadline) return happened();
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        }
        return true;
    }
    std::vector<std::string> on_ranks(int ranks, const std::string& program, const fs::path& output,
                                      std::vector<std::string> more = {}) {
        std::vector<std::string> words{STRATA_TOOL, "launch", "-n",       std::to_string(ranks),
                                       "--",        program,  "--output", output.string()};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    Outcome train(const fs::path& output, std::vector<std::string> more = {}) {
        if (more.empty()) more = {"--config", (folder / "config.json").string()};
        return finish(start(on_ranks(2, STRATA_TRAIN_PICTURES, output, more)));
    }

    /// Whether no rank of any run holds the output directory.
    static bool is_free(const fs::path& output) {
        const int file = ::open((output / ".lock").c_str(), O_RDWR | O_CLOEXEC);
        if (file < 0) return !fs::exists(output / ".lock");
        const bool free = ::flock(file, LOCK_EX | LOCK_NB) == 0;
        ::close(file);
        return free;
    }
    static bool has_file(const fs::path& folder) {
        std::error_code absent;
        for (auto at = fs::recursive_directory_iterator{folder, absent};
             !absent && at != fs::recursive_directory_iterator{}; at.increment(absent))
            if (at->is_regular_file(absent)) return true;
        return false;
    }

    /// A field of every step of metrics.jsonl, as text: equal text is equal bits.
    static std::vector<std::string> numbers(const fs::path& output, const std::string& name) {
        std::vector<std::string> found;
        std::istringstream lines{text_of(output / "metrics.jsonl")};
        const std::string mark = "\"" + name + "\":";
        for (std::string line; std::getline(lines, line);) {
            if (line.find("\"loss\":") == std::string::npos) continue;  // of samples, or a straggler
            const auto begin = line.find(mark) + mark.size();
            found.push_back(line.substr(begin, line.find(',', begin) - begin));
        }
        return found;
    }
    static std::vector<std::string> losses(const fs::path& output) { return numbers(output, "loss"); }
    void expect_refusal(const Outcome& outcome, const std::string& number, const std::vector<std::string>& words,
                        const fs::path& output) {
        EXPECT_EQ(outcome.status, 2) << outcome.out << outcome.err;
        EXPECT_NE(outcome.err.find("[" + number + "]"), std::string::npos) << outcome.err;
        EXPECT_NE(outcome.err.find("Fix: "), std::string::npos) << outcome.err;
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << "one line is enough:\n"
                                                                               << outcome.err;
        for (const std::string& word : words)
            EXPECT_NE(outcome.err.find(word), std::string::npos) << word << " in " << outcome.err;
        EXPECT_FALSE(fs::exists(output)) << "left behind";
    }
};

TEST_F(Program, TrainsOnTwoRanksAndLeavesSomethingToLookAt) {
    const Outcome first = train(folder / "a");
    ASSERT_EQ(first.status, 0) << first.out << first.err;
    EXPECT_EQ(losses(folder / "a").size(), 6U);
    for (const char* file : {"report.html", "samples/step_00000003.png", "samples/step_00000006.png",
                             "checkpoints/step_00000006/manifest.json"})
        EXPECT_TRUE(fs::exists(folder / "a" / file)) << file;

    const Outcome again = train(folder / "b");
    ASSERT_EQ(again.status, 0) << again.err;
    EXPECT_EQ(losses(folder / "a"), losses(folder / "b")) << "same seed, same ranks";
    EXPECT_EQ(text_of(folder / "a/samples/step_00000006.png"), text_of(folder / "b/samples/step_00000006.png"));

    write_config({}, 9);
    const Outcome resumed = train(folder / "a");
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_NE(resumed.out.find("resuming from"), std::string::npos) << resumed.out;
    EXPECT_EQ(losses(folder / "a").size(), 9U);

    const Outcome fresh = train(folder / "b", {"--config", (folder / "config.json").string(), "--fresh"});
    ASSERT_EQ(fresh.status, 0) << fresh.err;
    EXPECT_EQ(fresh.out.find("resuming from"), std::string::npos) << fresh.out;
    EXPECT_EQ(losses(folder / "a"), losses(folder / "b")) << "a resumed run equals one that never stopped";
}

TEST_F(Program, ADamagedCacheTrainsTheSameAndSaysWhatItMadeAgain) {
    fs::copy_file(folder / "pictures/p1.png", folder / "pictures/bare.png");
    const Outcome whole = train(folder / "a");
    ASSERT_EQ(whole.status, 0) << whole.err;
    EXPECT_NE(whole.out.find("1 skipped, no caption: " + (folder / "pictures/bare.png").string() + "\n"),
              std::string::npos)
        << whole.out;
    EXPECT_NE(whole.out.find("what was skipped is listed in " + (folder / "a/skipped.txt").string()),
              std::string::npos);
    EXPECT_EQ(text_of(folder / "a/skipped.txt"),
              "no caption\tpictures\t" + (folder / "pictures/bare.png").string() + "\t\n");

    int latents = 0;
    for (const char* cache : {"latents", "texts"})
        for (const auto& entry : fs::recursive_directory_iterator{folder / cache}) {
            if (!entry.is_regular_file()) continue;
            std::string bytes = text_of(entry.path());
            bytes[bytes.size() - bytes.size() / 4] ^= 1;
            std::ofstream{entry.path(), std::ios::binary} << bytes;
            latents += *cache == 'l' ? 1 : 0;
        }
    ASSERT_EQ(latents, 12);
    fs::remove(folder / "pictures/bare.png");
    fs::create_directories(folder / "b/samples");
    std::ofstream{folder / "b/skipped.txt"} << "of an earlier run";
    for (const char* leftover :
         {"b/.report.html.8305613440812345678.tmp", "b/samples/.step_00000003.png.0badcafe-8305613440812345678.tmp"})
        std::ofstream{folder / leftover} << "half";
    const Outcome damaged = train(folder / "b");
    ASSERT_EQ(damaged.status, 0) << damaged.err;
    EXPECT_EQ(losses(folder / "a"), losses(folder / "b")) << "damaged numbers were trained on";
    for (const char* line :
         {"latents: 12 damaged entries made again: ", " and 9 more\n",
          "captions: 13 damaged entries made again: ", "removed 2 temporary files that killed runs left in "})
        EXPECT_NE(damaged.out.find(line), std::string::npos) << line << "\n" << damaged.out;
    EXPECT_FALSE(fs::exists(folder / "b/.report.html.8305613440812345678.tmp") || fs::exists(folder / "b/skipped.txt"));
}

TEST_F(Program, SigtermSavesAndEndsWithStatusZero) {
    write_config({}, 100000);
    const fs::path output = folder / "run";
    Job run = start(on_ranks(2, STRATA_TRAIN_PICTURES, output, {"--config", (folder / "config.json").string()}));
    ASSERT_TRUE(wait_for(run, [&] { return losses(output).size() >= 4; })) << text_of(folder / "err.txt");
    run.ask_to_stop();
    const Outcome stopped = finish(run);
    EXPECT_EQ(stopped.status, 0) << stopped.out << stopped.err;
    EXPECT_NE(stopped.out.find("asked to stop"), std::string::npos) << stopped.out;
    char name[64];
    std::snprintf(name, sizeof name, "checkpoints/step_%08zu/manifest.json", losses(output).size());
    EXPECT_TRUE(fs::exists(output / name)) << name;
}

/// The longest part of a start is that of libtorch and MPI, before a rank can hear anything.
TEST_F(Program, AStopInTheFirstMomentsLeavesNeitherARankNorALock) {
    write_config({}, 100000);  // a wish that is lost never ends
    const fs::path output = folder / "run";
    for (const int milliseconds : {0, 100, 200, 400, 800, 1600}) {
        Job run = start(on_ranks(2, STRATA_TRAIN_PICTURES, output, {"--config", (folder / "config.json").string()}));
        // The signals are held before main; and, by posix_spawn(), in the process that is not the command yet.
        const std::string held = "/proc/" + std::to_string(run.process()) + "/status";
        ASSERT_TRUE(wait_for(run, [&] {
            const std::string text = text_of(held);
            const auto mask = text.find("SigBlk:\t");
            return text.starts_with("Name:\tstrata\n") && mask != std::string::npos &&
                   (std::stoull(text.substr(mask + 8, 16), nullptr, 16) & (1ULL << (SIGINT - 1))) != 0;
        }));
        std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
        run.ask_to_stop(SIGINT);
        const Outcome stopped = finish(run);
        EXPECT_EQ(stopped.status, 0) << "after " << milliseconds << " ms: " << stopped.out << stopped.err;
        EXPECT_TRUE(is_free(output)) << "a rank is left after " << milliseconds << " ms";
    }
}

TEST_F(Program, ALauncherThatIsKilledTakesItsRanksWithIt) {
    write_config({}, 100000);
    const fs::path output = folder / "run";
    Job run = start(on_ranks(2, STRATA_TRAIN_PICTURES, output, {"--config", (folder / "config.json").string()}));
    ASSERT_TRUE(wait_for(run, [&] { return losses(output).size() >= 2; })) << text_of(folder / "err.txt");
    run.ask_to_stop(SIGKILL);
    EXPECT_EQ(finish(run).status, 128 + SIGKILL);
    while (!is_free(output) && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    EXPECT_TRUE(is_free(output)) << "a rank is left, and holds the output directory";
}

/// Both choose the same kernels of libtorch and OpenBLAS, with nothing set.
TEST_F(Program, TheLauncherAndMpirunGiveTheSameBits) {
    const std::vector<std::string> unset{"/usr/bin/env",
                                         "-u",
                                         "OPENBLAS_CORETYPE",
                                         "-u",
                                         "OPENBLAS_L2_SIZE",
                                         "-u",
                                         "ATEN_CPU_CAPABILITY",
                                         "OMPI_ALLOW_RUN_AS_ROOT=1",
                                         "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
    const auto with = [&](std::vector<std::string> words) {
        words.insert(words.begin(), unset.begin(), unset.end());
        return finish(start(words));
    };
    const Outcome launched = with(on_ranks(2, STRATA_TRAIN_YOUR_MODEL, folder / "launched"));
    ASSERT_EQ(launched.status, 0) << launched.err;
    const Outcome by_mpirun = with({STRATA_MPIEXEC, "-n", "2", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none",
                                    STRATA_TRAIN_YOUR_MODEL, "--output", (folder / "by_mpirun").string()});
    ASSERT_EQ(by_mpirun.status, 0) << by_mpirun.err;
    EXPECT_EQ(numbers(folder / "launched", "grad_norm"), numbers(folder / "by_mpirun", "grad_norm"));
    EXPECT_EQ(losses(folder / "launched"), losses(folder / "by_mpirun"));
    EXPECT_EQ(losses(folder / "launched").size(), 600U);
}

/// One step of so many micro-batches never ends: the first signal alone could not end this run.
TEST_F(Program, ASecondSigtermEndsTheRunAtOnceAndLeavesNoRankBehind) {
    write_config(", \"gradient_accumulation_steps\": 20000, \"allow_dataset_oversubscription\": true");
    const fs::path output = folder / "run";
    Job run = start(on_ranks(2, STRATA_TRAIN_PICTURES, output, {"--config", (folder / "config.json").string()}));
    ASSERT_TRUE(wait_for(run, [&] { return fs::exists(output / "metrics.jsonl"); })) << text_of(folder / "err.txt");
    EXPECT_FALSE(is_free(output)) << "the run holds its directory";
    run.ask_to_stop();
    ASSERT_TRUE(
        wait_for(run, [&] { return text_of(folder / "err.txt").find("again to stop at once") != std::string::npos; }));
    run.ask_to_stop();
    const auto asked = std::chrono::steady_clock::now();
    const Outcome stopped = finish(run);
    EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds{20});
    EXPECT_EQ(stopped.status, 128 + SIGTERM) << stopped.out << stopped.err;
    EXPECT_TRUE(is_free(output)) << "a rank is left";
    EXPECT_EQ(losses(output).size(), 0U) << "the step ended: the test proves nothing";
}

/// Big pictures, so that the caches are far from done when the first entry is there.
TEST_F(Program, SigtermWhileCachesAreFilledEndsWithStatusZero) {
    write_png(folder / "pictures/big0.png", 2400, 2400, {200, 30, 90});
    for (int i = 1; i < 30; ++i)
        fs::copy_file(folder / "pictures/big0.png", folder / "pictures" / ("big" + std::to_string(i) + ".png"));
    for (int i = 0; i < 30; ++i)
        std::ofstream{folder / "pictures" / ("big" + std::to_string(i) + ".txt")} << "A big picture.\n";
    const fs::path output = folder / "run";
    Job run = start(on_ranks(2, STRATA_TRAIN_PICTURES, output, {"--config", (folder / "config.json").string()}));
    ASSERT_TRUE(wait_for(run, [&] { return has_file(folder / "latents"); })) << text_of(folder / "err.txt");
    run.ask_to_stop();
    const Outcome stopped = finish(run);
    EXPECT_EQ(stopped.status, 0) << stopped.out << stopped.err;
    EXPECT_NE(stopped.err.find("stopped before training began"), std::string::npos) << stopped.out << stopped.err;

    const Outcome again = train(output);
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_EQ(losses(output).size(), 6U);
}

TEST_F(Program, AMissingDataFolderIsNamed) {
    write_datasets("\"instance_data_dir\": \"" + (folder / "nowhere").string() + "\"");
    expect_refusal(train(folder / "run"), "ST2201", {"nowhere"}, folder / "run");
}

/// A terminal is not cleared and no second line forged by what somebody called a folder.
TEST_F(Program, ANameFromOutsideIsShownInARefusalAndNotObeyed) {
    write_datasets("\"instance_data_dir\": \"" + (folder / "nowhere").string() +
                   "\\u001b[2J\\n[ST2001] forged\\u202e\"");
    const Outcome outcome = train(folder / "run");
    expect_refusal(outcome, "ST2201", {"nowhere\\x1b[2J\\n[ST2001] forged\\u202e"}, folder / "run");
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << outcome.err;
}

TEST_F(Program, AMissingDataFolderLeavesNoFolderBehind) {
    write_datasets("\"instance_data_dir\": \"" + (folder / "nowhere").string() + "\"");
    expect_refusal(train(folder / "n1/n2/n3"), "ST2201", {"nowhere"}, folder / "n1");
    EXPECT_FALSE(fs::exists(folder / "latents"));
    EXPECT_FALSE(fs::exists(folder / "texts"));
}

TEST_F(Program, ASampleSizeThatTheModelCannotDrawIsRefusedBeforeAnythingIsWritten) {
    std::string config = text_of(folder / "config.json");
    const std::string size = "\"validation_resolution\": 32";
    std::ofstream{folder / "config.json"}
        << config.replace(config.find(size), size.size(), "\"validation_resolution\": 100");
    expect_refusal(train(folder / "run"), "ST2103", {"validation_resolution", "100"}, folder / "run");
    EXPECT_FALSE(fs::exists(folder / "latents"));
    EXPECT_FALSE(fs::exists(folder / "texts"));
}

TEST_F(Program, AnEmptyDataFolderIsNamed) {
    fs::create_directories(folder / "empty");
    write_datasets("\"instance_data_dir\": \"" + (folder / "empty").string() + "\"");
    expect_refusal(train(folder / "run"), "ST2201", {"empty"}, folder / "run");
    EXPECT_FALSE(fs::exists(folder / "latents"));
}

TEST_F(Program, AnUnreadableConfigurationIsNamedWithItsLine) {
    std::ofstream{folder / "config.json"} << "{\n  \"seed\": 1,\n  oops\n}";
    expect_refusal(train(folder / "run"), "ST2101", {"config.json:3:3"}, folder / "run");
    fs::remove(folder / "config.json");
    expect_refusal(train(folder / "run"), "ST2101", {"config.json"}, folder / "run");
}

TEST_F(Program, AnUnknownKeyGetsASuggestion) {
    write_config(", \"lerning_rate\": 1");
    expect_refusal(train(folder / "run"), "ST2102", {"lerning_rate", "learning_rate", "config.json"}, folder / "run");
}

TEST_F(Program, AnOutputFolderThatCannotBeMadeIsNamed) {
    std::ofstream{folder / "file"} << "x";
    const Outcome outcome = train(folder / "file/run");
    expect_refusal(outcome, "ST2602", {"file/run"}, folder / "file/run");
    EXPECT_FALSE(fs::exists(folder / "latents"));
}

TEST_F(Program, ABucketBelowTheEffectiveBatchIsNamedWithWaysOut) {
    write_config(", \"gradient_accumulation_steps\": 2");
    const Outcome outcome = train(folder / "run");
    expect_refusal(outcome, "ST2203", {"128 x 32", "repeats", "allow_dataset_oversubscription"}, folder / "run");
}

TEST_F(Program, AnUnknownArgumentGetsASuggestion) {
    expect_refusal(train(folder / "run", {"--fersh"}), "ST2601", {"--fersh", "--fresh"}, folder / "run");
}

TEST_F(Program, HelpAndVersionAreSaidOnceBeforeAnythingIsMade) {
    const fs::path output = folder / "run";
    const auto ask = [&](const std::string& program, const std::string& question) {
        const Outcome answer = finish(start(on_ranks(2, program, output, {question})));
        EXPECT_EQ(answer.status, 0) << answer.err;
        EXPECT_EQ(answer.err, "");
        EXPECT_FALSE(fs::exists(output));
        return answer.out;
    };
    for (const std::string program : {STRATA_TRAIN_YOUR_MODEL, STRATA_TRAIN_PICTURES, STRATA_SHARD_EVERYTHING}) {
        const std::string help = ask(program, "--help");
        EXPECT_EQ(help.find("usage: " + fs::path{program}.filename().string()), 0U) << help;
        EXPECT_EQ(help.find("usage: ", 1), std::string::npos) << help;
        EXPECT_EQ(help.find("--learning_rate") != std::string::npos, program == STRATA_TRAIN_PICTURES) << help;
        EXPECT_EQ(help.find("\n  --nvme_path") != std::string::npos, program == STRATA_SHARD_EVERYTHING) << help;
        EXPECT_EQ(help.find("\n  --optimizer_beta1") != std::string::npos, program == STRATA_TRAIN_PICTURES) << help;
        EXPECT_EQ(help.find("--optimizer_..."), std::string::npos) << "its rule is known: " << help;
    }
    const std::string version = ask(STRATA_TRAIN_YOUR_MODEL, "--version");
    EXPECT_EQ(version.find("strata "), 0U) << version;
    EXPECT_EQ(std::count(version.begin(), version.end(), '\n'), 1) << version;
}

TEST_F(Program, TheCommandLineGoesBeforeTheConfiguration) {
    const fs::path output = folder / "run";
    const Outcome outcome =
        train(output, {"--config", (folder / "config.json").string(), "--max_train_steps", "2", "--learning_rate=1e-5",
                       "--lr_scheduler", "constant", "--validation_prompts", "one", "--compress_disk_cache"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(losses(output).size(), 2U) << "the file says 6";
    EXPECT_NE(text_of(output / "metrics.jsonl").find("\"lr\":1.0000000000000001e-05"), std::string::npos)
        << text_of(output / "metrics.jsonl");
}

TEST_F(Program, WrongWordsOfTheCommandLineAreRefusedInOneSentence) {
    const fs::path output = folder / "run";
    const std::string config = (folder / "config.json").string();
    expect_refusal(train(output, {"--config", config, "--learning_rate", "fast"}), "ST2103",
                   {"--learning_rate is 'fast', not a number"}, output);
    expect_refusal(train(output, {"--config", config, "--lerning_rate", "1"}), "ST2601",
                   {"--lerning_rate", "did you mean --learning_rate?"}, output);
    expect_refusal(train(output, {"--config", config, "--num_train_epochs", "3"}), "ST2103",
                   {"'max_train_steps' and --num_train_epochs are both given"}, output);
    expect_refusal(finish(start(on_ranks(2, STRATA_TRAIN_YOUR_MODEL, output, {"--learning_rate", "1"}))), "ST2601",
                   {"--learning_rate is a key of a trainer's configuration, and this program reads no configuration"},
                   output);
}

TEST_F(Program, OutputMovesEverythingThatARunWritesOfItsOwn) {
    const fs::path configured = folder / "configured";
    write_config(", \"output_dir\": \"" + configured.string() + "\"", 1);
    for (const char* output : {"a", "b"}) {
        const Outcome outcome = train(folder / output);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_TRUE(fs::exists(folder / output / "index/pictures.sqlite")) << output;
        EXPECT_TRUE(fs::exists(folder / output / "metrics.jsonl")) << output;
        EXPECT_FALSE(fs::exists(configured)) << output;
    }
    const Outcome without = finish(start({STRATA_TRAIN_PICTURES, "--config", (folder / "config.json").string(),
                                          "--output_dir", (folder / "c").string()}));
    EXPECT_EQ(without.status, 0) << without.err;
    EXPECT_TRUE(fs::exists(folder / "c/index/pictures.sqlite"));
    EXPECT_FALSE(fs::exists(configured));
}

/// Every way to be wrong before training begins: one sentence, status 2, and no trace.
TEST_F(Program, RefusalsLeaveNoTraceOnOneRankAndOnTwo) {
    struct Case {
        std::string number, says, image_keys, program;
        std::vector<std::string> words;
    };
    const std::string pictures = "\"instance_data_dir\": \"" + (folder / "pictures").string() + "\"";
    const auto folder_of = [&](const char* name) {
        return "\"instance_data_dir\": \"" + (folder / name).string() + "\"";
    };
    fs::create_directory_symlink(folder / "circle", folder / "circle");
    std::ofstream{folder / "no_table.parquet"} << "a,b\n1,2\n";
    const auto table = [&](const char* name) {
        return pictures + ", \"caption_strategy\": \"parquet\", \"parquet\": {\"path\": \"" + (folder / name).string() +
               "\", \"filename_column\": \"a\", \"caption_column\": \"b\"}";
    };
    const std::string trains = STRATA_TRAIN_PICTURES, shards = STRATA_SHARD_EVERYTHING;
    const std::string config = (folder / "config.json").string(), nowhere = (folder / "nowhere").string();
    const std::vector<Case> cases{
        {"ST2201", "nowhere", folder_of("nowhere"), trains, {"--config", config}},
        {"ST2105", "circle", folder_of("circle"), trains, {"--config", config}},
        {"ST2105", "there is no table", table("nowhere.parquet"), trains, {"--config", config}},
        {"ST2620", "no_table.parquet", table("no_table.parquet"), trains, {"--config", config}},
        {"ST2102", "did you mean 'repeats'", pictures + ", \"repeat\": 1", trains, {"--config", config}},
        {"ST2203", "128 x 32", pictures, trains, {"--config", config, "--train_batch_size", "5"}},
        {"ST2101", "nowhere", pictures, trains, {"--config", nowhere}},
        {"ST2101", "nowhere", pictures, trains, {"--config", config, "--data_backend_config", nowhere}},
        {"ST2103",
         "lr_warmup_steps",
         pictures,
         trains,
         {"--config", config, "--max_train_steps=0", "--num_train_epochs=1", "--lr_warmup_steps=99"}},
        {"ST2105", "nvme_path cannot be used", pictures, shards, {"--nvme_path", nowhere}},
    };
    for (const Case& one : cases)
        for (const int ranks : {1, 2}) {
            write_datasets(one.image_keys);
            SCOPED_TRACE(one.says + " on " + std::to_string(ranks));
            expect_refusal(finish(start(on_ranks(ranks, one.program, folder / "n1/n2", one.words))), one.number,
                           {one.says}, folder / "n1");
        }
}

TEST_F(Program, ACheckpointOfTwoRanksResumesOnOneAndOnThree) {
    const std::string program = STRATA_TRAIN_YOUR_MODEL;
    const fs::path output = folder / "spirals";
    ASSERT_EQ(finish(start(on_ranks(2, program, output))).status, 0);
    for (const int ranks : {1, 3}) {
        const Outcome resumed = finish(start(on_ranks(ranks, program, output)));
        EXPECT_EQ(resumed.status, 0) << resumed.err;
        EXPECT_NE(resumed.out.find("resuming from"), std::string::npos) << resumed.out;
        EXPECT_NE(resumed.out.find("100.0 % of new points"), std::string::npos) << resumed.out;
    }
}

TEST_F(Program, StageThreeWithEverythingOnDiskLearnsAndResumesOnAnotherNumberOfRanks) {
    const std::string program = STRATA_SHARD_EVERYTHING;
    const fs::path output = folder / "spirals3";
    const Outcome once = finish(start(on_ranks(2, program, output)));
    ASSERT_EQ(once.status, 0) << once.err;
    const auto at = once.out.find(" % of new points");
    ASSERT_NE(at, std::string::npos) << once.out;
    EXPECT_GT(std::stod(once.out.substr(once.out.rfind('\n', at) + 1)), 97.0) << once.out;
    EXPECT_TRUE(fs::exists(output / "checkpoints" / "step_00000300" / "model_ema.safetensors"));
    for (const auto& entry : fs::directory_iterator{output}) {
        EXPECT_FALSE(entry.path().filename().string().starts_with("strata-swap-")) << "a swap folder is left";
    }
    const Outcome alone = finish(start(on_ranks(1, program, output)));
    EXPECT_EQ(alone.status, 0) << alone.err;
    EXPECT_NE(alone.out.find("resuming from"), std::string::npos) << alone.out;
}

}  // namespace
