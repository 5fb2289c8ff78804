// bench/sample_index/ours.cpp - a million pictures that are known from earlier: how long until training may begin?
//
//   bench/run.sh sample_index [--pictures N] [--rounds N] [--batch N]
//
// An index is written with keys, versions, sizes and captions as data sets have them. Timed is what follows from it
// alone: SampleIndex opened and its pictures taken (every row's check sum is compared), fill_buckets() over all sizes,
// the SamplePlan, and every batch of one epoch asked for once, where each visit's sample is looked up. Not timed:
// listing the pictures again, and their captions, which are for the encoders. Limit of opening: SQLite selects all
// columns by hand. Peer: Python, a JSON file of metadata as SimpleTuner keeps it, the same buckets, shuffled batches
// (peer.py). All take turns in every round. Seconds are medians over the rounds, ratios are medians of the rounds' own
// ratios. Before a time is printed, what was taken is compared with what was written, and visits are counted.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/random.hpp>
#include <strata/datasets/bucket_table.hpp>
#include <strata/datasets/sample_index.hpp>
#include <strata/datasets/sample_plan.hpp>
#include <strata/pictures/framing.hpp>

#include "../measure.hpp"
#include "by_hand.hpp"

namespace {

namespace core = strata::core;
namespace datasets = strata::datasets;
namespace pictures = strata::pictures;
namespace fs = std::filesystem;
using bench::median, bench::median_ratio;

struct Settings {
    std::int64_t pictures = 1'000'000;
    std::int64_t batch = 32;  ///< of all ranks
    int rounds = 7;
};
constexpr std::uint64_t seed = 42;

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "sample_index: %s\n", why.c_str());
    std::exit(1);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Picture number `index` of a data set of photos: a third of them as cameras make them, the others of any size.
datasets::IndexedPicture picture_of(std::int64_t index) {
    static const std::array<pictures::PictureSize, 10> common{{{4032, 3024},
                                                               {3024, 4032},
                                                               {6000, 4000},
                                                               {4000, 6000},
                                                               {1920, 1080},
                                                               {1080, 1920},
                                                               {1080, 1350},
                                                               {2048, 2048},
                                                               {3840, 2160},
                                                               {1600, 1200}}};
    static const std::array<const char*, 16> words{"a photo of",   "an old",   "harbour",       "two children",
                                                   "in the snow",  "at night", "mountains",     "with a red umbrella",
                                                   "in the style", "street",   "shallow focus", "golden hour",
                                                   "black cat",    "on a",     "wooden table",  "seen from above"};
    core::Random random{static_cast<std::uint64_t>(index) + 1};
    datasets::IndexedPicture picture;
    std::array<char, 64> key{};
    std::snprintf(key.data(), key.size(), "%04d/IMG_%08d_%06d.jpg", static_cast<int>(index / 1000),
                  static_cast<int>(index), static_cast<int>(random.below(1'000'000)));
    datasets::Sample& sample = picture.sample;
    sample.key = key.data();
    sample.bytes = 100'000 + random.below(4'000'000);
    sample.version = std::to_string(sample.bytes) + "-1718" + std::to_string(100'000 + random.below(900'000)) +
                     std::to_string(100'000'000 + random.below(900'000'000));
    sample.size = random.below(3) == 0 ? common[random.below(common.size())]
                                       : pictures::PictureSize{static_cast<std::int64_t>(640 + random.below(3400)),
                                                               static_cast<std::int64_t>(640 + random.below(3400))};
    const std::uint64_t parts = 5 + random.below(8);
    for (std::uint64_t i = 0; i < parts; ++i)
        sample.caption += (i == 0 ? "" : " ") + std::string{words[random.below(words.size())]};
    picture.size_source = datasets::fingerprint({sample.version});
    picture.caption_source = datasets::fingerprint({sample.caption});
    return picture;
}

void write_index(datasets::SampleIndex& index, const Settings& settings) {
    constexpr std::int64_t at_once = 10'000;
    for (std::int64_t begin = 0; begin < settings.pictures; begin += at_once) {
        std::vector<datasets::IndexedPicture> pictures;
        for (std::int64_t i = begin; i < std::min(begin + at_once, settings.pictures); ++i)
            pictures.push_back(picture_of(i));
        std::vector<const datasets::IndexedPicture*> pointers;
        for (const datasets::IndexedPicture& picture : pictures) pointers.push_back(&picture);
        index.write(pointers);
    }
}

