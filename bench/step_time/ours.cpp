// bench/step_time/ours.cpp - what does a training step cost on two ranks, against the same step without communication?
//
//   bench/run.sh step_time [--steps N] [--rounds N] [--cases stage0,stage2,ddp] [--nvme-path FOLDER]
//                       [--nvme-mib N]
//
// Every case is built beside the reference (the same engine at stage 0 on each rank alone, both ranks at once), and the
// two take turns step by step: the machine's speed drifts by tens of percent, neighbouring steps share it. A time is
// that of the slower rank. Ratios are medians over the pairs of all rounds; another case is first in every round. A
// case's first steps are run without the reference: they give its peak memory and the losses, which must agree between
// all cases before a time is printed.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/mpi_comm.hpp>

#include "../measure.hpp"
#include "cases.hpp"

namespace {

using bench::Case, bench::Cases, bench::median, bench::Sample;

constexpr int verified_steps = 4;
constexpr double tolerance = 1e-4;

struct Settings {
    int steps = 4;
    int rounds = 3;
    std::vector<std::string> cases;
    bench::Disk disk;
    std::string peak_of;
    std::map<std::string, double> peaks_mib;
};

double median(const std::vector<Sample>& samples, double Sample::*what) {
    std::vector<double> values;
    for (const Sample& sample : samples) values.push_back(sample.*what);
    return median(std::move(values));
}

/// Median over the pairs of what a case's step takes, relative to the reference's.
double relative(const Case& c, double Sample::*what = &Sample::seconds) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < c.steps.size(); ++i) ratios.push_back(c.steps[i].*what / (c.reference[i].*what));
    return median(std::move(ratios));
}

double peak_of(const Case& c) {
    const bench::Step step = c.build();
    double peak = 0;
    for (int i = 0; i < verified_steps; ++i) peak = step().peak_mib;
    return peak;
}

void run(Case& c, Cases& cases, const Settings& settings, bool first_time) {
    const bench::Step step = c.build();
    for (int i = 0; i < (first_time ? verified_steps : 1); ++i) {
        const Sample sample = step();
        if (first_time) c.losses.push_back(sample.loss);
    }
    const bench::Step reference = cases.reference();
    reference();
    for (int i = 0; i < settings.steps; ++i) {
        const bool before = i % 2 == 0;
        if (before) c.reference.push_back(reference());
        c.steps.push_back(step());
        if (!before) c.reference.push_back(reference());
    }
}

/// Largest difference between the losses of two cases.
double difference(const Case& a, const Case& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.losses.size(); ++i) {
        for (std::size_t rank = 0; rank < 2; ++rank)
            largest = std::max(largest, std::abs(a.losses[i][rank] - b.losses[i][rank]));
    }
    return std::isfinite(a.losses.back()[0] + b.losses.back()[0]) ? largest : INFINITY;
}

/// Cases that communicate must agree, those that do not must, and the two kinds must not.
bool verified(const std::vector<Case>& cases) {
    bool right = true;
    for (std::size_t i = 1; i < cases.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const double d = difference(cases[i], cases[j]);
            if ((d <= tolerance) == (cases[i].communicates == cases[j].communicates)) continue;
            std::printf("losses of \"%s\" and \"%s\" differ by %.2g\n", cases[i].name.c_str(), cases[j].name.c_str(),
                        d);
            right = false;
        }
    }
    for (const Case& c : cases) {
        std::printf("%-40s losses of rank 0:", c.name.c_str());
        for (const auto& loss : c.losses) std::printf(" %.6f", loss[0]);
        std::printf("\n");
    }
    return right;
}

void print(const std::vector<Case>& cases, const std::map<std::string, double>& peaks_mib,
           const std::string& peer_version) {
    const Case* peer = nullptr;  // the faster of the two that communicate
    for (const Case& c : cases) {
        if (c.is_peer && c.communicates && (peer == nullptr || relative(c) < relative(*peer))) peer = &c;
    }
    for (const Case& c : cases) {
        std::printf("{\"bench\":\"step_time\",\"case\":\"%s\",\"%s\":%.4f,\"unit\":\"s/step\",", c.name.c_str(),
                    c.is_peer ? "peer" : "ours", median(c.steps, &Sample::seconds));
        if (c.is_peer) std::printf("\"peer_name\":\"torch %s, gloo\",", peer_version.c_str());
        if (!c.is_peer && peer != nullptr)
            std::printf("\"peer\":%.4f,\"peer_name\":\"%s %s, gloo\",\"ratio\":%.3f,",
                        median(peer->steps, &Sample::seconds), peer->name.c_str(), peer_version.c_str(),
                        relative(*peer) / relative(c));
        std::printf(
            "\"limit\":%.4f,\"limit_name\":\"the same step without communication\",\"of_limit\":%.3f,"
            "\"over_limit_percent\":%.1f,\"cpu_over_limit_percent\":%.1f",
            median(c.reference, &Sample::seconds), 1 / relative(c), 100 * (relative(c) - 1),
            100 * (relative(c, &Sample::cpu_seconds) - 1));
        if (const auto peak = peaks_mib.find(c.key); peak != peaks_mib.end())
            std::printf(",\"peak_mib_a_rank\":%.0f", peak->second);
        std::printf("}\n");
    }
}

