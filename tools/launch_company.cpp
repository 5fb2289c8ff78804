#include "launch_company.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include <strata/config/accelerate.hpp>
#include <strata/core/error.hpp>

#include "launch_handshake.hpp"

namespace strata::tools {

namespace {

/// What an Accelerate YAML says about hosts.
Company company_of(const config::LaunchIntent& launch, const std::string& file, const Arguments& arguments) {
    Company company;
    company.machines = static_cast<int>(launch.machines.value_or(1));
    if (company.machines <= 1) {
        (void)arguments.integer("--machine-rank", 0, 0);
        company.ranks = launch.ranks;
        return company;
    }
    const auto refuse = [&](const std::string& what, const std::string& fix) {
        return Error{Errc::bad_argument, file + " " + what, fix};
    };
    const std::string machines = std::to_string(company.machines) + " machines";
    if (!launch.ranks)
        throw refuse("is for " + machines + " and has no num_processes",
                     "write num_processes: the ranks of all machines");
    if (*launch.ranks % company.machines != 0)
        throw refuse("has " + std::to_string(*launch.ranks) + " processes for " + machines,
                     "give a multiple of num_machines, or name hosts of different sizes in a hostfile (--hostfile)");
    if (launch.main_address.empty())
        throw refuse("is for " + machines + " and has no main_process_ip",
                     "write the address of machine_rank 0, or name the hosts in a hostfile (--hostfile)");
    company.ranks = launch.ranks;
    company.machine_rank = static_cast<int>(
        arguments.integer("--machine-rank", 0, company.machines - 1).value_or(launch.machine_rank.value_or(0)));
    company.port = static_cast<std::uint16_t>(launch.main_port.value_or(29500));
    if (company.port == 0)
        throw refuse("has main_process_port 0, which the other machines cannot know", "write a port, as in 29500");
    company.first = launch.main_address + ":" + std::to_string(company.port);
    company.how = "each host was started by itself, and connects to " + company.first;
    return company;
}

/// What of an Accelerate YAML's keys says where ranks run: one that cannot be taken would start other ranks than are meant, or elsewhere.
bool is_about_hosts(const config::Finding& finding) {
    constexpr std::array<std::string_view, 9> keys{"num_processes",
                                                   "num_machines",
                                                   "machine_rank",
                                                   "main_process_ip",
                                                   "main_process_port",
                                                   "gpu_ids",
                                                   "deepspeed_config.deepspeed_hostfile",
                                                   "deepspeed_config.deepspeed_inclusion_filter",
                                                   "deepspeed_config.deepspeed_exclusion_filter"};
    // `machine_rnk: 1` would be machine 0.
    const bool is_misspelt = finding.code == Errc::unknown_key && (finding.key.find('.') == std::string::npos ||
                                                                   finding.key.starts_with("deepspeed_config."));
    return is_misspelt || finding.key.starts_with("mpirun_config") ||
           std::find(keys.begin(), keys.end(), finding.key) != keys.end();
}

/// As load_accelerate() has it, where nothing about hosts is refused. A hostfile is looked for beside the YAML too.
config::LaunchIntent launch_of(const std::string& file) {
    namespace fs = std::filesystem;
    config::Findings findings;
    config::LaunchIntent launch = config::load_accelerate(file, findings).launch;
    for (const config::Finding& finding : findings.all())
        if (finding.effect == config::Effect::refused && is_about_hosts(finding))
            throw Error{Errc::bad_argument, config::sentence(finding), finding.fix};
    std::error_code none;
    const fs::path hostfile = launch.hostfile;
    const fs::path beside = fs::path{file}.parent_path() / hostfile;
    if (!launch.hostfile.empty() && hostfile.is_relative() && !fs::exists(hostfile, none) && fs::exists(beside, none))
        launch.hostfile = beside.string();
    return launch;
}

/// num_processes over the hosts, as DeepSpeed's launcher does it: of each as many, and its first slots.
std::vector<LaunchHost> shared_out(std::vector<LaunchHost> hosts, const config::LaunchIntent& launch,
                                   const std::string& file, const std::string& where) {
    const auto count = static_cast<std::int64_t>(hosts.size());
    const auto refuse = [&](const std::string& what, const std::string& fix) {
        return Error{Errc::bad_argument, file + " has " + what, fix};
    };
    const std::string there = where + " has " + std::to_string(count) + (count == 1 ? " host" : " hosts");
    if (launch.machines && *launch.machines != count)
        throw refuse("num_machines " + std::to_string(*launch.machines) + ", and " + there,
                     "let both say the same, or leave num_machines out");
    if (!launch.ranks) return hosts;
    if (*launch.ranks % count != 0)
        throw refuse("num_processes " + std::to_string(*launch.ranks) + ", and " + there,
                     "give a multiple of the hosts, or leave num_processes out: then all slots are used");
    const auto each = static_cast<std::size_t>(*launch.ranks / count);
    for (LaunchHost& host : hosts) {
        if (host.slots.size() < each)
            throw refuse("num_processes " + std::to_string(*launch.ranks) + ", which are " + std::to_string(each) +
                             " of each host, and " + host.name + " has " + std::to_string(host.slots.size()) +
                             (host.slots.size() == 1 ? " slot" : " slots"),
                         "lower num_processes, or leave it out: then all slots are used");
        host.slots.resize(each);
    }
    return hosts;
}

/// Options about hosts of another kind than those of this launch, or about none: who typed them expects something of them.
void refuse_without_effect(const Arguments& arguments, const Company& company) {
    const bool has_nodes = company.machines > 1;
    for (const char* option : {"--machine-rank", "--secret-file", "--wait"}) {
        // One YAML and one line may be for any number of machines, and now there is one.
        const bool is_of_one = arguments.has("--config") && company.hosts.empty();
        if (arguments.has(option) && !has_nodes && !is_of_one)
            throw Error{Errc::bad_argument,
                        std::string{option} + " is about hosts that are each started by themselves, and these are not",
                        "leave it out, or give --config FILE with num_machines and main_process_ip"};
    }
    if (arguments.has("--remote-shell") && company.hosts.empty())
        throw Error{Errc::bad_argument, "--remote-shell is about hosts of a hostfile, and there is none",
                    "leave it out, or give --hostfile FILE"};
}

}  // namespace

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string{} : std::string{value};
}

