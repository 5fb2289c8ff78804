// bench/webhook_cost/ours.cpp - what does a step pay for webhooks that are told of it?
//
//   bench/run.sh webhook_cost [--steps N] [--rounds N] [--threads N]
//
// A step is arithmetic on every core, about 10 ms of it, behind which one thread tells RunEvents of the step, and of a checkpoint every 20. Servers are
// processes of their own: one that answers, one that answers and wants every step (status_interval_seconds 0), one that takes a connection and never
// answers, and a port where nobody is. Peer: the same steps without webhooks, twice in each round, so that the ratio of one to the other is the noise.
// Besides: what the telling thread computes for it, and the courier's threads, a step. All take turns; ratios are medians of the rounds' own.
// Looked at behind each: who answers has every event, and of the others' the queue is on disk.

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#include <strata/train/run_events.hpp>

#include "../../tests/support/fake_http_server.hpp"
#include "../../tests/support/other_process.hpp"
#include "../../tests/support/temporary_folder.hpp"
#include "../measure.hpp"

namespace {

using bench::median, bench::median_ratio, bench::seconds_of;
using strata::train::RunEvents;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;

struct Settings {
    int steps = 200;
    int rounds = 9;
    int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
};

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "webhook_cost: %s\n", why.c_str());
    std::exit(1);
}

double cpu_seconds(clockid_t clock) {
    struct timespec time {};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// A server in a process of its own, so that what it computes is not taken for the courier's.
class Server {
public:
    explicit Server(const FakeReply& reply) {
        int ends[2];
        if (::pipe(ends) != 0) fail("no pipe");
        process_ = std::make_unique<strata_test::OtherProcess>([&] {
            auto server = std::make_unique<FakeHttpServer>([reply](const FakeRequest&) { return reply; });
            const std::string url = server->url();
            const bool is_told = ::write(ends[1], url.data(), url.size()) == static_cast<ssize_t>(url.size());
            return is_told ? std::move(server) : nullptr;
        });
        std::array<char, 64> text{};
        const ssize_t size = ::read(ends[0], text.data(), text.size());
        if (size <= 0) fail("no server");
        url_.assign(text.data(), static_cast<std::size_t>(size));
        ::close(ends[0]);
        ::close(ends[1]);
    }
    [[nodiscard]] const std::string& url() const noexcept { return url_; }
    void end() { process_->end(); }

private:
    std::unique_ptr<strata_test::OtherProcess> process_;
    std::string url_;
};

/// One thread's part of a step: a product of two matrices, four times.
class Arithmetic {
public:
    void step() {
        for (int times = 0; times < 4; ++times)
            for (std::size_t i = 0; i < size; ++i)
                for (std::size_t k = 0; k < size; ++k) {
                    const float factor = a_[i * size + k];
                    for (std::size_t j = 0; j < size; ++j) c_[i * size + j] += factor * b_[k * size + j];
                }
    }
    [[nodiscard]] float any() const { return c_[size]; }

private:
    static constexpr std::size_t size = 256;
    std::vector<float> a_ = std::vector<float>(size * size, 1e-3F), b_ = a_, c_ = a_;
};

struct Taken {
    double step = 0;   ///< seconds
    double calls = 0;  ///< that the first thread computes in RunEvents, in the middle of all steps
    double cpu = 0;    ///< of all other threads, a step
};

/// `settings.steps` steps on all threads; the first one tells.
Taken train(const Settings& settings, RunEvents& events) {
    std::barrier meeting{settings.threads};
    std::vector<double> computed(static_cast<std::size_t>(settings.threads));
    Taken taken;
    std::vector<double> calls;
    const auto work = [&](int thread) {
        Arithmetic arithmetic;
        for (int step = 1; step <= settings.steps; ++step) {
            arithmetic.step();
            meeting.arrive_and_wait();
            if (thread > 0) continue;
            const double begin = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
            strata::train::StepMetrics metrics;
            metrics.step = step;
            metrics.loss = static_cast<double>(arithmetic.any());
            metrics.seconds = 0.01 * step;
            events.step_done(metrics, settings.steps);
            if (step % 20 == 0)
                events.checkpoint_saved("checkpoints/step_" + std::to_string(step), step, step == settings.steps);
            calls.push_back(cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - begin);
        }
        computed[static_cast<std::size_t>(thread)] = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    };
    const double before = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID), own = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    taken.step = seconds_of([&] {
        std::vector<std::thread> threads;
        for (int thread = 0; thread < settings.threads; ++thread) threads.emplace_back(work, thread);
        for (std::thread& thread : threads) thread.join();
    });
    taken.cpu = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - before - (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - own);
    for (const double seconds : computed) taken.cpu -= seconds;
    taken.calls = median(std::move(calls));
    taken.step /= settings.steps;
    taken.cpu = std::max(0.0, taken.cpu) / settings.steps;
    return taken;
}

