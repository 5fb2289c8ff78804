// bench/prepare/ours.cpp - PictureSource::prepare() from files to entries: how near is it to the encoder's own speed?
//
//   bench/run.sh prepare [--pictures N] [--size PIXELS] [--rounds N]
//
// Pictures of 1.5 times the training size in both edges, as files, to cached latents: found, decoded, resized, encoded and written,
// into empty caches. The encoder has the layers of SDXL's (Podell et al. 2023: 128, 256, 512, 512 channels, two residual blocks each,
// 34 million parameters) without attention, and random weights. The limit: that encoder alone, over as many tensors that
// are in memory, in the same batches, on each rank its share at the same time. It runs as the source lets its encoder
// run: one call at a time, on whichever worker of a StepGraph of as many threads is free, and so in the same teams of
// OpenMP; a limit that is computed on the main thread has a team of its own, which spins where the others, on a machine
// that has more threads than cores by then, give way. The bench fails if the two see other numbers of threads. Both
// take turns in every round, with batches of 1 and of 8. Rates are medians over the rounds, ratios medians of the
// rounds' own ratios. Before a time is printed, entries are compared with what the encoder makes of the same pixels.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/data/step_graph.hpp>
#include <strata/datasets/for_all.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/png.hpp>
#include <strata/pictures/resample.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "../measure.hpp"
#include "random_autoencoder.hpp"

namespace {

namespace fs = std::filesystem;
namespace data = strata::data;
namespace pictures = strata::pictures;
using strata::Local;
using strata::comm::MpiComm;

struct Settings {
    std::int64_t pictures = 48;
    std::int64_t size = 128;
    int rounds = 3;
};

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "prepare: %s\n", why.c_str());
    std::exit(1);
}

/// Threads that a call of the encoder has, the least and the most since reset().
struct ThreadsSeen {
    std::atomic<int> least{1 << 30};
    std::atomic<int> most{0};
    void reset() { least = 1 << 30, most = 0; }
    void note() {  // one call at a time
        least = std::min<int>(least, at::get_num_threads());
        most = std::max<int>(most, at::get_num_threads());
    }
};
ThreadsSeen threads_seen;

/// One call, without gradients: what is timed of both.
at::Tensor encoded(torch::nn::Sequential& encoder, const at::Tensor& pixels_B3HW) {
    threads_seen.note();
    const at::NoGradGuard no_gradients;
    return encoder->forward(pixels_B3HW);
}

/// Latents of that encoder; captions are nothing, so that pictures are what is timed.
struct Recipe {
    using Batch = at::Tensor;
    using PictureEncoders = torch::nn::Sequential;
    struct CaptionEncoders {};
    torch::nn::Sequential encoder = bench::make_autoencoder();  // loading weights is not the question

    std::string picture_id() const { return "random autoencoder"; }
    std::string caption_id() const { return "nothing"; }
    std::int64_t alignment() const { return 64; }
    std::vector<data::TensorSpec> picture_tensors(const pictures::PictureSize& size) const {
        return {{"moments", at::kFloat, {8, size.height / 8, size.width / 8}}};
    }
    std::vector<data::TensorSpec> caption_tensors() const { return {{"length", at::kFloat, {1}}}; }
    PictureEncoders load_picture_encoders(at::Device) const { return encoder; }
    CaptionEncoders load_caption_encoders(at::Device) const { return {}; }
    std::vector<data::NamedTensors> encode_pictures(PictureEncoders& layers, const data::PictureBatch& batch) const {
        std::vector<data::NamedTensors> entries;
        for (const at::Tensor& one : encoded(layers, batch.pixels_B3HW).unbind()) entries.push_back({{"moments", one}});
        return entries;
    }
    std::vector<data::NamedTensors> encode_captions(CaptionEncoders&, std::span<const std::string> captions) const {
        return std::vector<data::NamedTensors>(captions.size(), {{"length", at::ones({1})}});
    }
    std::optional<std::string> dropped_caption() const { return std::nullopt; }
    at::Tensor collate(std::span<const data::Example> examples) const {
        std::vector<at::Tensor> rows;
        for (const data::Example& one : examples) rows.push_back(one.picture.at("moments"));
        return at::stack(rows);
    }
};

