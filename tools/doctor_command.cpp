#include "doctor_command.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/core/text.hpp>

#include "arguments.hpp"
#include "doctor/bucket.hpp"
#include "doctor/host_checks.hpp"
#include "doctor/in_time.hpp"
#include "doctor/line.hpp"
#include "doctor/place.hpp"
#include "doctor/ranks.hpp"
#include "launch_hosts.hpp"

namespace strata::tools {

namespace {

using doctor::Line;
using doctor::Purpose;

constexpr std::array options{
    Option{"--config", "FILE", "a trainer's configuration or a dataset list: its folders and buckets are looked at"},
    Option{"--output", "DIR", "where checkpoints go: with ranks, whether all hosts see it"},
    Option{"--offload", "DIR", "where state is kept on a disk"},
    Option{"-n", "N", "starts so many ranks, and measures between them"},
    Option{"--hostfile", "FILE",
           "the same on these hosts, in lines such as `worker-0 slots=8`; each of them is looked at"},
    Option{"--include", "HOSTS", "of the hostfile only these: worker-0:0,1@worker-1"},
    Option{"--exclude", "HOSTS", "of the hostfile all but these"},
    Option{"--remote-shell", "COMMAND", "how other hosts are reached; ssh -x"},
    Option{"--json", "", "prints everything as one JSON object, with what was measured"},
    Option{"--help", "", "prints this text"},
};

void print_help() {
    std::printf(
        "strata doctor [PLACE ...] [--config FILE] [-n N | --hostfile FILE] [OPTION ...]\n"
        "\n"
        "Looks at what a run needs, and says in a line each whether it is there: processor and BLAS, GPUs and driver, memory and\n"
        "limits, io_uring, folders with their file systems and speeds, buckets and the rights of their keys, MPI and the network\n"
        "between hosts. A PLACE is a folder or s3://BUCKET/PREFIX; without any, this folder.\n"
        "\n%s\n"
        "What it writes begins with .strata-doctor-, is 128 MiB in a folder and some bytes in a bucket at most, and is removed. Nothing is\n"
        "waited for longer than five minutes.\n"
        "\n"
        "Exit status: 0 where there is no problem; 1 where there is one; 2 for words that are not understood.\n",
        help_lines(options).c_str());
}

doctor::Places places_of(const Arguments& arguments, std::vector<Line>& lines) {
    doctor::Places places;
    if (const auto folder = arguments.text("--output")) places.add(Purpose::output, *folder);
    if (const auto folder = arguments.text("--offload")) places.add(Purpose::offload, *folder);
    for (const std::string& word : arguments.words()) {
        if (word.starts_with("s3://"))
            places.add(doctor::bucket_of_url(word));
        else
            places.add(Purpose::folder, word);
    }
    if (const auto file = arguments.text("--config"))
        lines.push_back(doctor::add_places_of(*file, places));
    else if (places.folders.empty() && places.buckets.empty())
        places.add(Purpose::folder, ".");
    return places;
}

void look_at_buckets(const doctor::Places& places, std::vector<Line>& lines) {
    constexpr std::chrono::seconds patience{60};
    for (const doctor::BucketPlace& bucket : places.buckets) {
        const auto facts = doctor::in_time(patience, [bucket] { return look_at_bucket(bucket); });
        lines.push_back(facts ? judge(*facts)
                              : doctor::problem("bucket", bucket.name + " has not answered within a minute",
                                                "look at the server and the network"));
    }
}

/// The ranks and hosts that are asked for.
doctor::RanksRequest request_of(const Arguments& arguments) {
    doctor::RanksRequest request;
    request.ranks = arguments.integer("-n", 1, 1024);
    request.remote_shell = arguments.text("--remote-shell").value_or("");
    if (const auto file = arguments.text("--hostfile")) {
        request.hosts =
            hosts_of_file(*file, arguments.text("--include").value_or(""), arguments.text("--exclude").value_or(""));
        if (request.ranks) request.hosts = first_slots(std::move(*request.hosts), static_cast<int>(*request.ranks));
    } else if (arguments.has("--include") || arguments.has("--exclude")) {
        throw Error{Errc::bad_argument,
                    "--include and --exclude choose from the hosts of a hostfile, and there is none",
                    "give --hostfile FILE"};
    }
    return request;
}

void look_at_ranks(doctor::RanksRequest request, const doctor::Places& places, std::vector<Line>& lines) {
    if (!request.ranks && !request.hosts) {
        lines.push_back(doctor::look_at_mpirun());
        return;
    }
    if (const auto output = places.output()) request.shared = doctor::nearest_folder(*output);
    for (doctor::FolderPlace place : places.folders) {
        place.folder = std::filesystem::absolute(place.folder);
        request.folders.push_back(std::move(place));
    }
    try {
        const std::vector<Line> found = judge(doctor::start_ranks(request));
        lines.insert(lines.end(), found.begin(), found.end());
    } catch (const Error& error) {
        if (error.code() != Errc::cannot_launch) throw;
        const std::string said{core::first_line(error.what())};
        const std::size_t fix = said.find(". Fix: ");
        lines.push_back(doctor::problem("ranks", said.substr(0, fix),
                                        fix == std::string::npos ? "install it" : said.substr(fix + 7)));
    }
}

}  // namespace

int doctor_command(std::span<const std::string> words) {
    const Arguments arguments{"strata doctor", words, options};
    if (arguments.has("--help")) {
        print_help();
        return 0;
    }
    doctor::RanksRequest ranks = request_of(arguments);  // before anything is looked at
    std::vector<Line> lines;
    const doctor::Places places = places_of(arguments, lines);
    const std::vector<Line> host = doctor::check_host(places.folders);
    lines.insert(lines.end(), host.begin(), host.end());
    look_at_buckets(places, lines);
    look_at_ranks(std::move(ranks), places, lines);
    std::fputs(arguments.has("--json")
                   ? (json_of(lines).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n").c_str()
                   : text_of(lines).c_str(),
               stdout);
    std::fflush(stdout);
    const bool is_well =
        std::none_of(lines.begin(), lines.end(), [](const Line& line) { return line.state == doctor::State::problem; });
    std::_Exit(is_well ? 0 : 1);  // threads may still wait for a file server
}

}  // namespace strata::tools
