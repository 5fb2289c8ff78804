// bench/image_pipeline/ours.cpp - photos to 512 x 512 tensors: how near is the pipeline to the decoder's own speed?
//
// A picture is read from its file (which the page cache holds), decoded, turned upright, resized, cropped and put into
// its place in a batch of 8; batches come in order out of data::SampleStream. Every round runs ours, the limit and the
// peer once each over the same list. Rates are medians over the rounds, ratios are medians of the rounds' own ratios.
// Before a time is printed, ours is compared with the limit's pixels and with the peer's.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>

#include <jpeglib.h>

#include <strata/data/sample_stream.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/image_header.hpp>
#include <strata/pictures/resample.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../measure.hpp"
#include "by_hand.hpp"

namespace {

namespace data = strata::data;
namespace pictures = strata::pictures;
using bench::median, bench::median_ratio, bench::seconds_of;
namespace fs = std::filesystem;

struct Settings {
    std::int64_t size = 512;
    std::int64_t batch = 8;
    std::int64_t pictures = 64;  ///< of the 6-megapixel case, in a round
    int threads = 2;
    int rounds = 7;
};

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "image_pipeline: %s\n", why.c_str());
    std::exit(1);
}

/// The answer to a line that the DataLoader's process is told.
std::string ask(bench::PeerProcess& peer, const std::string& line) {
    peer.say(line);
    std::string said = peer.hear();
    if (said.empty()) fail("the peer has died");
    return said;
}

// ---- what is decoded ------------------------------------------------------------------------------------------------

