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
#include <utility>
#include <vector>

#include <unistd.h>

#include <strata/core/error.hpp>

#include "arguments.hpp"
#include "held_signals.hpp"
#include "launch_company.hpp"
#include "launch_environment.hpp"
#include "launch_handshake.hpp"
#include "launch_hosts.hpp"
#include "launch_node.hpp"
#include "launch_rank.hpp"
#include "launch_series.hpp"
#include "launch_shell.hpp"
#include "own_host.hpp"

namespace strata::tools {

namespace {

namespace fs = std::filesystem;

constexpr std::array options{
    Option{"-n", "N", "ranks: processes that train together; else all slots of the hosts"},
    Option{"--hostfile", "FILE", "hosts, in lines such as `worker-0 slots=8`"},
    Option{"--include", "HOSTS", "of the hostfile only these: worker-0:0,1@worker-1"},
    Option{"--exclude", "HOSTS", "of the hostfile all but these"},
    Option{"--config", "FILE", "an Accelerate YAML: num_processes, and hosts that are each started by themselves"},
    Option{"--machine-rank", "N", "which of those hosts this is, in place of the YAML's machine_rank"},
    Option{"--secret-file", "FILE", "what those hosts prove to each other; else the variable STRATA_LAUNCH_SECRET"},
    Option{"--wait", "SECONDS", "how long those hosts wait for each other; 600"},
    Option{"--remote-shell", "COMMAND", "how other hosts of a hostfile are reached; ssh -x"},
    Option{"--log-dir", "FOLDER", "what each rank prints also goes to FOLDER/rank_N.log"},
    Option{"--tag-output", "", "lines begin with the rank that printed them"},
    Option{"--max-restarts", "N", "starts again from the newest checkpoint when a rank or a host fails; 0"},
    Option{"--elastic", "MIN:MAX",
           "goes on with the hosts that are left, if so many are, and with those that come back"},
    Option{"--elastic-batch", "keep|change", "the effective batch on fewer hosts: kept by accumulation, or smaller"},
    Option{"-v", "", "says what is set, how the ranks are started, and how each ends"},
    Option{"--help", "", "prints this text"},
};

void print_help() {
    std::printf(
        "strata launch [-n N] [--hostfile FILE | --config FILE] [OPTION ...] -- PROGRAM [ARGUMENT ...]\n"
        "\n"
        "Runs PROGRAM on N ranks of this machine, or of all hosts of a hostfile, of Slurm's job, or of an Accelerate YAML, by Open\n"
        "MPI's mpirun.\n"
        "\n%s\n"
        "The first Ctrl-C, SIGTERM, SIGHUP or SIGUSR1 lets every rank finish its step and save; a second one ends all of\n"
        "them at once. No rank outlives this command.\n"
        "\n"
        "Exit status: 0; the status of the first rank that failed, or 128 + signal where a signal ended it; 128 + signal\n"
        "after a second signal; 2 for a word that is not understood and for a program that cannot be started; 75 for a host that\n"
        "was lost or did not come.\n",
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

/// This program's file, for the processes that watch over ranks.
std::string own_file() {
    std::error_code failed;
    const fs::path file = fs::read_symlink("/proc/self/exe", failed);
    return failed || !fs::exists(file, failed) ? "/proc/self/exe" : file.string();
}

std::string one_line(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
    return line;
}

bool has_slurm_support() {
    std::FILE* const output = ::popen("(ompi_info --parsable || prte_info --parsable) 2>/dev/null", "r");
    if (output == nullptr) return false;
    std::string text;
    std::array<char, 4096> piece{};
    while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), output)) text.append(piece.data(), n);
    ::pclose(output);
    return text.find("mca:plm:slurm:") != std::string::npos;
}

/// How mpirun gets to other hosts. Open MPI 4 and 5 have different names for the same.
void prepare_way(LaunchEnvironment& environment, const std::string& shell, const std::string& key, bool is_by_nodes) {
    const std::string agent = own_file();
    if (agent.find_first_of(" :,;") != std::string::npos)
        throw Error{Errc::cannot_launch,
                    "mpirun cannot start '" + agent + "' in place of ssh: its path has a space or a sign",
                    "install strata in a folder without such"};
    ::setenv(key_variable, key.c_str(), 1);
    ::setenv(remote_shell_variable, shell.c_str(), 1);
    if (!is_by_nodes && !variable("SLURM_JOB_ID").empty() && has_slurm_support()) {
        environment.force("OMPI_MCA_plm", "slurm", "Slurm starts mpirun's helpers on its hosts, by srun");
        environment.force("PRTE_MCA_plm", "slurm", "the same, for Open MPI 5");
        return;
    }
    const std::string why = is_by_nodes ? "each host was started by itself" : "hosts are reached by " + shell;
    environment.force("OMPI_MCA_plm", "rsh", why);
    environment.force("PRTE_MCA_plm", "ssh", "the same, for Open MPI 5");
    for (const char* name : {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"})
        environment.force(name, agent + " launch-shell", why);
    for (const char* name : {"OMPI_MCA_plm_rsh_no_tree_spawn", "PRTE_MCA_plm_ssh_no_tree_spawn"})
        environment.force(name, "1", "from this host to every other");
    // As soon as strata's own connections; Open MPI's own is five minutes.
    for (const auto& [name, value] : {std::pair{"time", "10"}, {"intvl", "5"}, {"probes", "3"}})
        for (const char* front : {"OMPI_MCA_oob_tcp_keepalive_", "PRTE_MCA_oob_tcp_keepalive_"})
            environment.force((std::string{front} + name).c_str(), value, "a host that is lost is noticed");
    for (const char* name : {"OMPI_MCA_orte_leave_session_attached", "PRTE_MCA_prte_leave_session_attached"})
        environment.force(name, "1", "so that the end of one is seen");
}

int run_launch(const Arguments& arguments, std::vector<std::string> program, WhenAsked when_asked) {
    Company company = company_of(arguments);
    // A node hands it to its own ranks, so that each may have others.
    if (!company.gpus.empty()) ::setenv("CUDA_VISIBLE_DEVICES", company.gpus.c_str(), 1);
    const bool by_nodes = company.machines > 1;
    const bool many_hosts = by_nodes || !company.hosts.empty();
    const bool verbose = arguments.has("-v");
    const auto seconds = arguments.integer("--wait", 1, 86'400);
    const int ranks = static_cast<int>(*company.ranks);
    const auto hosts =
        by_nodes ? static_cast<std::size_t>(company.machines) : std::max<std::size_t>(1, company.hosts.size());

    SeriesPlan series;
    series.elastic = elastic_of(arguments, hosts);
    series.restarts =
        static_cast<int>(arguments.integer("--max-restarts", 0, 1'000'000).value_or(series.elastic.least > 0 ? 3 : 0));
    series.wait_seconds = static_cast<int>(seconds.value_or(600));
    series.first_node = company.first;
    if (by_nodes && company.machine_rank > 0)
        return run_node({.machine_rank = company.machine_rank,
                         .machines = company.machines,
                         .slots = ranks / company.machines,
                         .first = company.first,
                         .key = secret_of(arguments),
                         .wait_seconds = series.wait_seconds,
                         .comes_back = series.restarts > 0,
                         .verbose = verbose});

    LaunchPlan& plan = series.launch;
    plan.ends_when_asked = when_asked == WhenAsked::end;
    plan.ranks = ranks;
    plan.verbose = verbose;
    plan.program = std::move(program);
    plan.program_file = program_file(plan.program.front());
    plan.start = start_words(plan.ranks, host_list(company.hosts));
    plan.hosts = company.hosts;
    if (series.elastic.keeps_batch) (void)keep_batch(plan.program, 1, 1);

    const bool is_piped = arguments.has("--tag-output") || arguments.has("--log-dir");
    std::optional<LaunchOutput> output;
    if (is_piped)
        plan.output = &output.emplace(arguments.text("--log-dir").value_or(""), arguments.has("--tag-output"));
    std::optional<LaunchPort> port;
    std::optional<LaunchNodes> nodes;
    LaunchEnvironment environment{plan.ranks, many_hosts, is_piped};
    if (many_hosts) {
        series.remote_shell = arguments.text("--remote-shell").value_or("ssh -x -o BatchMode=yes -o ConnectTimeout=15");
        (void)words_of_shell(series.remote_shell);
        const std::string key = by_nodes ? secret_of(arguments) : random_digits(32);
        plan.port = &port.emplace(company.port, key, lost_after_seconds);
        prepare_way(environment, series.remote_shell, key, by_nodes);
        plan.environment = LaunchEnvironment::for_all_hosts();
        plan.threads = environment.threads();
    }
    if (by_nodes) {
        plan.nodes = &nodes.emplace(company.machines, ranks / company.machines);
        ::setenv(shell_socket_variable, nodes->shell_socket().c_str(), 1);
        for (int machine = 1; machine < company.machines; ++machine) {
            if (plan.hosts.empty()) plan.hosts = nodes->hosts();
            plan.hosts.push_back({LaunchNodes::name_of(machine), plan.hosts.front().slots});
        }
        plan.start = start_words(plan.ranks, host_list(plan.hosts));
        plan.own_host = "localhost";
    } else {
        plan.own_host = own_host(plan.hosts);
    }
    if (const std::string warning = plan.hosts.empty() ? "" : warning_of_uneven(plan.hosts); !warning.empty())
        std::fprintf(stderr, "strata launch: warning: %s\n", warning.c_str());
    if (verbose) {
        if (!company.how.empty()) std::fprintf(stderr, "strata launch: %s\n", company.how.c_str());
        for (const std::string& line : environment.said()) std::fprintf(stderr, "strata launch: %s\n", line.c_str());
        for (const std::string& word : plan.environment)
            std::fprintf(stderr, "strata launch: on all hosts %s\n", word.c_str());
    }
    return LaunchSeries{std::move(series)}.run();
}

}  // namespace

// These options are known to Open MPI 4 and 5 alike: --quiet and --oversubscribe are not.
std::vector<std::string> start_words(int ranks, const std::string& hosts) {
    std::vector<std::string> words;
    if (const std::string mpirun = found_in_path("mpirun"); !mpirun.empty()) {
        // By its name and not its path: Open MPI takes a path for the wish to use that installation on all hosts.
        words = {"mpirun", "-n", std::to_string(ranks), "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"};
        if (!hosts.empty()) words.insert(words.end(), {"--host", hosts});
    } else if (ranks > 1 || !hosts.empty()) {
        throw Error{Errc::cannot_launch, "several ranks need Open MPI's mpirun, and no folder of PATH has it",
                    "install it (apt install openmpi-bin), add its folder to PATH, or use -n 1"};
    }
    words.push_back(own_file());
    words.emplace_back("launch-rank");
    return words;
}

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
    if (dashes == words.end() || dashes + 1 == words.end())
        throw Error{Errc::bad_argument, "strata launch needs a program to run", usage};

    return run_launch(arguments, {dashes + 1, words.end()}, when_asked);
}

}  // namespace strata::tools