/// The peer's file.
void write_metadata(const fs::path& path, const pictures::Framer& framer, const Settings& settings) {
    std::ofstream out{path};
    out << '{';
    for (std::int64_t i = 0; i < settings.pictures; ++i) {
        const datasets::Sample sample = picture_of(i).sample;
        const pictures::Frame frame = framer.frame(sample.size);
        const double ratio =
            static_cast<double>(frame.target.width * 100 / frame.target.height) / 100;  // two decimals, as there
        out << (i == 0 ? "" : ", ") << "\"/data/photos/" << sample.key << R"(": {"original_size": [)"
            << sample.size.width << ", " << sample.size.height << R"(], "crop_coordinates": [)"
            << static_cast<int>(frame.top) << ", " << static_cast<int>(frame.left) << R"(], "target_size": [)"
            << frame.target.width << ", " << frame.target.height << R"(], "intermediary_size": [)"
            << static_cast<int>(frame.width) << ", " << static_cast<int>(frame.height) << R"(], "aspect_ratio": )"
            << ratio << R"(, "luminance": )" << 40 + i % 150 << '}';
    }
    out << '}';
    if (!out.flush()) fail("the peer's file cannot be written");
}

/// What is there when training may begin, and how long each part took, in seconds.
struct Start {
    std::vector<datasets::IndexedPicture> pictures = {};
    std::vector<datasets::Bucket> buckets = {};
    std::vector<datasets::GlobalBatch> batches = {};  ///< of the epoch, if they are asked for
    std::int64_t widths = 0;                          ///< of all visits' pictures together
    double open = 0;
    double fill = 0;
    double plan = 0;
    double epoch = 0;
    [[nodiscard]] double all() const { return open + fill + plan + epoch; }
};

Start ours(const fs::path& folder, const strata::config::ImageDataset& dataset, const pictures::Framer& framer,
           const Settings& settings, bool keep_batches) {
    Start start;
    const double t0 = now();
    {
        datasets::SampleIndex index{folder, dataset.id, "/data/photos"};
        start.pictures = index.take_pictures();
    }
    const double t1 = now();
    std::vector<pictures::PictureSize> sizes;
    for (const datasets::IndexedPicture& picture : start.pictures) sizes.push_back(picture.sample.size);
    start.buckets = datasets::fill_buckets(0, dataset, framer, sizes);
    const double t2 = now();
    datasets::PlanDataset turns;
    for (const datasets::Bucket& bucket : start.buckets)
        turns.buckets.push_back({static_cast<std::int64_t>(bucket.samples.size()), bucket.repeats + 1});
    const datasets::SamplePlan plan{{turns}, seed, settings.batch};
    const std::int64_t batches = plan.batches_in(0);
    const double t3 = now();
    for (std::int64_t position = 0; position < batches; ++position) {
        datasets::GlobalBatch batch = plan.batch(position);
        const datasets::Bucket& bucket = start.buckets[static_cast<std::size_t>(batch.bucket)];
        for (const datasets::Visit& visit : batch.visits)
            start.widths += start.pictures[bucket.samples[static_cast<std::size_t>(visit.sample)]].sample.size.width;
        if (keep_batches) start.batches.push_back(std::move(batch));
    }
    start.open = t1 - t0;
    start.fill = t2 - t1;
    start.plan = t3 - t2;
    start.epoch = now() - t3;
    return start;
}

/// What is wrong ends the program.
void verify(const Start& start, const Settings& settings) {
    if (static_cast<std::int64_t>(start.pictures.size()) != settings.pictures) fail("pictures are missing");
    for (std::int64_t i = 0; i < settings.pictures; ++i) {
        const datasets::IndexedPicture& is = start.pictures[static_cast<std::size_t>(i)];
        const datasets::IndexedPicture was = picture_of(i);
        if (is.sample.key != was.sample.key || is.sample.version != was.sample.version ||
            is.sample.bytes != was.sample.bytes || !(is.sample.size == was.sample.size) ||
            is.sample.caption != was.sample.caption || is.size_source != was.size_source ||
            is.caption_source != was.caption_source)
            fail(was.sample.key + " is not as it was written");
    }
    // Every sample once, and in each bucket fewer than a batch of them a second time, which fill up its last batch.
    std::vector<int> visits(start.pictures.size());
    std::vector<std::int64_t> turns(start.buckets.size());
    for (const datasets::GlobalBatch& batch : start.batches) {
        const auto number = static_cast<std::size_t>(batch.bucket);
        if (static_cast<std::int64_t>(batch.visits.size()) != settings.batch || batch.epoch != 0)
            fail("a batch has another size");
        for (const datasets::Visit& visit : batch.visits)
            ++visits[start.buckets[number].samples[static_cast<std::size_t>(visit.sample)]];
        turns[number] += settings.batch;
    }
    for (std::size_t b = 0; b < start.buckets.size(); ++b) {
        const auto count = static_cast<std::int64_t>(start.buckets[b].samples.size());
        if (turns[b] != (count + settings.batch - 1) / settings.batch * settings.batch)
            fail("a bucket has other batches than its samples need");
    }
    if (!std::all_of(visits.begin(), visits.end(), [](int count) { return count == 1 || count == 2; }))
        fail("a sample is not visited once");
}

struct Told {
    std::int64_t pictures = 0;
    std::int64_t buckets = 0;
    std::int64_t batches = 0;
    std::int64_t widths = 0;
    double open = 0;
    double fill = 0;
    double epoch = 0;
    [[nodiscard]] double all() const { return open + fill + epoch; }
};

Told ask(bench::PeerProcess& peer, const fs::path& metadata, const Settings& settings) {
    peer.say("run " + metadata.string() + " " + std::to_string(settings.batch) + " " + std::to_string(seed));
    Told told;
    std::istringstream line{peer.hear()};
    if (!(line >> told.pictures >> told.buckets >> told.batches >> told.widths >> told.open >> told.fill >> told.epoch))
        fail("the peer has died");
    return told;
}

using Times = std::vector<double>;

/// One line of JSON; `peer` and `limit` may be empty.
void print(const std::string& name, const Times& ours, const Times& peer, const std::string& peer_name,
           const Times& limit, const std::string& more) {
    std::printf("{\"bench\":\"sample_index\",\"case\":\"%s\",\"ours\":%.4g,\"unit\":\"s\"", name.c_str(), median(ours));
    if (!peer.empty())
        std::printf(",\"peer\":%.4g,\"peer_name\":\"%s\",\"ratio\":%.2f", median(peer), peer_name.c_str(),
                    median_ratio(peer, ours));
    if (!limit.empty())
        std::printf(",\"limit\":%.4g,\"limit_name\":\"sqlite3 SELECT of all columns\",\"of_limit\":%.3f", median(limit),
                    median_ratio(limit, ours));
    std::printf("%s}\n", more.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        if (flag == "--pictures")
            settings.pictures = std::atoll(argv[i + 1]);
        else if (flag == "--rounds")
            settings.rounds = std::atoi(argv[i + 1]);
        else if (flag == "--batch")
            settings.batch = std::atoll(argv[i + 1]);
        else
            fail("unknown argument " + flag);
    }
    bench::PeerProcess peer{bench::peer_command()};
    std::string name = (fs::temp_directory_path() / "sample_index_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail("no temporary folder");
    const fs::path folder{name};
    strata::config::ImageDataset dataset;
    dataset.id = "photos";
    const pictures::Framer framer{dataset, {}};

    fs::path file;
    const double begin = now();
    {
        datasets::SampleIndex index{folder, dataset.id, "/data/photos"};
        write_index(index, settings);
        file = index.file();
    }
    const double writing = now() - begin;
    {
        const Start start = ours(folder, dataset, framer, settings, true);
        verify(start, settings);
        if (by_hand::select_all(file) != settings.pictures) fail("the limit has seen other rows");
        if (peer.there()) {
            write_metadata(folder / "metadata.json", framer, settings);
            const Told told = ask(peer, folder / "metadata.json", settings);
            std::int64_t whole_batches = 0;
            for (const datasets::Bucket& bucket : start.buckets)
                whole_batches += static_cast<std::int64_t>(bucket.samples.size()) / settings.batch;
            if (told.pictures != settings.pictures || told.buckets != static_cast<std::int64_t>(start.buckets.size()) ||
                told.batches != whole_batches)
                fail("the peer has other buckets");
        }
        std::printf("%lld pictures in %zu buckets, %zu batches of %lld an epoch; written in %.1f s: %.0f MB\n",
                    static_cast<long long>(settings.pictures), start.buckets.size(), start.batches.size(),
                    static_cast<long long>(settings.batch), writing, static_cast<double>(fs::file_size(file)) / 1e6);
        std::fflush(stdout);
    }

    std::map<std::string, Times> times;
    for (int round = 0; round < settings.rounds; ++round)
        for (int turn = 0; turn < 3; ++turn) {
            const int here = round % 2 == 0 ? turn : 2 - turn;
            if (here == 0) {
                const Start start = ours(folder, dataset, framer, settings, false);
                times["all"].push_back(start.all());
                times["open"].push_back(start.open);
                times["fill"].push_back(start.fill);
                times["plan"].push_back(start.plan);
                times["epoch"].push_back(start.epoch);
            } else if (here == 1) {
                const double before = now();
                by_hand::select_all(file);
                times["limit"].push_back(now() - before);
            } else if (peer.there()) {
                const Told told = ask(peer, folder / "metadata.json", settings);
                times["peer all"].push_back(told.all());
                times["peer open"].push_back(told.open);
                times["peer fill"].push_back(told.fill);
                times["peer epoch"].push_back(told.epoch);
            }
        }
    const std::string peer_name = "Python " + peer.version() + ", JSON";
    const std::string slowest =
        ",\"slowest\":" + std::to_string(*std::max_element(times["all"].begin(), times["all"].end()));
    print("start and one epoch", times["all"], times["peer all"], peer_name, {}, slowest);
    print("open the index", times["open"], times["peer open"], peer_name, times["limit"], "");
    print("fill buckets", times["fill"], times["peer fill"], peer_name, {}, "");
    print("make the plan", times["plan"], {}, "", {}, "");
    print("all batches of an epoch", times["epoch"], times["peer epoch"], peer_name, {}, "");
    fs::remove_all(folder);
    return 0;
}
