// Pictures that break under a run: it ends and names them, or the next of the bucket takes their turns, always the same one.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/data/picture_source.hpp>

#include "../../support/picture_source.hpp"
#include "../../support/pictures.hpp"

namespace {

using namespace strata::data;
using strata::Errc;
using strata::config::OnBrokenSample;
using strata_test::plain_png;
using strata_test::thrown_by;
using strata_test::write_file;
namespace fs = std::filesystem;

/// 8 square pictures, encoded at their first visit.
struct Fixture : strata_test::PictureSource {
    bool ahead = false;
    Fixture() {
        fs::remove_all(data());
        for (int i = 0; i < 8; ++i) {
            const std::string stem = "p" + std::to_string(i);
            write_file(data() / (stem + ".png"), plain_png(64, 64, static_cast<std::uint8_t>(i * 20), 0, 0));
            write_file(data() / (stem + ".txt"), "caption " + std::to_string(i));
        }
        options.on_broken_sample = OnBrokenSample::replace;
    }
    [[nodiscard]] std::string place(int i) const { return (data() / ("p" + std::to_string(i) + ".png")).string(); }
    /// Its header is whole, its pixels are not.
    void damage(int i) const {
        auto png = plain_png(64, 64, static_cast<std::uint8_t>(i * 20), 0, 0);
        png.resize(png.size() / 2);
        write_file(place(i), png);
    }
    [[nodiscard]] std::unique_ptr<Source> source() const {
        auto all = list();
        all.images[0].vae_cache_ondemand = !ahead;
        static strata::comm::SelfComm comm;  // outlives every source
        return strata_test::prepared<Source>(comm, all, codec, text, options);
    }
};

std::vector<std::vector<std::string>> samples_of(Fixture::Source& source, int batches) {
    std::vector<std::vector<std::string>> all;
    for (int i = 0; i < batches; ++i) all.push_back(source.next().samples);
    return all;
}

TEST(BrokenSamples, ARunThatStopsNamesTheSampleItsDataSetAndTheWayOut) {
    Fixture fixture;
    fixture.options.on_broken_sample = OnBrokenSample::stop;
    fixture.damage(5);
    const auto source = fixture.source();
    const auto error = thrown_by([&] { (void)samples_of(*source, 2); });
    EXPECT_EQ(error.code, Errc::bad_picture);
    EXPECT_TRUE(error.says("sample '" + fixture.place(5) + "' of data set 'pictures' cannot be used: "))
        << error.message;
    EXPECT_TRUE(error.says("set on_broken_sample to replace")) << error.message;
}

TEST(BrokenSamples, AnEncodersOwnFailureNamesTheSampleToo) {
    Fixture fixture;
    struct Fails : strata_test::LengthText {
        [[nodiscard]] strata::models::TextEmbedding encode(std::string_view caption) const {
            if (caption == "caption 5") throw std::runtime_error{"no such token\nand a trace"};
            return LengthText::encode(caption);
        }
    };
    auto list = fixture.list();
    list.images[0].skip_file_discovery.text = true;
    strata::comm::SelfComm comm;
    using Recipe = strata::models::FluxRecipe<strata_test::MeanCodec, Fails>;
    PictureSource<Recipe, strata::Local> source{comm, list, std::make_shared<const Recipe>(*fixture.codec, Fails{}),
                                                fixture.options};
    source.prepare();
    const auto error = thrown_by([&] {
        for (int i = 0; i < 2; ++i) (void)source.next();
    });
    EXPECT_EQ(error.code, Errc::sample_failed);
    EXPECT_TRUE(error.says("sample '" + fixture.place(5) + "' of data set 'pictures' cannot be made: no such token."))
        << error.message;
}

TEST(BrokenSamples, TheNextOfTheBucketTakesTheTurn) {
    Fixture fixture;
    const auto whole = samples_of(*fixture.source(), 6);
    fs::remove_all(fixture.folder.path() / "vae");
    for (const int i : {2, 3, 7}) fixture.damage(i);
    const auto source = fixture.source();
    const auto replaced = samples_of(*source, 6);
    int turns = 0;
    for (std::size_t b = 0; b < whole.size(); ++b)
        for (std::size_t i = 0; i < whole[b].size(); ++i) {
            const auto& planned = whole[b][i];
            const auto expected = planned == fixture.place(2) || planned == fixture.place(3) ? fixture.place(4)
                                  : planned == fixture.place(7)                              ? fixture.place(0)
                                                                                             : planned;
            turns += expected != planned ? 1 : 0;
            EXPECT_EQ(replaced[b][i], expected) << b << " " << i;
        }
    EXPECT_EQ(turns, 9);  // three epochs
    strata::comm::SelfComm comm;
    const auto lines = source->closing_lines(comm);
    const auto said =
        std::ranges::find_if(lines, [](const std::string& line) { return line.starts_with("broken samples: "); });
    ASSERT_NE(said, lines.end());
    // Batches that were made ahead count as well: an exact number would depend on how far that went.
    EXPECT_NE(said->find(" turns of 3 samples went to the next of the bucket: " + fixture.place(2) + " ("),
              std::string::npos)
        << *said;
    EXPECT_NE(said->find(fixture.place(7)), std::string::npos) << *said;
}

TEST(BrokenSamples, AResumedRunSeesTheSameReplacements) {
    Fixture fixture;
    for (const int i : {1, 6}) fixture.damage(i);
    const auto straight = samples_of(*fixture.source(), 8);
    for (const int from : {1, 5}) {
        const auto resumed = fixture.source();
        resumed->seek(from);
        const auto rest = samples_of(*resumed, 8 - from);
        for (std::size_t b = 0; b < rest.size(); ++b)
            EXPECT_EQ(rest[b], straight[b + static_cast<std::size_t>(from)]) << from << " " << b;
    }
}

TEST(BrokenSamples, WhatIsFoundWhileCachesAreFilledStaysInThePlanAndInTheReport) {
    Fixture fixture;
    fixture.ahead = true;
    const auto whole = samples_of(*fixture.source(), 4);
    fixture.damage(2);  // between two runs: the plan must not change
    const auto source = fixture.source();
    const auto report = source->report();
    EXPECT_EQ(report.used, 8);
    EXPECT_TRUE(report.skipped.empty());
    ASSERT_EQ(report.broken.size(), 1U);
    EXPECT_EQ(report.broken[0].place, fixture.place(2));
    const auto lines = report.lines();
    EXPECT_EQ(std::ranges::count_if(lines,
                                    [&](const std::string& line) {
                                        return line.starts_with(
                                            "  1 broken, their turns go to the next of their "
                                            "bucket: " +
                                            fixture.place(2));
                                    }),
              1);
    const auto replaced = samples_of(*source, 4);
    for (std::size_t b = 0; b < whole.size(); ++b)
        for (std::size_t i = 0; i < whole[b].size(); ++i)
            EXPECT_EQ(replaced[b][i], whole[b][i] == fixture.place(2) ? fixture.place(3) : whole[b][i]);
}

TEST(BrokenSamples, ABucketWithoutAnyOtherEndsTheRun) {
    for (const bool ahead : {true, false}) {
        Fixture fixture;
        fixture.ahead = ahead;
        for (int i = 0; i < 8; ++i) fixture.damage(i);
        const auto error = thrown_by([&] { (void)fixture.source()->next(); });
        EXPECT_EQ(error.code, Errc::broken_bucket) << ahead;
        EXPECT_TRUE(error.says("none of the 8 samples of bucket 64 x 64 of data set 'pictures' can be used"))
            << error.message;
    }
}

/// A disk that fails says nothing about a picture: nobody takes its turn.
TEST(BrokenSamples, AStoreThatFailsIsNoBrokenSample) {
    Fixture fixture;
    struct Failing : strata::Local {
        using Local::Local;
        [[nodiscard]] std::vector<std::byte> get(std::string_view key) const {
            if (key == "p5.png") throw strata::Error{Errc::transfer_failed, "the connection broke", "try again"};
            return Local::get(key);
        }
    };
    auto list = fixture.list();
    list.images[0].vae_cache_ondemand = true;
    strata::comm::SelfComm comm;
    const auto source = strata_test::prepared<PictureSource<strata_test::FakeRecipe, Failing>>(
        comm, list, fixture.codec, fixture.text, fixture.options);
    const auto error = thrown_by([&] {
        for (int i = 0; i < 2; ++i) (void)source->next();
    });
    EXPECT_EQ(error.code, Errc::transfer_failed);
    EXPECT_TRUE(error.says("sample '" + fixture.place(5) + "' of data set 'pictures': the connection broke"))
        << error.message;
}

}  // namespace
