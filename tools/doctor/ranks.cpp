#include "ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/host_name.hpp>
#include <strata/core/text.hpp>

#include "../launch_handshake.hpp"
#include "../launch_hosts.hpp"
#include "../launch_shell.hpp"
#include "../own_host.hpp"
#include "../program_beside.hpp"
#include "other_program.hpp"
#include "small_file.hpp"

namespace strata::tools::doctor {

namespace fs = std::filesystem;

namespace {

/// Goes with what is in it.
class OwnFolder {
public:
    OwnFolder() {
        std::string name = (fs::temp_directory_path() / "strata-doctor-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr)
            throw Error{Errc::cannot_launch, "no folder can be made in " + fs::temp_directory_path().string(),
                        "make room there, or name another folder in TMPDIR"};
        path_ = name;
    }
    ~OwnFolder() {
        std::error_code none;
        fs::remove_all(path_, none);
    }
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;
    [[nodiscard]] const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

/// Of what the launcher has printed, the line that says why, and behind it the first one of mpirun, MPI or the remote shell.
std::string reason_in(const std::string& printed) {
    std::istringstream in{printed};
    std::string reason;
    std::string other;
    for (std::string line; std::getline(in, line);) {
        const std::string text{core::trimmed(line)};
        if (const std::size_t mark = text.find("[ST"); mark != std::string::npos && reason.empty())
            reason = text.substr(mark);
        else if (other.empty() && text.find_first_not_of("-=*") != std::string::npos &&
                 !text.starts_with(report_mark) && mark == std::string::npos)
            other = text;
    }
    if (reason.empty()) return other;
    const std::size_t fix = std::min(reason.find(". Fix: "), reason.size());
    return other.empty() ? reason : reason.substr(0, fix) + " (" + other + ")" + reason.substr(fix);
}

/// Those that answer; the names of the others go into `silent`.
std::vector<LaunchHost> hosts_that_are_there(std::vector<LaunchHost> hosts, const std::string& shell,
                                             std::vector<std::string>& silent) {
    const std::string own = own_host(hosts);
    std::vector<std::string> others;
    for (const LaunchHost& host : hosts)
        if (host.name != own) others.push_back(host.name);
    const std::vector<std::string> answered = hosts_that_answer(others, shell, 20);
    std::erase_if(hosts, [&](const LaunchHost& host) {
        const bool is_silent =
            host.name != own && std::find(answered.begin(), answered.end(), host.name) == answered.end();
        if (is_silent) silent.push_back(host.name);
        return is_silent;
    });
    return hosts;
}

}  // namespace

RanksFacts start_ranks(const RanksRequest& request) {
    RanksFacts facts;
    facts.shared_folder = request.shared.string();
    const std::string program = program_beside("strata-doctor", "strata_doctor");
    const OwnFolder folder;
    std::vector<std::string> words{fs::read_symlink("/proc/self/exe").string(), "launch"};
    std::int64_t ranks = request.ranks.value_or(1);
    if (request.hosts) {
        const std::string shell =
            request.remote_shell.empty() ? "ssh -x -o BatchMode=yes -o ConnectTimeout=15" : request.remote_shell;
        const std::vector<LaunchHost> hosts = hosts_that_are_there(*request.hosts, shell, facts.silent_hosts);
        if (hosts.empty()) return facts;
        ranks = ranks_of(hosts);
        const fs::path hostfile = folder.path() / "hosts";
        std::ofstream out{hostfile};
        for (const LaunchHost& host : hosts) out << host.name << " slots=" << host.slots.size() << "\n";
        words.insert(words.end(), {"--hostfile", hostfile.string(), "--remote-shell", shell});
    }
    const fs::path logs = folder.path() / "logs";
    words.insert(words.end(), {"-n", std::to_string(ranks), "--log-dir", logs.string(), "--", program, "--own-host",
                               core::host_name()});
    if (!request.shared.empty())
        words.insert(words.end(), {"--shared", request.shared.string(), "--token", random_digits(8)});
    for (const FolderPlace& place : request.folders)
        words.push_back(name_of(place.purpose) + "=" + place.folder.string());

    const OtherProgram launch = run_other(words, std::chrono::minutes{5});
    facts.is_in_time = launch.is_in_time;
    facts.failure = reason_in(launch.err + "\n" + launch.out);
    std::vector<std::string> printed;
    for (std::int64_t rank = 0; rank < ranks; ++rank)
        printed.push_back(small_file(logs / ("rank_" + std::to_string(rank) + ".log")).value_or(""));
    facts.reports = parse_reports(printed);
    return facts;
}

Line look_at_mpirun() {
    const OtherProgram other = run_other({"mpirun", "--version"}, std::chrono::seconds{15});
    const std::string said{core::trimmed(core::first_line(other.out))};
    if (!other.is_in_time)
        return warning("MPI", "mpirun --version has not ended within 15 s",
                       "run it by hand, and look what it waits for");
    if (other.status == 127)
        return warning("MPI", "no folder of PATH has mpirun, which starts several ranks",
                       "apt install openmpi-bin, or add its folder to PATH");
    if (other.status != 0 || said.find("Open MPI") == std::string::npos)
        return warning("MPI",
                       "mpirun is not Open MPI's: " +
                           (said.empty() ? "it ended with status " + std::to_string(other.status) : said),
                       "put the folder of Open MPI's in front of PATH");
    Line line = ok("MPI", said + "; -n N or --hostfile FILE starts ranks and measures between them");
    line.values = {{"mpirun", said}};
    return line;
}

}  // namespace strata::tools::doctor
