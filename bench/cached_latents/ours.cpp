// bench/cached_latents/ours.cpp - latents that are cached on disk to batches: how fast do they come back?
//
//   bench/run.sh cached_latents [--latents N] [--rounds N] [--batch N] [--threads N]
//
// Latents of 16 x 48 x 48 fp32, 147 KB, one entry each of a TensorCache over a folder: plain; with compress_disk_cache as
// an encoder in bf16 makes them (normally distributed, rounded to bf16, 2 bytes of 4 are 0), which gzip packs; and with
// noise in every bit, which it cannot pack. As in training without memory for entries (cache_memory_mib 0): each is
// read, checked, unpacked and copied into its place in a batch of 4, by data::SampleStream on 2 threads. The page cache
// holds the files. Peer: a torch DataLoader of torch.load with 2 workers, which are there before time is taken. Limits,
// by hand and with 2 threads: plain, pread of the same files; gzip, zlib's inflate of the same streams from memory.
// Besides: libdeflate, which the cache uses, over the same streams. All take turns in every round. Rates are medians
// over the rounds, ratios are medians of the rounds' own ratios. Before a time is printed, every number that ours and
// the peer read is compared with what was written.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>

#include <strata/core/bf16.hpp>
#include <strata/data/sample_stream.hpp>
#include <strata/data/tensor_cache.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "../measure.hpp"
#include "by_hand.hpp"

namespace {

namespace data = strata::data;
namespace storage = strata::storage;
namespace fs = std::filesystem;
using Cache = data::TensorCache<strata::Local>;
using bench::median, bench::median_ratio, bench::seconds_of;

constexpr std::int64_t channels = 16;
constexpr std::int64_t edge = 48;
constexpr auto numel = static_cast<std::size_t>(channels * edge * edge);

struct Settings {
    std::int64_t latents = 1024;
    std::int64_t batch = 4;
    int threads = 2;
    int rounds = 9;
};

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "cached_latents: %s\n", why.c_str());
    std::exit(1);
}

/// What PictureSource knows latents by looks like this.
std::string identity(std::int64_t index) {
    return "latents 1\nautoencoder a\n/data/photos\nIMG_" + std::to_string(index) + ".jpg\n2481152-1718000000\n384 384";
}

/// An empty cache whose entries are read from disk at each visit.
Cache cache_in(const fs::path& folder, bool compress) {
    return {strata::Local{folder, storage::Durability::process_end}, compress, std::make_shared<data::CacheMemory>(0)};
}

data::NamedTensors entry_of(const Cache& cache, std::int64_t index, const float* values) {
    return cache
        .get(
            identity(index),
            [&]() -> data::NamedTensors {
                if (values == nullptr) fail("entry " + cache.where(identity(index)) + " is missing or damaged");
                const at::Tensor latents = at::empty({channels, edge, edge}, at::kFloat);
                std::memcpy(latents.data_ptr(), values, numel * sizeof(float));
                return {{"latents", latents}};
            },
            [](const data::NamedTensors& tensors) {
                const auto found = tensors.find("latents");
                return found != tensors.end() && found->second.sizes() == at::IntArrayRef{channels, edge, edge};
            })
        .first;
}

/// A sample of the stream.
struct Latent {
    std::int64_t index = 0;
    at::Tensor values;
};
using Stream = data::SampleStream<Latent>;

/// One pass over all entries; `seen` gets every batch.
template <class Seen>
void ours(const Cache& cache, const Settings& settings, const Seen& seen) {
    const std::int64_t batches = (settings.latents + settings.batch - 1) / settings.batch;
    Stream::Graph::Steps steps;
    steps.fetch = [&](Latent& latent) {
        latent.values = entry_of(cache, latent.index, nullptr).at("latents");
        return false;
    };
    steps.collate = [](Stream::Group& group) {
        const at::Tensor batch_BCHW =
            at::empty({static_cast<std::int64_t>(group.samples.size()), channels, edge, edge}, at::kFloat);
        auto* out = static_cast<float*>(batch_BCHW.data_ptr());
        for (const Latent& latent : group.samples) {
            std::memcpy(out, latent.values.data_ptr(), numel * sizeof(float));
            out += numel;
        }
        group.samples.clear();
        group.made = std::make_shared<at::Tensor>(batch_BCHW);
    };
    const auto plan = [&](std::int64_t number) {
        auto group = std::make_shared<Stream::Group>();
        const std::int64_t end = std::min((number + 1) * settings.batch, settings.latents);
        for (std::int64_t i = number * settings.batch; i < end; ++i) group->samples.push_back({i, {}});
        return group;
    };
    Stream stream{steps,           plan, 0, 10, data::StepBounds::of(settings.threads, settings.threads, 1),
                  settings.threads};  // dataloader_prefetch_qlen is 10
    for (std::int64_t i = 0; i < batches; ++i) seen(*static_cast<at::Tensor*>(stream.next()->made.get()));
}