std::string name_of(std::int64_t i) { return "p" + std::to_string(1000 + i); }

void make_pictures(const fs::path& folder, const Settings& settings) {
    const Local store{folder};
    const std::int64_t edge = settings.size * 3 / 2;
    for (std::int64_t i = 0; i < settings.pictures; ++i) {
        std::vector<std::uint8_t> rgb(static_cast<std::size_t>(3 * edge * edge));
        for (std::size_t at = 0; at < rgb.size(); ++at)
            rgb[at] = static_cast<std::uint8_t>(
                128 + 90 * std::sin(0.01 * static_cast<double>(at % 977) * static_cast<double>(i + 1)) +
                static_cast<double>(at * 2654435761U % 31));
        store.put(name_of(i) + ".png", pictures::encode_png(edge, edge, rgb));
        store.put(name_of(i) + ".txt", std::as_bytes(std::span{"caption", 7}));
    }
}

strata::config::DatasetList list_of(const fs::path& folder, const fs::path& cache, const Settings& settings) {
    strata::config::ImageDataset images;
    images.id = "pictures";
    images.instance_data_dir = folder;
    images.cache_dir_vae = cache / "vae";
    images.text_embeds = "text";
    images.resolution = static_cast<double>(settings.size);
    images.resolution_type = strata::config::ResolutionType::pixel;
    strata::config::TextEmbeds embeds;
    embeds.id = "text";
    embeds.cache_dir = cache / "text";
    strata::config::DatasetList list;
    list.images = {images};
    list.text_embeds = {embeds};
    return list;
}

/// Seconds between two meetings of all ranks.
double together(MpiComm& comm, const std::function<void()>& work) {
    comm.barrier();
    return bench::seconds_of([&] {
        work();
        comm.barrier();
    });
}

/// The encoder alone, over `count` pictures in batches, as a source's graph calls it.
class Alone {
public:
    Alone(const Recipe& recipe, const Settings& settings, std::int64_t count, std::int64_t batch, int threads)
        : encoder_{recipe.encoder},
          pixels_B3HW_{at::rand({batch, 3, settings.size, settings.size}) * 2 - 1},
          count_{count},
          batch_{batch},
          threads_{threads} {}
    void operator()() {
        typename Graph::Steps steps;
        steps.encode = [this](Graph::Group& group) {
            (void)encoded(encoder_, pixels_B3HW_.narrow(0, 0, std::min(batch_, count_ - group.number * batch_)));
        };
        Graph graph{std::move(steps), data::StepBounds::of(threads_, threads_, std::int64_t{1} << 30), threads_};
        for (std::int64_t i = 0; i * batch_ < count_; ++i) {
            auto group = std::make_shared<Graph::Group>();
            group->number = i;
            graph.put(std::move(group));
        }
        graph.wait();
    }

private:
    struct Nothing {};
    using Graph = data::StepGraph<Nothing>;
    torch::nn::Sequential encoder_;
    at::Tensor pixels_B3HW_;
    std::int64_t count_;
    std::int64_t batch_;
    int threads_;
};

/// The first picture is in some rank's batches.
void verify(MpiComm& comm, data::PictureSource<Recipe, Local>& source, const Recipe& recipe,
            const at::Tensor& pixels_3HW) {
    source.seek(0);
    const at::Tensor all = source.next();
    if (all.size(0) < 1 || !all.isfinite().all().item<bool>()) fail("entries are not what an encoder makes");
    const at::NoGradGuard no_gradients;
    auto encoder = recipe.encoder;
    const at::Tensor expected = encoder->forward(pixels_3HW.unsqueeze(0))[0];
    double nearest = 1e9;
    for (std::int64_t b = 0; b < source.micro_batches_per_epoch(); ++b) {
        source.seek(b);
        for (const at::Tensor& one : source.next().unbind())
            nearest = std::min(nearest, (one - expected).abs().max().item<double>());
    }
    for (const std::string& said : comm.all_gather_varied(std::to_string(nearest)))
        nearest = std::min(nearest, std::stod(said));
    if (nearest > 1e-3) fail("no entry is what the encoder makes of the first picture's pixels");
}

}  // namespace