/// Only rank 0 has a peer, which starts its second rank itself; and only where a case wants it.
std::vector<std::string> peer_command(const std::vector<std::string>& cases) {
    const bool wanted = cases.empty() || std::any_of(cases.begin(), cases.end(), [](const std::string& key) {
                            return key == "alone" || key == "ddp" || key == "zero";
                        });
    const char* const python = std::getenv("BENCH_PEER_PYTHON");
    const char* const script = std::getenv("BENCH_PEER_SCRIPT");
    const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (!wanted || python == nullptr || script == nullptr || rank == nullptr || std::strcmp(rank, "0") != 0) return {};
    return {python, script, std::to_string(bench::samples), std::to_string(bench::lr)};
}

Settings settings_of(int argc, char** argv) {
    Settings settings;
    settings.disk.path = std::filesystem::temp_directory_path();
    bool understood = true;
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        const std::string value = ++i < argc ? argv[i] : "";
        understood = understood && !value.empty();
        if (flag == "--steps") {
            settings.steps = std::atoi(value.c_str());
        } else if (flag == "--rounds") {
            settings.rounds = std::atoi(value.c_str());
        } else if (flag == "--cases") {
            std::istringstream keys{value};
            for (std::string key; std::getline(keys, key, ',');) settings.cases.push_back(key);
        } else if (flag == "--nvme-path") {
            settings.disk.path = value;
        } else if (flag == "--nvme-mib") {
            settings.disk.budget_bytes = static_cast<std::size_t>(std::atoll(value.c_str())) << 20;
        } else if (flag == "--peak-of") {
            settings.cases = {value};
            settings.peak_of = value;
        } else if (flag == "--peaks") {  // KEY MIB KEY MIB ...
            std::istringstream pairs{value};
            std::string key;
            for (double mib = 0; pairs >> key >> mib;) settings.peaks_mib[key] = mib;
        } else {
            understood = false;
        }
    }
    if (!understood || settings.steps < 1 || settings.rounds < 1) {
        std::fprintf(
            stderr,
            "usage: step_time [--steps N] [--rounds N] [--cases KEY,KEY] [--nvme-path FOLDER] [--nvme-mib N]\n");
        std::exit(2);
    }
    return settings;
}

}  // namespace

int main(int argc, char** argv) {
    const Settings settings = settings_of(argc, argv);
    bench::PeerProcess peer{peer_command(settings.cases)};  // before MPI starts threads
    strata::comm::MpiComm world;
    if (world.world() != 2) {
        std::fprintf(stderr, "step_time is about 2 ranks: bench/run.sh step_time\n");
        world.abort(2);
    }
    bool has_peer = peer.there();
    world.broadcast(std::as_writable_bytes(std::span{&has_peer, 1}), 0);
    at::set_num_threads(1);
    Cases cases{world, settings.cases, settings.disk, peer, has_peer};

    if (!settings.peak_of.empty()) {
        for (Case& c : cases.all()) {
            const double peak = peak_of(c);
            if (world.rank() == 0) std::printf("%s %.0f\n", c.key.c_str(), peak);
        }
        return 0;
    }
    for (int round = 0; round < settings.rounds; ++round) {
        for (std::size_t i = 0; i < cases.all().size(); ++i) {
            Case& c = cases.all()[(i + static_cast<std::size_t>(round)) % cases.all().size()];
            run(c, cases, settings, round == 0);
            if (world.rank() == 0)
                std::fprintf(stderr, "round %d: %s, %.3f s, without communication %.3f s\n", round + 1, c.name.c_str(),
                             c.steps.back().seconds, c.reference.back().seconds);
        }
    }
    if (world.rank() == 0) {
        std::printf("%lld parameters, %lld x %lld tokens a rank, 2 ranks, one thread a rank, transport: %s\n",
                    static_cast<long long>(bench::GptShape{}.numel()), static_cast<long long>(bench::samples),
                    static_cast<long long>(bench::GptShape{}.context), world.transport().c_str());
        const bool right = verified(cases.all());
        std::fflush(stdout);
        if (!right) world.abort(1);
        print(cases.all(), settings.peaks_mib, peer.version());
    }
    return 0;
}
