// bench/first_start/ours.cpp - filling the caches of 100,000 pictures: what memory does it take, and how fast is it?
//
//   bench/run.sh first_start [--entries N] [--grant MIB] [--rounds N] [--threads N]
//
// What a first start does once the pictures are found, without the encoders, whose time is their own (`prepare`): of each of
// 100,000 pictures an entry, latents of 16 x 12 x 8 fp32 (6 KB), amid the temporaries of a picture of 256 x 256 (its file, its
// pixels, the fp32 tensor, what an encoder passes on), is made, kept in memory up to the grant, packed, and written to a folder;
// then the same again as a second start reads it. On 2 threads. Each start is a process of its own; memory is its VmHWM. With a grant of 0
// and with the grant (512 MiB, less than there is to keep): the difference is what the grant costs, the bar 20 % of it. Besides, for a
// twentieth of entries and grant, because a machine has no more: the tensors are kept as they were made, on the heap, as ours did
// before. Limit of the rate, by hand: the same temporaries, and as many files of the entries' size written in the same way
// (temporary name, rename). Rates are medians over the rounds. Every number that a start hands out is compared with what was made.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <strata/data/cache_memory.hpp>
#include <strata/data/tensor_cache.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "../measure.hpp"

namespace {

namespace data = strata::data;
namespace storage = strata::storage;
namespace fs = std::filesystem;
using Tensors = data::CacheMemory::Tensors;

constexpr std::size_t latents = 16 * 12 * 8;  // numbers of an entry

struct Settings {
    int entries = 100'000;
    std::int64_t grant_mib = 512;
    int rounds = 3;
    int threads = 2;
};

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "first_start: %s\n", why.c_str());
    std::exit(1);
}

std::string identity(int index) {
    return "latents 1\nautoencoder a\n/data/photos\nIMG_" + std::to_string(index) + ".jpg\n2481152-1718000000\n256 256";
}

/// What a picture leaves behind, and what comes and goes on the way there.
Tensors made(int index) {
    const std::vector<std::byte> file(30'000 + static_cast<std::size_t>(index) % 97 * 600);
    std::vector<std::byte> pixels(256 * 256 * 3);
    std::memset(pixels.data(), index & 255, pixels.size());
    const at::Tensor image_3HW = at::full({3, 256, 256}, index & 255, at::kFloat);
    const at::Tensor hidden = at::full({32, 32, 24 + index % 3}, index, at::kFloat);  // below malloc's mmap threshold
    return {{"latents", at::full({16, 12, 8}, static_cast<double>(index), at::kFloat)}};
}

/// Keeps the tensors themselves, as ours did before.
class OnTheHeap {
public:
    explicit OnTheHeap(std::int64_t budget) : budget_{budget} {}
    void keep(const std::string& identity, const Tensors& tensors) {
        std::int64_t bytes = 0;
        for (const auto& [name, tensor] : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
        const std::lock_guard lock{mutex_};
        if (bytes_ + bytes <= budget_ && entries_.emplace(identity, tensors).second) bytes_ += bytes;
    }

private:
    std::mutex mutex_;
    std::unordered_map<std::string, Tensors> entries_;
    std::int64_t budget_;
    std::int64_t bytes_ = 0;
};

void on_threads(const Settings& settings, const std::function<void(int)>& work) {
    std::vector<std::thread> others;
    const auto share = [&](int begin) {
        for (int i = begin; i < settings.entries; i += settings.threads) work(i);
    };
    for (int t = 1; t < settings.threads; ++t) others.emplace_back(share, t);
    share(0);
    for (std::thread& other : others) other.join();
}

void start(const Settings& settings, const fs::path& folder, std::int64_t grant, bool on_heap, bool is_first) {
    OnTheHeap heap{on_heap ? grant : 0};
    const data::TensorCache<strata::Local> cache{strata::Local{folder, storage::Durability::process_end}, false,
                                                 std::make_shared<data::CacheMemory>(on_heap ? 0 : grant)};
    on_threads(settings, [&](int i) {
        const std::string key = identity(i);
        const auto [tensors, outcome] = cache.get(
            key, [&] { return made(i); }, [](const Tensors&) { return true; });
        if (is_first != (outcome == data::CacheOutcome::made)) std::_Exit(2);
        const auto* const numbers = static_cast<const float*>(tensors.at("latents").data_ptr());
        if (std::any_of(numbers, numbers + latents, [&](float value) { return value != static_cast<float>(i); }))
            std::_Exit(3);
        if (on_heap) heap.keep(key, tensors);
    });
}

struct Taken {
    double seconds = 0;
    double peak_mib = 0;
};

/// What a process takes that does only that.
Taken in_a_process(const std::function<void()>& work) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) fail("no pipe");
    const pid_t process = ::fork();
    if (process < 0) fail("no process");
    if (process == 0) {
        Taken taken;
        taken.seconds = bench::seconds_of(work);
        std::ifstream status{"/proc/self/status"};
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("VmHWM:")) std::istringstream{line.substr(6)} >> taken.peak_mib;
        taken.peak_mib /= 1024;
        std::_Exit(::write(ends[1], &taken, sizeof taken) == sizeof taken ? 0 : 1);
    }
    ::close(ends[1]);
    Taken taken;
    const bool is_read = ::read(ends[0], &taken, sizeof taken) == sizeof taken;
    ::close(ends[0]);
    int status = 0;
    ::waitpid(process, &status, 0);
    if (!is_read || status != 0) fail("a start has failed: what was read is not what was made");
    return taken;
}

}  // namespace

