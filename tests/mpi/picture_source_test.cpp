// Captioned pictures over ranks: every rank its share of the work, together the one sequence of batches.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/datasets/folder_place.hpp>
#include <strata/datasets/for_all.hpp>
#include <strata/datasets/sample_index.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "../support/fake_encoders.hpp"
#include "../support/pictures.hpp"
#include "../support/prepared.hpp"
#include "../support/temporary_folder.hpp"
#include "shared_folder.hpp"

namespace {

using strata::Errc;
using strata::comm::MpiComm;
using strata::storage::write_file;
using strata_test::LengthText;
using strata_test::MeanCodec;
using strata_test::prepared;
using Source = strata::data::PictureSource<strata_test::FakeRecipe, strata::Local>;

/// One folder that all ranks see: 24 square pictures, one of them broken behind its header, and one without caption.
struct PictureFolder {
    MpiComm comm;
    strata_test::SharedFolder<MpiComm> folder{comm};
    const std::filesystem::path& path = folder.path;

    PictureFolder() {
        if (comm.rank() == 0) {
            for (int i = 0; i < 25; ++i) {
                const std::string stem = "data/p" + std::to_string(100 + i);
                auto png = strata_test::plain_png(48, 48, static_cast<std::uint8_t>(i * 10), 0, 0);
                if (i == 7) png.resize(png.size() / 2);
                write_file(path / (stem + ".png"), png);
                write_file(path / (stem + ".txt"), "caption " + std::to_string(i));
            }
            write_file(path / "data" / "bare.png", strata_test::plain_png(48, 48, 0, 0, 0));
        }
        comm.barrier();
    }