int main(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        if (flag == "--pictures")
            settings.pictures = std::atoll(argv[i + 1]);
        else if (flag == "--size")
            settings.size = std::atoll(argv[i + 1]);
        else if (flag == "--rounds")
            settings.rounds = std::atoi(argv[i + 1]);
        else
            fail("unknown argument " + flag);
    }
    MpiComm comm;
    std::string folder_text = comm.rank() == 0 ? (fs::temp_directory_path() / "prepare_XXXXXX").string() : "";
    if (comm.rank() == 0 && ::mkdtemp(folder_text.data()) == nullptr) fail("no temporary folder");
    const fs::path folder{comm.all_gather_varied(folder_text)[0]};
    if (comm.rank() == 0) make_pictures(folder / "data", settings);
    comm.barrier();

    const auto recipe = std::make_shared<const Recipe>();
    if (settings.pictures % (8 * comm.world()) != 0) fail("--pictures must be a multiple of 8 times the ranks");
    const std::int64_t share = settings.pictures / comm.world();
    const int threads = std::max(1, strata::datasets::threads_for(0) / comm.world());
    for (const std::int64_t batch : {1, 8}) {
        Alone alone{*recipe, settings, share, batch, threads};
        data::SourceOptions options;
        options.train_batch_size = 1;
        options.vae_batch_size = batch;
        options.threads = threads;
        int cache = 0;
        std::unique_ptr<data::PictureSource<Recipe, Local>> source;
        const auto prepare = [&] {
            source = std::make_unique<data::PictureSource<Recipe, Local>>(
                comm,
                list_of(folder / "data", folder / ("cache" + std::to_string(batch) + "_" + std::to_string(cache++)),
                        settings),
                recipe, options);
            source->prepare();
        };
        std::vector<double> ours, limit;
        together(comm, alone);    // the library's threads, memory and choices of algorithm are there,
        together(comm, prepare);  // and those of the graph
        threads_seen.reset();
        for (int round = 0; round < settings.rounds; ++round) {
            if (round % 2 == 0) limit.push_back(together(comm, alone));
            ours.push_back(together(comm, prepare));
            if (round % 2 == 1) limit.push_back(together(comm, alone));
        }
        if (threads_seen.least != threads_seen.most)
            fail("the encoder had between " + std::to_string(threads_seen.least) + " and " +
                 std::to_string(threads_seen.most) + " threads: set OMP_NUM_THREADS");
        if (source->report().latents.made != settings.pictures) fail("not every picture was encoded");
        const auto file = strata::storage::read_file(folder / "data" / (name_of(0) + ".png"));
        const auto planar = pictures::cover_and_crop(pictures::decode_image(file), settings.size, settings.size);
        const at::Tensor first = at::empty({3, settings.size, settings.size});
        std::copy(planar.values.begin(), planar.values.end(), first.data_ptr<float>());
        verify(comm, *source, *recipe, first);
        source.reset();
        if (comm.rank() == 0) {
            const auto rate = [&](const std::vector<double>& seconds) {
                return static_cast<double>(share * comm.world()) / bench::median(seconds);
            };
            std::printf(
                "{\"bench\":\"prepare\",\"case\":\"batches of %lld, %d rank%s\",\"ours\":%.2f,\"unit\":\"pictures/s\",\"limit\":%.2f,"
                "\"limit_name\":\"the encoder alone\",\"of_limit\":%.3f,\"encoder_threads\":%d}\n",
                static_cast<long long>(batch), comm.world(), comm.world() == 1 ? "" : "s", rate(ours), rate(limit),
                bench::median_ratio(limit, ours), threads_seen.most.load());
            std::fflush(stdout);
        }
    }
    comm.barrier();
    if (comm.rank() == 0) fs::remove_all(folder);
    return 0;
}