Company company_of(const Arguments& arguments) {
    Company company;
    std::string hostfile = arguments.text("--hostfile").value_or("");
    std::string include = arguments.text("--include").value_or("");
    std::string exclude = arguments.text("--exclude").value_or("");
    const std::string yaml = arguments.text("--config").value_or("");
    config::LaunchIntent launch;
    if (!yaml.empty()) {
        launch = launch_of(yaml);
        if (hostfile.empty()) hostfile = launch.hostfile;
        if (include.empty() && exclude.empty()) {
            include = launch.include;
            exclude = launch.exclude;
        }
        if (hostfile.empty()) company = company_of(launch, yaml, arguments);
        company.gpus = launch.gpus;
    }
    const std::string nodelist = variable("SLURM_JOB_NODELIST");
    std::string where = hostfile;
    if (!hostfile.empty()) {
        company.hosts = hosts_of_file(hostfile, include, exclude);
        company.how = "hosts of " + hostfile;
    } else if (company.machines == 1 && !nodelist.empty() && names_of_nodelist(nodelist).size() > 1) {
        company.hosts = hosts_of_slurm(nodelist, variable("SLURM_TASKS_PER_NODE"));
        where = "Slurm's job " + variable("SLURM_JOB_ID");
        company.how = "hosts of " + where;
    } else if (!include.empty() || !exclude.empty()) {
        throw Error{Errc::bad_argument,
                    "--include and --exclude choose from the hosts of a hostfile, and there is none",
                    "give --hostfile FILE"};
    }
    refuse_without_effect(arguments, company);
    if (!company.hosts.empty() && !company.gpus.empty())
        throw Error{Errc::bad_argument,
                    yaml + " has gpu_ids, which are of one host, and " + where + " has " +
                        std::to_string(company.hosts.size()) + (company.hosts.size() == 1 ? " host" : " hosts"),
                    "write gpu_ids: all, and choose slots with --include or deepspeed_inclusion_filter: host:2,3"};
    if (const auto ranks = arguments.integer("-n", 1, 1024)) {
        if (company.machines > 1 && *ranks != company.ranks)
            throw Error{Errc::bad_argument, "-n and num_processes of the YAML are different numbers of ranks",
                        "leave -n out"};
        company.ranks = ranks;
        if (!company.hosts.empty()) company.hosts = first_slots(std::move(company.hosts), static_cast<int>(*ranks));
    } else if (!company.hosts.empty()) {
        if (!yaml.empty()) company.hosts = shared_out(std::move(company.hosts), launch, yaml, where);
        company.ranks = ranks_of(company.hosts);
    }
    if (!company.ranks)
        throw Error{Errc::bad_argument, "strata launch needs the number of ranks",
                    "type strata launch -n RANKS -- PROGRAM ARGUMENTS, or name hosts with --hostfile or --config"};
    if (*company.ranks < 1 || *company.ranks > 100'000)
        throw Error{Errc::bad_argument, std::to_string(*company.ranks) + " ranks are asked for",
                    "type -n with 1 or more"};
    return company;
}

// Not on a command line, where every user of the host can read it.
std::string secret_of(const Arguments& arguments) {
    std::string secret = variable("STRATA_LAUNCH_SECRET");
    ::unsetenv("STRATA_LAUNCH_SECRET");  // of no use to what is started here
    if (const auto file = arguments.text("--secret-file")) {
        std::ifstream in{*file, std::ios::binary};
        secret.assign(std::istreambuf_iterator<char>{in}, {});
        if (!in)
            throw Error{Errc::bad_argument, "the file of the secret '" + *file + "' cannot be read",
                        "check its path and its permissions"};
        struct stat status {};
        if (::stat(file->c_str(), &status) == 0 && (status.st_mode & 077U) != 0)
            std::fprintf(stderr, "strata launch: warning: others can read the file of the secret; type chmod 600 %s\n",
                         file->c_str());
    }
    while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
    if (secret.size() < 16)
        throw Error{
            Errc::bad_argument,
            secret.empty() ? "hosts that are started by themselves need a secret, and there is none"
                           : "the secret is shorter than 16 characters",
            "make one with `openssl rand -hex 32`, and give it to every node as --secret-file or as the variable "
            "STRATA_LAUNCH_SECRET"};
    return derived_key(secret, "hosts");
}

Elastic elastic_of(const Arguments& arguments, std::size_t hosts) {
    Elastic elastic;
    const auto text = arguments.text("--elastic");
    const auto batch = arguments.text("--elastic-batch");
    if (!text) {
        if (batch)
            throw Error{Errc::bad_argument, "--elastic-batch is about --elastic, which is not given",
                        "give --elastic MIN:MAX"};
        return elastic;
    }
    const std::size_t colon = text->find(':');
    const auto number = [&](std::string_view digits) {
        int value = 0;
        const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return failed == std::errc{} && end == digits.data() + digits.size() ? value : 0;
    };
    elastic.least = number(std::string_view{*text}.substr(0, colon));
    elastic.most = colon == std::string::npos ? 0 : number(std::string_view{*text}.substr(colon + 1));
    if (elastic.least < 1 || elastic.most < elastic.least)
        throw Error{Errc::bad_argument, "--elastic is '" + *text + "'",
                    "type the least and the most hosts, as in --elastic 2:4"};
    if (hosts < 2)
        throw Error{Errc::bad_argument, "--elastic is about several hosts, and there is one",
                    "name them with --hostfile or --config"};
    if (static_cast<std::size_t>(elastic.least) > hosts)
        throw Error{
            Errc::bad_argument,
            "--elastic wants " + std::to_string(elastic.least) + " hosts, and there are " + std::to_string(hosts),
            "type a smaller least number"};
    if (batch != "keep" && batch != "change")
        throw Error{Errc::bad_argument,
                    batch ? "--elastic-batch is '" + *batch + "'"
                          : "--elastic does not say what becomes of the effective batch on fewer hosts",
                    "type --elastic-batch keep (more gradient accumulation) or --elastic-batch change (smaller steps)"};
    elastic.keeps_batch = batch == "keep";
    return elastic;
}

}  // namespace strata::tools
