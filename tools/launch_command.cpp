#include "launch_command.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include <strata/core/error.hpp>

#include "arguments.hpp"
#include "held_signals.hpp"
#include "launch_job.hpp"

namespace strata::tools {

namespace {

namespace fs = std::filesystem;

constexpr std::array options{
    Option{"-n", "N", "ranks: processes that train together"},
    Option{"-v", "", "says what is set, how the ranks are started, and how each ends"},
    Option{"--help", "", "prints this text"},
};

void print_help() {
    std::printf(
        "strata launch -n N [-v] -- PROGRAM [ARGUMENT ...]\n"
        "\n"
        "Runs PROGRAM on N ranks of this machine, by Open MPI's mpirun.\n"
        "\n%s\n"
        "The first Ctrl-C, SIGTERM, SIGHUP or SIGUSR1 lets every rank finish its step and save; a second one ends all of\n"
        "them at once. No rank outlives this command.\n"
        "\n"
        "Exit status: 0; the status of the first rank that failed, or 128 + signal where a signal ended it; 128 + signal\n"
        "after a second signal; 2 for a word that is not understood and for a program that cannot be started.\n",
        help_lines(options).c_str());
}

std::vector<std::string> folders_of_path() {
    const char* const path = std::getenv("PATH");
    std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
    std::vector<std::string> folders;
    while (true) {
        const std::size_t colon = rest.find(':');
        const std::string_view folder = rest.substr(0, colon);
        folders.emplace_back(folder.empty() ? "." : folder);
        if (colon == std::string_view::npos) return folders;
        rest.remove_prefix(colon + 1);
    }
}

bool is_program(const fs::path& file) {
    std::error_code none;
    return fs::is_regular_file(file, none) && ::access(file.c_str(), X_OK) == 0;
}

/// "" when no folder of PATH has it.
std::string found_in_path(const std::string& name) {
    for (const std::string& folder : folders_of_path())
        if (is_program(fs::path{folder} / name)) return (fs::path{folder} / name).string();
    return {};
}

/// The program's file; says what is wrong with it before N processes say so.
std::string program_file(const std::string& typed) {
    const auto refuse = [](const std::string& what, const std::string& fix) {
        return Error{Errc::cannot_launch, what, fix};
    };
    if (typed.empty()) throw refuse("the name of the program is empty", "type strata launch -n RANKS -- PROGRAM");
    if (typed.find('/') == std::string::npos) {
        if (std::string found = found_in_path(typed); !found.empty()) return found;
        if (is_program(typed))
            throw refuse("there is no program '" + typed + "' in PATH",
                         "type ./" + typed + " for the one in this folder");
        throw refuse("there is no program '" + typed + "' in PATH", "give its path, or build it first");
    }
    std::error_code failed;
    const fs::file_status status = fs::status(typed, failed);
    if (status.type() == fs::file_type::not_found)
        throw refuse("there is no program '" + typed + "'", "check its path, or build it first");
    if (status.type() == fs::file_type::directory)
        throw refuse("'" + typed + "' is a folder, not a program", "give the path of a program in it");
    if (failed)
        throw refuse("the program '" + typed + "' cannot be reached: " + failed.message(),
                     "check the permissions of its folders");
    if (status.type() != fs::file_type::regular)
        throw refuse("'" + typed + "' is no file that can be run", "give the path of a program");
    if (::access(typed.c_str(), X_OK) != 0)
        throw refuse("the file '" + typed + "' is not executable", "if it is a program, type chmod +x " + typed);
    return typed;
}

int usable_cores() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::max(1, CPU_COUNT(&cores)) : 1;
}

/// Sets what is not set, and remembers it for -v.
class Environment {
public:
    void set(const char* name, const std::string& value, const std::string& why) {
        const char* const given = std::getenv(name);
        if (given != nullptr && *given != '\0') {
            said_.push_back(std::string{name} + "=" + given + " (as it was set)");
            return;
        }
        ::setenv(name, value.c_str(), 1);
        said_.push_back(std::string{name} + "=" + value + " (" + why + ")");
    }
    [[nodiscard]] const std::vector<std::string>& said() const { return said_; }

private:
    std::vector<std::string> said_;
};

Environment prepare_environment(int ranks) {
    Environment environment;
    const int cores = usable_cores();
    environment.set("OMP_NUM_THREADS", std::to_string(std::max(1, cores / ranks)),
                    std::to_string(cores) + " cores for " + std::to_string(ranks) + " ranks");
    const bool terminal = ::isatty(STDOUT_FILENO) != 0;
    environment.set("STRATA_PROGRESS", terminal ? "live" : "plain",
                    terminal ? "output is a terminal" : "output is no terminal");
    if (ranks > cores)
        environment.set("OMPI_MCA_mpi_yield_when_idle", "1", "more ranks than cores: who waits lets others work");
    // Open MPI 5 looks for network interfaces all the same, and complains of each rank where there are none.
    environment.set("OMPI_MCA_btl", "^tcp", "all ranks are on this host, which need no network");
    if (::geteuid() == 0)
        for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_ALLOW_RUN_AS_ROOT",
                                 "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"})
            environment.set(name, "1", "this is root");
    return environment;
}