void verify(const Cache& cache, const Settings& settings, const std::vector<float>& values) {
    const float* expected = values.data();
    ours(cache, settings, [&](const at::Tensor& batch_BCHW) {
        if (std::memcmp(batch_BCHW.data_ptr(), expected, batch_BCHW.nbytes()) != 0) fail("a batch is wrong");
        expected += batch_BCHW.numel();
    });
    if (expected != values.data() + values.size()) fail("latents are missing");
}

std::string ask(bench::PeerProcess& peer, const std::string& line) {
    peer.say(line);
    std::string said = peer.hear();
    if (said.empty()) fail("the peer has died");
    return said;
}

/// One of those that take turns.
struct Way {
    std::string name;
    std::function<double()> pass;  ///< over all latents; seconds
    std::vector<double> seconds = {};
};

}  // namespace

int main(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        if (flag == "--latents")
            settings.latents = std::atoll(argv[i + 1]);
        else if (flag == "--rounds")
            settings.rounds = std::atoi(argv[i + 1]);
        else if (flag == "--batch")
            settings.batch = std::atoll(argv[i + 1]);
        else if (flag == "--threads")
            settings.threads = std::atoi(argv[i + 1]);
        else
            fail("unknown argument " + flag);
    }
    bench::PeerProcess peer{bench::peer_command()};
    std::string name = (fs::temp_directory_path() / "cached_latents_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail("no temporary folder");
    const fs::path folder{name};

    std::vector<float> noise(static_cast<std::size_t>(settings.latents) * numel);
    std::mt19937_64 random{1};
    std::normal_distribution<float> normal;
    for (float& value : noise) value = normal(random);
    std::vector<float> values(noise.size());
    std::transform(noise.begin(), noise.end(), values.begin(),
                   [](float value) { return strata::to_float(strata::to_bf16(value)); });
    const fs::path peer_folder = folder / "peer";
    const Cache plain = cache_in(folder / "plain", false);
    const Cache gzip = cache_in(folder / "gzip", true);
    const Cache gzip_noise = cache_in(folder / "noise", true);
    std::vector<fs::path> files;
    std::vector<std::vector<std::byte>> streams;  // the entries of the second cache
    std::vector<std::vector<std::byte>> noise_streams;
    const auto bytes_of = [](const auto& all) {
        std::size_t bytes = 0;
        for (const auto& one : all) bytes += one.size();
        return bytes;
    };
    for (std::int64_t i = 0; i < settings.latents; ++i) {
        const std::size_t begin = static_cast<std::size_t>(i) * numel;
        for (const Cache* const cache : {&plain, &gzip}) entry_of(*cache, i, values.data() + begin);
        entry_of(gzip_noise, i, noise.data() + begin);
        files.push_back(plain.where(identity(i)));
        streams.push_back(storage::read_file(gzip.where(identity(i))));
        noise_streams.push_back(storage::read_file(gzip_noise.where(identity(i))));
    }
    std::size_t plain_bytes = 0;
    for (const fs::path& file : files) plain_bytes += fs::file_size(file);
    verify(plain, settings, values);
    verify(gzip, settings, values);
    verify(gzip_noise, settings, noise);
    const std::string tail = " " + std::to_string(settings.batch);
    if (peer.there()) {
        storage::write_file(peer_folder / "values.f32", std::as_bytes(std::span{values}),
                            storage::Durability::process_end);
        ask(peer, "make " + peer_folder.string() + " " + std::to_string(settings.latents) + " " +
                      std::to_string(channels) + " " + std::to_string(edge) + " " + std::to_string(edge));
        for (const char* const zipped : {"check 0", "check 1"})
            if (ask(peer, zipped + tail) != "equal") fail("the peer has read something else");
    }

    constexpr std::size_t most = numel * sizeof(float) + 4096;  // tensor, header
    const auto none = [](const at::Tensor&) {};
    std::vector<Way> ways{
        {"plain", [&] { return seconds_of([&] { ours(plain, settings, none); }); }},
        {"pread", [&] { return seconds_of([&] { by_hand::read_all(files, settings.threads); }); }},
        {"gzip", [&] { return seconds_of([&] { ours(gzip, settings, none); }); }},
        {"zlib", [&] { return seconds_of([&] { by_hand::inflate_all(streams, most, settings.threads); }); }},
        {"libdeflate", [&] { return seconds_of([&] { by_hand::libdeflate_all(streams, most, settings.threads); }); }},
        {"gzip, noise", [&] { return seconds_of([&] { ours(gzip_noise, settings, none); }); }},
        {"zlib, noise",
         [&] { return seconds_of([&] { by_hand::inflate_all(noise_streams, most, settings.threads); }); }}};
    if (peer.there()) {
        ways.insert(ways.begin() + 2, {"peer", [&] { return std::stod(ask(peer, "run 0" + tail)); }});
        ways.push_back({"peer gzip", [&] { return std::stod(ask(peer, "run 1" + tail)); }});
    }
    for (int round = 0; round < settings.rounds; ++round)
        for (std::size_t turn = 0; turn < ways.size(); ++turn) {
            Way& way = ways[round % 2 == 0 ? turn : ways.size() - 1 - turn];
            way.seconds.push_back(way.pass());
        }

    const auto seconds = [&](const std::string& of) {
        return std::find_if(ways.begin(), ways.end(), [&](const Way& way) { return way.name == of; })->seconds;
    };
    const auto rate = [&](const std::string& of) {
        return static_cast<double>(settings.latents) / median(seconds(of));
    };
    const auto times = [&](const std::string& one, const std::string& other) {  // how many times the other's rate
        return median_ratio(seconds(other), seconds(one));
    };
    const auto mean = [&](std::size_t bytes) { return bytes / static_cast<std::size_t>(settings.latents); };
    const auto begin = [&](const std::string& which) {
        std::printf("{\"bench\":\"cached_latents\",\"case\":\"%s, %d threads\",\"ours\":%.0f,\"unit\":\"latents/s\"",
                    which.c_str(), settings.threads, rate(which));
        if (peer.there())
            std::printf(",\"peer\":%.0f,\"peer_name\":\"DataLoader of torch %s, torch.load, 2 workers\",\"ratio\":%.2f",
                        rate("peer"), peer.version().c_str(), times(which, "peer"));
    };
    begin("plain");
    std::printf(",\"limit\":%.0f,\"limit_name\":\"pread\",\"of_limit\":%.3f,\"file_bytes\":%zu}\n", rate("pread"),
                times("plain", "pread"), mean(plain_bytes));
    begin("gzip");
    if (peer.there())
        std::printf(",\"peer_gzip\":%.0f,\"ratio_gzip\":%.2f", rate("peer gzip"), times("gzip", "peer gzip"));
    std::printf(
        ",\"limit\":%.0f,\"limit_name\":\"zlib's inflate from memory\",\"of_limit\":%.3f,\"libdeflate\":%.0f,"
        "\"of_libdeflate\":%.3f,\"file_bytes\":%zu}\n",
        rate("zlib"), times("gzip", "zlib"), rate("libdeflate"), times("gzip", "libdeflate"), mean(bytes_of(streams)));
    begin("gzip, noise");
    std::printf(",\"limit\":%.0f,\"limit_name\":\"zlib's inflate from memory\",\"of_limit\":%.3f,\"file_bytes\":%zu}\n",
                rate("zlib, noise"), times("gzip, noise", "zlib, noise"), mean(bytes_of(noise_streams)));
    fs::remove_all(folder);
    return 0;
}
