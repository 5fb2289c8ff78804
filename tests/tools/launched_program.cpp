// A program for strata launch to run: launched_program CASE FOLDER [ARGUMENT ...]. launch_command_test starts it. It knows nothing of
// MPI: a rank is what mpirun says it is.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <strata/train/stop_signal.hpp>

namespace {

namespace fs = std::filesystem;

fs::path folder;
std::string rank = "0";

/// FOLDER/rank_R.NAME appears with its text in it.
void leave(const std::string& name, const std::string& text = "") {
    const fs::path file = folder / ("rank_" + rank + "." + name);
    std::ofstream{file.string() + ".new"} << text;
    fs::rename(file.string() + ".new", file);
}
template <class Happened>
void wait_until(Happened happened) {
    while (!happened()) std::this_thread::sleep_for(std::chrono::milliseconds{2});
}
void wait_for_file(const fs::path& file) {
    wait_until([&] { return fs::exists(file); });
}

/// Of an environment variable.
std::string text_of(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// What a trainer does, as far as a launcher can see it.
void train(const strata::train::StopSignal& stop) {
    leave("trains");
    wait_until([&] { return stop.requested(); });
    if (const char* const before_saving = std::getenv("WAIT_BEFORE_SAVING")) wait_for_file(before_saving);
    std::printf("rank %s saves\n", rank.c_str());
    std::fflush(stdout);
    leave("saved");
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    folder = argc > 2 ? argv[2] : ".";
    if (const char* const number = std::getenv("OMPI_COMM_WORLD_RANK")) rank = number;
    const int lock = ::open((folder / ("rank_" + rank + ".lock")).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (::flock(lock, LOCK_EX | LOCK_NB) != 0) return 99;
    leave("pid", std::to_string(::getpid()) + " " + std::to_string(::getsid(0)));

    if (what == "trains") {
        const strata::train::StopSignal stop;
        train(stop);
    } else if (what == "hears_late") {
        wait_for_file(folder / "listen");
        const strata::train::StopSignal stop;
        train(stop);
    } else if (what == "never_hears") {
        wait_for_file(folder / "never");
    } else if (what == "says_why") {  // as "ends", with a line about it
        if (rank == argv[3]) {
            for (const char* other : {"rank_0.pid", "rank_1.pid"}) wait_for_file(folder / other);
            strata::train::note_reason_is_told();
            std::fprintf(stderr, "rank %s failed, and this is why\n", rank.c_str());
            return std::atoi(argv[4]);
        }
        wait_for_file(folder / "never");
    } else if (what == "ends") {  // rank N of "ends FOLDER N STATUS" ends when all are there; the others do not
        if (rank == argv[3]) {
            for (const char* other : {"rank_0.pid", "rank_1.pid"}) wait_for_file(folder / other);
            if (argv[4][0] == '-') ::raise(std::atoi(argv[4] + 1));
            return std::atoi(argv[4]);
        }
        wait_for_file(folder / "never");
    } else if (what ==
               "drains") {  // "drains FOLDER N": rank N's host has a fault, and all end; without a rank N they end well
        const strata::train::StopSignal stop;
        std::printf("rank %s, restarted after: %s\n", rank.c_str(), text_of("STRATA_RESTARTED_AFTER").c_str());
        const std::string ranks = text_of("OMPI_COMM_WORLD_SIZE");
        if (std::atoi(argv[3]) >= std::atoi(ranks.c_str())) return 0;
        if (rank == argv[3]) {
            strata::train::note_faulty_host();
            leave("faulty");
        }
        wait_for_file(folder / ("rank_" + std::string{argv[3]} + ".faulty"));
        if (rank == argv[3]) wait_for_file(folder / "rank_0.left");  // the others end first, and nobody is ended for it
        leave("left");
        strata::train::note_reason_is_told();
        return 70;
    } else if (what == "prints") {
        std::string text;
        for (int i = 3; i < argc; ++i) text += "[" + std::string{argv[i]} + "]";
        text += std::string{" input "} + (std::getchar() == EOF ? "is empty" : "is there");
        for (const char* name : {"OMP_NUM_THREADS", "STRATA_PROGRESS"})
            text += std::string{" "} + name + "=" + text_of(name);
        std::printf("rank %s %s\n", rank.c_str(), text.c_str());
        int spare = 0;  // /dev/null beside the input: the launcher's own
        std::error_code gone;
        for (int file = 3; file < 256; ++file)
            if (fs::read_symlink("/proc/self/fd/" + std::to_string(file), gone) == "/dev/null") ++spare;
        std::fprintf(stderr, "rank %s errors, %d spare files\n", rank.c_str(), spare);
    }
    return 0;
}