struct Case {
    std::string name;
    std::string url{};              ///< empty: no webhooks
    double status_interval = 30.0;  ///< the default
    bool answers = false;
    std::vector<double> steps{}, calls{}, cpu{};
};

void run_case(Case& one, const Settings& settings) {
    const strata_test::TemporaryFolder folder;
    RunEvents events;
    if (!one.url.empty()) {
        strata::webhooks::WebhookOptions options;
        options.name = "bench";
        options.url = one.url;
        options.allow_private_addresses = true;
        options.status_interval_seconds = one.status_interval;
        options.closing_seconds = one.answers ? 60 : 0;
        options.timeout_seconds = 60;
        events.set({options});
        events.begin(folder.path(), {.job_id = "bench", .host = "here", .run = "bench"}, {});
    }
    const Taken taken = train(settings, events);
    events.end();
    if (std::filesystem::exists(folder.path() / "webhooks") != (!one.url.empty() && !one.answers))
        fail(one.name + (one.answers ? ": events are left" : ": there is no queue, or one too many"));
    one.steps.push_back(taken.step);
    one.calls.push_back(taken.calls);
    one.cpu.push_back(taken.cpu);
}

Settings settings_of(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name = argv[i];
        int* const value = name == "--steps"     ? &settings.steps
                           : name == "--rounds"  ? &settings.rounds
                           : name == "--threads" ? &settings.threads
                                                 : nullptr;
        if (value == nullptr || i + 1 >= argc || (*value = std::atoi(argv[i + 1])) < 1) {
            std::fprintf(stderr, "usage: bench/run.sh webhook_cost [--steps N] [--rounds N] [--threads N]\n");
            std::exit(2);
        }
    }
    return settings;
}

}  // namespace

int main(int argc, char** argv) {
    const Settings settings = settings_of(argc, argv);
    // Before there is any thread: these are forks.
    const Server answering{FakeReply::answer(204)}, hanging{FakeReply{"", false, true}};
    Server absent{FakeReply::answer(204)};
    absent.end();
    std::vector<Case> cases{{.name = "none"},
                            {.name = "none again"},
                            {.name = "answers", .url = answering.url(), .answers = true},
                            {.name = "every step", .url = answering.url(), .status_interval = 0, .answers = true},
                            {.name = "hangs", .url = hanging.url()},
                            {.name = "absent", .url = absent.url()}};
    for (int round = -1; round < settings.rounds; ++round) {  // the first one warms up
        for (std::size_t turn = 0; turn < cases.size(); ++turn)
            run_case(cases[(turn + static_cast<std::size_t>(round + 1)) % cases.size()], settings);
        if (round < 0)
            for (Case& one : cases) one.steps.clear(), one.calls.clear(), one.cpu.clear();
    }
    const Case& none = cases.front();
    for (std::size_t i = 1; i < cases.size(); ++i) {
        const Case& one = cases[i];
        std::printf(
            "{\"bench\":\"webhook_cost\",\"case\":\"%s\",\"ours\":%.3f,\"unit\":\"ms a step\",\"peer\":%.3f,"
            "\"peer_name\":\"without webhooks\",\"ratio\":%.4f,\"call_us\":%.1f,\"threads_us\":%.1f}\n",
            one.name.c_str(), 1e3 * median(one.steps), 1e3 * median(none.steps), median_ratio(one.steps, none.steps),
            1e6 * median(one.calls), 1e6 * median(one.cpu));
    }
}