/// All photos below a folder, sorted.
std::vector<fs::path> photos_below(const char* folder) {
    std::vector<fs::path> paths;
    if (folder == nullptr) return paths;
    for (const auto& entry : fs::recursive_directory_iterator{folder}) {
        const fs::path extension = entry.path().extension();
        if (entry.is_regular_file() &&
            (extension == ".jpg" || extension == ".jpeg" || extension == ".png" || extension == ".webp"))
            paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

/// A picture as a camera's would be: soft shapes, edges and grain.
pictures::Picture drawn(std::int64_t width, std::int64_t height, unsigned seed) {
    pictures::Picture picture{width, height, 3, {}};
    picture.pixels.reserve(static_cast<std::size_t>(width * height * 3));
    std::uint32_t noise = seed + 1;
    for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x)
            for (std::int64_t c = 0; c < 3; ++c) {
                noise = noise * 1664525U + 1013904223U;
                const double u = static_cast<double>(x) / 97 + seed;
                const double v = static_cast<double>(y) / 61 + static_cast<double>(c);
                const double shape = std::sin(u) * std::cos(v) * 60 + (std::sin(u * 0.31 + v * 0.17) > 0.3 ? 40 : 0);
                picture.pixels.push_back(
                    static_cast<std::uint8_t>(std::clamp(120 + shape + (noise >> 28), 0.0, 255.0)));
            }
    return picture;
}

std::vector<std::byte> jpeg_of(const pictures::PlanarImage& image) {
    jpeg_compress_struct jpeg{};
    jpeg_error_mgr errors{};
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    unsigned char* memory = nullptr;
    unsigned long length = 0;
    jpeg_mem_dest(&jpeg, &memory, &length);
    jpeg.image_width = static_cast<JDIMENSION>(image.width);
    jpeg.image_height = static_cast<JDIMENSION>(image.height);
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 90, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    std::vector<std::uint8_t> row(static_cast<std::size_t>(image.width * 3));
    for (std::int64_t y = 0; y < image.height; ++y) {
        for (std::int64_t x = 0; x < image.width; ++x)
            for (std::int64_t c = 0; c < 3; ++c)
                row[static_cast<std::size_t>(x * 3 + c)] = static_cast<std::uint8_t>(std::lround(
                    image.values[static_cast<std::size_t>((c * image.height + y) * image.width + x)] * 127.5F +
                    127.5F));
        auto* rows = row.data();
        jpeg_write_scanlines(&jpeg, &rows, 1);
    }
    jpeg_finish_compress(&jpeg);
    const auto* begin = reinterpret_cast<const std::byte*>(memory);
    std::vector<std::byte> file(begin, begin + length);
    jpeg_destroy_compress(&jpeg);
    std::free(memory);
    return file;
}

/// JPEGs of 3000 x 2000 at quality 90 with 4:2:0, of the largest photos there are, or drawn.
std::vector<fs::path> six_megapixels(const std::vector<fs::path>& photos, const fs::path& folder) {
    std::vector<pictures::Picture> pictures;
    for (const fs::path& path : photos) {
        const auto file = strata::storage::read_file(path);
        const pictures::PictureSize size = pictures::image_header(file, path.string()).size();
        if (size.width * size.height > 5'000'000) pictures.push_back(pictures::decode_image(file, {}, path.string()));
    }
    for (unsigned i = 0; pictures.size() < 3; ++i) pictures.push_back(drawn(3000, 2000, i));
    std::vector<fs::path> paths;
    for (const pictures::Picture& picture : pictures) {
        paths.push_back(folder / ("six_" + std::to_string(paths.size()) + ".jpg"));
        strata::storage::write_file(paths.back(), jpeg_of(pictures::cover_and_crop(picture, 3000, 2000)));
    }
    return paths;
}

// ---- the ways to do it ----------------------------------------------------------------------------------------------

/// A sample of the stream.
struct Work {
    const fs::path* path = nullptr;
    std::vector<std::byte> file;
    pictures::Picture picture;
    float* out = nullptr;  // its place in the batch
};
using Stream = data::SampleStream<Work>;

/// One pass of the pipeline over the list; `seen` gets every batch.
template <class Seen>
void ours(const std::vector<fs::path>& paths, const Settings& settings, const Seen& seen) {
    const std::int64_t size = settings.size;
    const auto count = static_cast<std::int64_t>(paths.size());
    const std::int64_t batches = (count + settings.batch - 1) / settings.batch;
    Stream::Graph::Steps steps;
    steps.fetch = [](Work&) { return true; };
    steps.read = [](Work& work) { work.file = strata::storage::read_file(*work.path); };
    steps.decode = [&](Work& work) {
        work.picture = pictures::decode_image(work.file, {size, size}, work.path->string());
        work.file = {};
    };
    steps.frame = [&](Work& work) {
        pictures::cover_and_crop_into(work.picture, size, size, {work.out, static_cast<std::size_t>(3 * size * size)});
        work.picture = {};
    };
    const auto plan = [&](std::int64_t number) {
        auto group = std::make_shared<Stream::Group>();
        const std::int64_t begin = number * settings.batch;
        const std::int64_t end = std::min(begin + settings.batch, count);
        if (begin >= end) return group;
        auto batch_B3HW = std::make_shared<at::Tensor>(at::empty({end - begin, 3, size, size}, at::kFloat));
        for (std::int64_t i = begin; i < end; ++i)
            group->samples.push_back({&paths[static_cast<std::size_t>(i)],
                                      {},
                                      {},
                                      static_cast<float*>(batch_B3HW->data_ptr()) + (i - begin) * 3 * size * size});
        group->made = std::move(batch_B3HW);
        return group;
    };
    Stream stream{steps,
                  plan,
                  0,
                  2 * settings.threads,
                  data::StepBounds::of(settings.threads, settings.threads, std::int64_t{1} << 30),
                  settings.threads};
    for (std::int64_t i = 0; i < batches; ++i) seen(*static_cast<at::Tensor*>(stream.next()->made.get()));
}

/// One pass of the limit over files in memory, with as many threads.
void limit(const std::vector<std::vector<std::byte>>& files, const Settings& settings, bool resize) {
    std::atomic<std::size_t> next = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < settings.threads; ++t)
        threads.emplace_back([&] {
            by_hand::Worker worker;
            std::vector<float> planes(static_cast<std::size_t>(3 * settings.size * settings.size));
            for (std::size_t i = next++; i < files.size(); i = next++) {
                if (resize)
                    worker.decode_and_resize(files[i], static_cast<int>(settings.size), planes.data());
                else
                    worker.decode(files[i], static_cast<int>(settings.size));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

/// Ends the program when a picture of ours is not that of the limit (within rounding) or of the peer (within what a
/// reduced scale and 8-bit passes change).
void verify(const std::vector<fs::path>& paths, const std::vector<std::vector<std::byte>>& files, bool with_limit,
            const Settings& settings, bench::PeerProcess& peer) {
    const auto plane = static_cast<std::size_t>(settings.size * settings.size);
    std::vector<float> planes(3 * plane);
    std::size_t index = 0;
    ours(paths, settings, [&](const at::Tensor& batch_B3HW) {
        for (std::int64_t b = 0; b < batch_B3HW.size(0); ++b, ++index) {
            const auto* const mine =
                static_cast<const float*>(batch_B3HW.data_ptr()) + static_cast<std::size_t>(b) * 3 * plane;
            if (with_limit) {
                by_hand::Worker worker;
                worker.decode_and_resize(files[index], static_cast<int>(settings.size), planes.data());
                for (std::size_t i = 0; i < 3 * plane; ++i)
                    if (std::abs(planes[i] - mine[i]) > 1e-4F)
                        fail(paths[index].string() + " has other pixels than by hand");
            }
            if (!peer.there() || index % 5 != 0) continue;
            const std::string said = ask(peer, "look " + paths[index].string() + " " + std::to_string(settings.size));
            const char* at = said.c_str();
            const auto block = static_cast<std::size_t>(settings.size / 8);
            for (std::size_t c = 0; c < 3; ++c)
                for (std::size_t by = 0; by < 8; ++by)
                    for (std::size_t bx = 0; bx < 8; ++bx) {
                        char* end = nullptr;
                        const double theirs = std::strtod(at, &end);
                        at = end;
                        double mean = 0;
                        for (std::size_t y = 0; y < block; ++y)
                            for (std::size_t x = 0; x < block; ++x)
                                mean += mine[c * plane + (by * block + y) * static_cast<std::size_t>(settings.size) +
                                             bx * block + x];
                        if (std::abs(mean / static_cast<double>(block * block) - theirs) > 0.02)
                            fail(paths[index].string() + " has other pixels than the peer's");
                    }
        }
    });
    if (index != paths.size()) fail("pictures are missing");
}

void measure(const std::string& name, const std::vector<fs::path>& paths, bool with_limit, const Settings& settings,
             bench::PeerProcess& peer, const fs::path& folder) {
    std::vector<std::vector<std::byte>> files;
    for (const fs::path& path : paths) files.push_back(strata::storage::read_file(path));
    if (peer.there()) {
        std::ofstream list{folder / "list.txt"};
        for (const fs::path& path : paths) list << path.string() << '\n';
        list.close();
        ask(peer, "files " + (folder / "list.txt").string());
    }
    verify(paths, files, with_limit, settings, peer);

    std::vector<double> t_ours, t_limit, t_decode, t_peer, t_draft;
    const std::string tail = " " + std::to_string(settings.size) + " " + std::to_string(settings.batch);
    for (int round = 0; round < settings.rounds; ++round)
        for (int turn = 0; turn < 5; ++turn) {
            switch (round % 2 == 0 ? turn : 4 - turn) {
                case 0:
                    t_ours.push_back(seconds_of([&] { ours(paths, settings, [](const at::Tensor&) {}); }));
                    break;
                case 1:
                    if (with_limit) t_limit.push_back(seconds_of([&] { limit(files, settings, true); }));
                    break;
                case 2:
                    if (peer.there()) t_peer.push_back(std::stod(ask(peer, "run 0" + tail)));
                    break;
                case 3:
                    if (with_limit) t_decode.push_back(seconds_of([&] { limit(files, settings, false); }));
                    break;
                default:
                    if (peer.there()) t_draft.push_back(std::stod(ask(peer, "run 1" + tail)));
            }
        }
    const auto rate = [&](const std::vector<double>& seconds) {
        return static_cast<double>(paths.size()) / median(seconds);
    };
    std::printf("{\"bench\":\"image_pipeline\",\"case\":\"%s, %d threads\",\"ours\":%.1f,\"unit\":\"pictures/s\"",
                name.c_str(), settings.threads, rate(t_ours));
    if (peer.there()) {
        std::printf(",\"peer\":%.1f,\"peer_name\":\"DataLoader of torch %s, 2 workers\",\"ratio\":%.2f", rate(t_peer),
                    peer.version().c_str(), median_ratio(t_peer, t_ours));
        std::printf(",\"peer_draft\":%.1f,\"ratio_draft\":%.2f", rate(t_draft), median_ratio(t_draft, t_ours));
    }
    if (with_limit) {
        std::printf(",\"limit\":%.1f,\"limit_name\":\"scaled decode and resize by hand\",\"of_limit\":%.3f",
                    rate(t_limit), median_ratio(t_limit, t_ours));
        std::printf(",\"decode_alone\":%.1f,\"of_decode\":%.3f", rate(t_decode), median_ratio(t_decode, t_ours));
    }
    std::printf("}\n");
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        if (flag == "--rounds")
            settings.rounds = std::atoi(argv[i + 1]);
        else if (flag == "--pictures")
            settings.pictures = std::atoll(argv[i + 1]);
        else if (flag == "--threads")
            settings.threads = std::atoi(argv[i + 1]);
        else
            fail("unknown argument " + flag);
    }
    bench::PeerProcess peer{bench::peer_command()};
    std::string name = (fs::temp_directory_path() / "image_pipeline_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail("no temporary folder");
    const fs::path folder{name};
    const std::vector<fs::path> photos = photos_below(std::getenv("BENCH_PHOTOS"));
    const std::vector<fs::path> made = six_megapixels(photos, folder);
    std::vector<fs::path> list;
    for (std::size_t i = 0; i < static_cast<std::size_t>(settings.pictures); ++i) list.push_back(made[i % made.size()]);
    measure("JPEG of 6 megapixels", list, true, settings, peer, folder);
    if (!photos.empty())
        measure(std::to_string(photos.size()) + " photos as they are", photos, false, settings, peer, folder);
    fs::remove_all(folder);
    return 0;
}