int main(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        if (flag == "--entries")
            settings.entries = std::atoi(argv[i + 1]);
        else if (flag == "--grant")
            settings.grant_mib = std::atoll(argv[i + 1]);
        else if (flag == "--rounds")
            settings.rounds = std::atoi(argv[i + 1]);
        else if (flag == "--threads")
            settings.threads = std::atoi(argv[i + 1]);
        else
            fail("unknown argument " + flag);
    }
    std::string name = (fs::temp_directory_path() / "first_start_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail("no temporary folder");
    const fs::path folder{name};
    const std::int64_t grant = settings.grant_mib << 20;

    struct Case {
        const char* name;
        std::vector<double> rates = {};
        std::vector<double> peaks = {};
    };
    std::array<Case, 9> cases{Case{"grant 0, first"}, {"grant 0, second"}, {"first start"},
                              {"second start"},       {"few, first"},      {"few, second"},
                              {"heap, first"},        {"heap, second"},    {"by hand"}};
    constexpr int fewer = 20;
    Settings few = settings;
    few.entries /= fewer;
    const auto note = [&](Case& one, const Taken& taken) {
        one.rates.push_back(settings.entries / taken.seconds);
        one.peaks.push_back(taken.peak_mib);
    };
    for (int round = 0; round < settings.rounds; ++round) {
        for (std::size_t way = 0; way < 4; ++way)
            for (const bool is_first : {true, false})
                note(cases[2 * way + (is_first ? 0 : 1)], in_a_process([&] {
                         start(way < 2 ? settings : few, folder / std::to_string(way),
                               way % 2 == 0 ? 0 : (way == 1 ? grant : grant / fewer), way == 3, is_first);
                     }));
        const std::vector<std::byte> bytes(latents * sizeof(float) + 400);
        note(cases[8], in_a_process([&] {
                 const strata::Local store{folder / "files", storage::Durability::process_end};
                 on_threads(settings, [&](int i) {
                     if (made(i).empty()) std::_Exit(4);
                     store.put(data::cache_name(identity(i), false), bytes);
                 });
             }));
        for (const char* used : {"0", "1", "2", "3", "files"}) fs::remove_all(folder / used);
    }
    fs::remove_all(folder);

    const auto rate = [&](std::size_t i) { return bench::median(cases[i].rates); };
    const auto growth = [&](std::size_t i) {
        return bench::median(cases[i].peaks) - bench::median(cases[i - 2].peaks);
    };
    for (const std::size_t i : {2U, 3U}) {
        std::printf(
            "{\"bench\":\"first_start\",\"case\":\"%s, %d entries, grant %lld MiB\",\"ours\":%.0f,\"unit\":\"entries/s\"",
            cases[i].name, settings.entries, static_cast<long long>(settings.grant_mib), rate(i));
        if (i == 2)
            std::printf(",\"limit\":%.0f,\"limit_name\":\"temporaries and files by hand\",\"of_limit\":%.3f", rate(8),
                        bench::median_ratio(cases[i].rates, cases[8].rates));
        const auto granted = static_cast<double>(settings.grant_mib);
        std::printf(",\"growth_mib\":%.1f,\"of_grant\":%.3f,\"of_grant_on_the_heap\":%.2f,\"peak_mib\":%.1f}\n",
                    growth(i), growth(i) / granted, growth(i + 4) / (granted / fewer), bench::median(cases[i].peaks));
    }
    return 0;
}