/// This program's file, for the processes that watch over ranks.
std::string own_file() {
    std::error_code failed;
    const fs::path file = fs::read_symlink("/proc/self/exe", failed);
    return failed || !fs::exists(file, failed) ? "/proc/self/exe" : file.string();
}

/// What starts the watchers, without the socket, which comes last. These options are known to Open MPI 4 and 5 alike:
/// --quiet and --oversubscribe are not.
std::vector<std::string> start_words(int ranks) {
    std::vector<std::string> words;
    if (const std::string mpirun = found_in_path("mpirun"); !mpirun.empty()) {
        // By its name and not its path: Open MPI takes a path for the wish to use that installation on all hosts.
        words = {"mpirun", "-n", std::to_string(ranks), "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"};
    } else if (ranks > 1) {
        throw Error{Errc::cannot_launch, "several ranks need Open MPI's mpirun, and no folder of PATH has it",
                    "install it (apt install openmpi-bin), add its folder to PATH, or use -n 1"};
    }
    words.push_back(own_file());
    words.emplace_back("launch-rank");
    return words;
}

std::string one_line(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
    return line;
}

}  // namespace

int launch_command(std::span<const std::string> words) { return launch_command(words, WhenAsked::finish_step); }

int launch_command(std::span<const std::string> words, WhenAsked when_asked) {
    hold_stop_signals();
    const auto dashes = std::find(words.begin(), words.end(), "--");
    const Arguments arguments{"strata launch", words.first(static_cast<std::size_t>(dashes - words.begin())), options};
    if (arguments.has("--help")) {
        print_help();
        return 0;
    }
    const std::string usage = "type strata launch -n RANKS -- PROGRAM ARGUMENTS";
    if (!arguments.words().empty())
        throw Error{Errc::bad_argument,
                    "strata launch does not know what '" + arguments.words().front() + "' is, in front of --",
                    dashes == words.end()
                        ? "put -- in front of the program: strata launch -n RANKS -- " + one_line(arguments.words())
                        : usage};
    const auto ranks = arguments.integer("-n", 1, 1024);
    if (!ranks) throw Error{Errc::bad_argument, "strata launch needs the number of ranks", usage};
    if (dashes == words.end() || dashes + 1 == words.end())
        throw Error{Errc::bad_argument, "strata launch needs a program to run", usage};

    LaunchPlan plan;
    plan.ends_when_asked = when_asked == WhenAsked::end;
    plan.ranks = static_cast<int>(*ranks);
    plan.verbose = arguments.has("-v");
    plan.program = {dashes + 1, words.end()};
    plan.program_file = program_file(plan.program.front());
    plan.start = start_words(plan.ranks);
    const Environment environment = prepare_environment(plan.ranks);
    if (plan.verbose)
        for (const std::string& line : environment.said()) std::fprintf(stderr, "strata launch: %s\n", line.c_str());
    return LaunchJob{std::move(plan)}.run();
}

}  // namespace strata::tools