    [[nodiscard]] strata::config::DatasetList list(const std::string& cache) const {
        strata::config::DatasetList list;
        strata::config::ImageDataset images;
        images.id = "pictures";
        images.instance_data_dir = path / "data";
        images.cache_dir_vae = path / cache;
        images.text_embeds = "text";
        images.resolution = 48;
        list.images.push_back(images);
        strata::config::TextEmbeds embeds;
        embeds.id = "text";
        embeds.cache_dir = path / (cache + "_text");
        list.text_embeds.push_back(embeds);
        return list;
    }
};

strata::data::SourceOptions options_for(int train_batch_size) {
    strata::data::SourceOptions options;
    options.train_batch_size = train_batch_size;
    options.aspect_bucket_alignment = 16;
    options.caption_dropout_probability = 0.3;
    options.threads = 1;
    return options;
}

TEST(PictureSource, RanksShareTheEncodingAndReportTheSame) {
    PictureFolder shared;
    const auto codec = std::make_shared<MeanCodec>();
    const auto source =
        prepared<Source>(shared.comm, shared.list("vae"), codec, std::make_shared<LengthText>(), options_for(2));
    std::vector<double> calls{static_cast<double>(*codec->calls)};
    shared.comm.all_reduce_sum(calls);
    EXPECT_EQ(calls[0], 24);
    EXPECT_LE(*codec->calls, 25 / shared.comm.world() + 1);
    const auto report = source->report();
    EXPECT_EQ(report.found, 26);
    EXPECT_EQ(report.used, 24);
    EXPECT_EQ(report.latents.made, 24);
    EXPECT_EQ(report.texts.made, 25);
    ASSERT_EQ(report.skipped.size(), 2U);
    EXPECT_TRUE(report.skipped[0].place.ends_with("bare.png"));
    EXPECT_TRUE(report.skipped[1].place.ends_with("p107.png"));
}

/// As on hosts that share no disk: rank 0 sees one folder of caches, and the others another.
TEST(PictureSource, HostsWithCachesOfTheirOwnFillEach) {
    PictureFolder shared;
    const auto list = shared.list(shared.comm.rank() == 0 ? "vae_a" : "vae_b");
    const auto entries = [&](const std::string& cache) {
        std::set<std::string> names;
        for (const auto& entry : std::filesystem::recursive_directory_iterator{shared.path / cache})
            if (entry.is_regular_file()) names.insert(std::filesystem::relative(entry.path(), shared.path / cache));
        return names;
    };
    const auto pictures_encoded = [&] {
        const auto codec = std::make_shared<MeanCodec>();
        const auto source = prepared<Source>(shared.comm, list, codec, std::make_shared<LengthText>(), options_for(2));
        EXPECT_EQ(source->report().latents.entries, 24);
        EXPECT_EQ(source->report().skipped.size(), 2U);
        std::vector<double> calls{static_cast<double>(*codec->calls)};
        shared.comm.all_reduce_sum(calls);
        return calls[0];
    };
    const int hosts = std::min(shared.comm.world(), 2);
    EXPECT_EQ(pictures_encoded(), 24 * hosts);
    EXPECT_EQ(entries("vae_a").size(), 24U) << "entries alone, and no mark";
    if (hosts == 2) {
        EXPECT_EQ(entries("vae_a"), entries("vae_b"));
        EXPECT_EQ(entries("vae_a_text"), entries("vae_b_text"));
    }
    EXPECT_EQ(pictures_encoded(), 0);
    if (shared.comm.rank() == 0) std::filesystem::remove(shared.path / "vae_a" / *entries("vae_a").begin());
    shared.comm.barrier();
    EXPECT_EQ(pictures_encoded(), 1) << "where it is missing";
}

/// What each rank reads of its share is known to all, and to the index of rank 0.
TEST(PictureSource, RanksTellEachOtherWhatFilesHold) {
    PictureFolder shared;
    const auto codec = std::make_shared<MeanCodec>();
    const auto text = std::make_shared<LengthText>();
    auto options = options_for(2);
    options.index_folder = shared.path / "index";
    const auto calls = [&] {
        std::vector<double> all{static_cast<double>(*codec->calls)};
        shared.comm.all_reduce_sum(all);
        return all[0];
    };
    auto list = shared.list("vae");
    const auto identity = [&] {
        const auto source = prepared<Source>(shared.comm, list, codec, text, options);
        for (const auto& sample : source->collection().sets()[0].samples) EXPECT_TRUE(sample.content) << sample.key;
        return source->identity();
    };
    const auto first = identity();
    EXPECT_EQ(calls(), 24);
    if (shared.comm.rank() == 0) {
        strata::datasets::SampleIndex index{options.index_folder, "pictures",
                                            strata::datasets::folder_place((shared.path / "data").string())};
        int known = 0;
        for (const auto& one : index.take_pictures()) known += one.sample.content ? 1 : 0;
        EXPECT_EQ(known, 25);  // that which cannot be decoded was read as well
        std::filesystem::rename(shared.path / "data", shared.path / "moved");
        for (const auto& entry : std::filesystem::directory_iterator{shared.path / "moved"})
            std::filesystem::last_write_time(entry, std::filesystem::file_time_type::clock::now());
    }
    shared.comm.barrier();
    list.images[0].instance_data_dir = shared.path / "moved";
    options.index_folder.clear();
    EXPECT_EQ(identity(), first) << "moved, touched and without an index";
    EXPECT_EQ(calls(), 24);
    if (shared.comm.rank() == 0) {
        const auto file = shared.path / "moved" / "p103.png";
        const auto date = std::filesystem::last_write_time(file);
        auto png = strata_test::plain_png(48, 48, 33, 1, 2);
        png.resize(std::filesystem::file_size(file));
        write_file(file, png);
        std::filesystem::last_write_time(file, date);
    }
    shared.comm.barrier();
    EXPECT_NE(identity(), first);
    EXPECT_EQ(calls(), 25);
}

/// Whoever's turn it is, all ranks together show what one rank alone does.
TEST(PictureSource, RanksReplaceABrokenSampleByTheSameOther) {
    PictureFolder shared;
    const auto codec = std::make_shared<MeanCodec>();
    const auto text = std::make_shared<LengthText>();
    const int global = 6;
    auto options = options_for(global / shared.comm.world());
    auto alone_options = options_for(global);
    options.on_broken_sample = alone_options.on_broken_sample = strata::config::OnBrokenSample::replace;
    strata::comm::SelfComm self;
    for (const bool ahead : {true, false}) {
        auto list = shared.list(ahead ? "vae" : "later");
        auto own_list = shared.list((ahead ? "vae_" : "later_") + std::to_string(shared.comm.rank()));
        list.images[0].vae_cache_ondemand = own_list.images[0].vae_cache_ondemand = !ahead;
        const auto source = prepared<Source>(shared.comm, list, codec, text, options);
        const auto alone = prepared<Source>(self, own_list, codec, text, alone_options);
        EXPECT_EQ(source->report().broken.size(), ahead ? 1U : 0U);
        EXPECT_EQ(source->report().used, 25);
        int turns = 0;
        for (int i = 0; i < 10; ++i) {
            const auto mine = source->next();
            const auto all = alone->next();
            const auto share = static_cast<std::size_t>(global / shared.comm.world());
            const std::size_t begin = share * static_cast<std::size_t>(shared.comm.rank());
            for (std::size_t k = 0; k < share; ++k) EXPECT_EQ(mine.samples[k], all.samples[begin + k]);
            for (const std::string& sample : all.samples) {
                EXPECT_FALSE(sample.ends_with("p107.png"));
                turns += sample.ends_with("p108.png") ? 1 : 0;
            }
        }
        EXPECT_GE(turns, 3) << "its own, and those of p107";
        const auto lines = source->closing_lines(shared.comm);
        ASSERT_EQ(lines.size(), 1U);
        EXPECT_NE(lines[0].find(" of 1 sample went to the next of the bucket: "), std::string::npos) << lines[0];
    }
}

TEST(PictureSource, RanksTogetherSeeTheSequenceOfOneRankWithTheSameGlobalBatch) {
    PictureFolder shared;
    const int global = 12;  // 1, 2 and 3 ranks divide it
    const auto codec = std::make_shared<MeanCodec>();
    const auto text = std::make_shared<LengthText>();
    const auto source =
        prepared<Source>(shared.comm, shared.list("vae"), codec, text, options_for(global / shared.comm.world()));
    strata::comm::SelfComm self;
    const auto alone = prepared<Source>(self, shared.list("vae_" + std::to_string(shared.comm.rank())), codec, text,
                                        options_for(global));
    ASSERT_EQ(source->micro_batches_per_epoch(), 2);
    ASSERT_EQ(alone->micro_batches_per_epoch(), 2);
    for (int i = 0; i < 5; ++i) {
        const auto mine = source->next();
        const auto all = alone->next();
        const auto share = static_cast<std::size_t>(global / shared.comm.world());
        const std::size_t begin = share * static_cast<std::size_t>(shared.comm.rank());
        for (std::size_t k = 0; k < share; ++k) {
            EXPECT_EQ(mine.samples[k], all.samples[begin + k]);
            EXPECT_EQ(mine.captions[k], all.captions[begin + k]);
        }
    }
}

TEST(PictureSource, EqualEffectiveBatchesGiveTheSequenceWhateverTheyAreMadeOf) {
    PictureFolder shared;
    const int effective = 12;
    const int accumulation = 2;
    const auto codec = std::make_shared<MeanCodec>();
    const auto text = std::make_shared<LengthText>();
    const int micro = effective / accumulation;
    auto options = options_for(micro / shared.comm.world());
    options.gradient_accumulation_steps = accumulation;
    const auto source = prepared<Source>(shared.comm, shared.list("vae"), codec, text, options);
    strata::comm::SelfComm self;
    const auto alone = prepared<Source>(self, shared.list("vae_" + std::to_string(shared.comm.rank())), codec, text,
                                        options_for(effective));
    EXPECT_EQ(source->micro_batches_per_epoch(), accumulation * alone->micro_batches_per_epoch());
    source->seek(2);  // resuming at the second step
    alone->seek(1);
    for (int step = 1; step < 5; ++step) {
        const auto all = alone->next();
        for (int part = 0; part < accumulation; ++part) {
            const auto mine = source->next();
            const auto share = static_cast<std::size_t>(micro / shared.comm.world());
            const std::size_t begin =
                static_cast<std::size_t>(part * micro) + share * static_cast<std::size_t>(shared.comm.rank());
            for (std::size_t k = 0; k < share; ++k) {
                EXPECT_EQ(mine.samples[k], all.samples[begin + k]);
                EXPECT_EQ(mine.captions[k], all.captions[begin + k]);
            }
        }
    }
}

TEST(PictureSource, RanksOfAMachineShareItsCores) {
    PictureFolder shared;
    auto options = options_for(1);
    const auto threads_of_all = [&] {
        const auto codec = std::make_shared<MeanCodec>();
        const Source source{shared.comm, shared.list("vae"),
                            std::make_shared<const strata_test::FakeRecipe>(*codec, LengthText{}), options};
        std::vector<double> sum{static_cast<double>(source.threads())};
        shared.comm.all_reduce_sum(sum);
        return static_cast<int>(sum[0]);
    };
    options.threads = 0;
    EXPECT_EQ(threads_of_all(), std::max(strata::datasets::threads_for(0), shared.comm.world()));
    options.threads = 3;
    EXPECT_EQ(threads_of_all(), 3 * shared.comm.world()) << "as it was said";
}

/// A set that is evaluated: the last batch is short, and a rank may have nothing in it that counts.
TEST(PictureSource, EachOnceShowsTheSameSamplesWithTheSameCaptionsOnceOnAnyNumberOfRanks) {
    PictureFolder shared;
    const auto codec = std::make_shared<MeanCodec>();
    const auto text = std::make_shared<LengthText>();
    auto options = options_for(5);
    options.each_once = true;
    auto list = shared.list("vae");
    list.images[0].repeats = 3;  // of a set that is trained on as well
    const auto shown = [&](auto& comm) {
        const auto source = prepared<Source>(comm, list, codec, text, options);
        const std::int64_t batches = source->micro_batches_per_epoch();
        EXPECT_EQ(batches, (24 + 5 * comm.world() - 1) / (5 * comm.world()));
        std::string mine;
        for (std::int64_t b = 0; b < batches; ++b) {
            const auto batch = source->next();
            const std::int64_t counted = source->samples_in(b);
            EXPECT_EQ(static_cast<std::int64_t>(batch.samples.size()), std::max<std::int64_t>(counted, 1));
            for (std::size_t i = 0; i < static_cast<std::size_t>(counted); ++i)
                mine += batch.samples[i] + ": " + batch.captions[i] + "\n";
        }
        std::multiset<std::string> lines;
        for (const std::string& some : comm.all_gather_varied(mine)) {
            std::istringstream words{some};
            for (std::string line; std::getline(words, line);) lines.insert(line);
        }
        return lines;
    };
    const std::multiset<std::string> together = shown(shared.comm);
    EXPECT_EQ(together.size(), 24U);
    EXPECT_EQ(std::set<std::string>(together.begin(), together.end()).size(), 24U);
    strata::comm::SelfComm self;
    EXPECT_EQ(shown(self), together);
}

TEST(PictureSource, OneStoppedRankStopsAllAndTheNextRunGoesOn) {
    PictureFolder shared;
    const auto codec = std::make_shared<MeanCodec>();
    const auto text = std::make_shared<LengthText>();
    auto options = options_for(1);
    bool stop = false;
    const int last = shared.comm.world() - 1;
    options.vae_batch_size = 1;
    options.progress = [&](std::string_view what, std::int64_t done, std::int64_t) {
        stop = shared.comm.rank() == last && what == "latents" && done >= 2;
    };
    options.stopped = [&] { return stop; };
    const auto error =
        strata_test::thrown_by([&] { (void)prepared<Source>(shared.comm, shared.list("vae"), codec, text, options); });
    EXPECT_EQ(error.code, Errc::interrupted);
    EXPECT_GT(*codec->calls, 0);
    options.stopped = {};
    const auto source = prepared<Source>(shared.comm, shared.list("vae"), codec, text, options);
    EXPECT_GT(source->report().latents.made, 0);
    EXPECT_LT(source->report().latents.made, 23);
    EXPECT_EQ(source->report().used, 24);
}

TEST(PictureSource, BadInputIsTheSameErrorOnEveryRank) {
    PictureFolder shared;
    const auto codec = std::make_shared<MeanCodec>();
    const auto text = std::make_shared<LengthText>();
    auto list = shared.list("vae");
    const auto code = [&](const strata::data::SourceOptions& options) {
        return strata_test::thrown_by([&] { (void)prepared<Source>(shared.comm, list, codec, text, options); }).code;
    };
    EXPECT_EQ(code(options_for(100)), Errc::small_bucket);
    list.images[0].instance_data_dir = shared.path / "missing";
    EXPECT_EQ(code(options_for(1)), Errc::no_samples);
    if (shared.comm.world() > 1) {
        list = shared.list("vae");
        auto options = options_for(1);
        options.seed = static_cast<std::uint64_t>(shared.comm.rank());
        EXPECT_EQ(code(options), Errc::rank_mismatch);
    }
}

}  // namespace
