// Latents are known by what their pictures hold: what is replaced is noticed, what is only moved is not encoded again.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/datasets/folder_place.hpp>
#include <strata/datasets/sample_index.hpp>

#include "../../support/counting_store.hpp"
#include "../../support/picture_source.hpp"
#include "../../support/pictures.hpp"

namespace {

using namespace strata::data;
using namespace strata::datasets;
using strata_test::CountingStore;
using strata_test::plain_png;
using strata_test::write_file;
namespace fs = std::filesystem;

constexpr std::uintmax_t file_bytes = 400;

/// A picture of one colour in a file of file_bytes: what follows the last chunk is not read.
std::vector<std::byte> padded(std::uint8_t red) {
    auto png = plain_png(64, 64, red, 0, 0);
    png.resize(file_bytes);
    return png;
}

/// 8 pictures and an index.
struct Fixture : strata_test::PictureSource {
    Fixture() {
        options.index_folder = folder.path() / "index";
        options.threads = 1;
        fs::remove_all(data());
        for (int i = 0; i < 8; ++i) {
            write_file(picture(i), padded(static_cast<std::uint8_t>(i * 20)));
            write_file(data() / ("p" + std::to_string(i) + ".txt"), "caption " + std::to_string(i));
        }
    }
    [[nodiscard]] fs::path picture(int i) const { return data() / ("p" + std::to_string(i) + ".png"); }
    [[nodiscard]] std::int64_t made() const { return open()->report().latents.made; }
    /// Of all pictures, in the order of their captions.
    [[nodiscard]] static std::vector<float> reds(Source& source) {
        std::vector<float> all(8);
        for (int b = 0; b < 2; ++b) {
            const auto batch = source.next();
            for (std::size_t i = 0; i < 4; ++i)
                all[static_cast<std::size_t>(batch.captions[i].back() - '0')] =
                    batch.latents_BCHW[static_cast<std::int64_t>(i)][0][0][0].item<float>();
        }
        return all;
    }
    /// All content hashes that the index knows.
    [[nodiscard]] std::size_t known() const {
        std::size_t count = 0;
        SampleIndex index{options.index_folder, "pictures", folder_place(data().string())};
        for (const IndexedPicture& one : index.take_pictures()) count += one.sample.content ? 1U : 0U;
        return count;
    }
};

float latent_of(int red) { return static_cast<float>(red) / 127.5F - 1; }

TEST(ContentIdentity, AnotherPictureOfEqualSizeAndDateIsEncoded) {
    const Fixture fixture;
    EXPECT_EQ(fixture.made(), 8);
    const auto date = fs::last_write_time(fixture.picture(3));
    // Renamed into the place of the other, as programs that write whole files do: another inode.
    write_file(fixture.picture(3), padded(201));
    fs::last_write_time(fixture.picture(3), date);
    ASSERT_EQ(fs::file_size(fixture.picture(3)), file_bytes);
    ASSERT_EQ(fs::last_write_time(fixture.picture(3)), date);
    auto source = fixture.open();
    EXPECT_EQ(source->report().latents.made, 1);
    EXPECT_NEAR(Fixture::reds(*source)[3], latent_of(201), 1e-4F);
    // The first one comes back, and so do its latents.
    write_file(fixture.picture(3), padded(60));
    fs::last_write_time(fixture.picture(3), date);
    source = fixture.open();
    EXPECT_EQ(source->report().latents.made, 0);
    EXPECT_NEAR(Fixture::reds(*source)[3], latent_of(60), 1e-4F);
}

TEST(ContentIdentity, AFileThatIsWrittenInPlaceWithItsDateIsEncoded) {
    const Fixture fixture;
    EXPECT_EQ(fixture.made(), 8);
    const strata::Local store{fixture.data()};
    const std::string before = store.head("p3.png")->version;
    const auto date = fs::last_write_time(fixture.picture(3));
    const auto other = padded(201);
    do {  // until the clock of the file system has moved on
        std::ofstream{fixture.picture(3), std::ios::binary}.write(reinterpret_cast<const char*>(other.data()),
                                                                  static_cast<std::streamsize>(other.size()));
        fs::last_write_time(fixture.picture(3), date);
    } while (store.head("p3.png")->version == before);
    EXPECT_EQ(fixture.made(), 1);
}

TEST(ContentIdentity, AnotherCaptionOfEqualSizeAndDateIsRead) {
    const Fixture fixture;
    (void)fixture.open();
    const auto file = fixture.data() / "p3.txt";
    const auto date = fs::last_write_time(file);
    write_file(file, "another 3");
    fs::last_write_time(file, date);
    const auto source = fixture.open();
    EXPECT_EQ(source->report().latents.made, 0);
    EXPECT_EQ(source->report().texts.made, 1);
    EXPECT_EQ(source->collection().sets()[0].samples[3].caption, "another 3");
}

TEST(ContentIdentity, WhatIsTouchedMovedOrCopiedIsNotEncodedAgain) {
    Fixture fixture;
    EXPECT_EQ(fixture.made(), 8);
    EXPECT_EQ(fixture.known(), 8U);
    for (int i = 0; i < 8; ++i)
        fs::last_write_time(fixture.picture(i), fs::file_time_type::clock::now() - std::chrono::hours{i + 1});
    EXPECT_EQ(fixture.made(), 0) << "touched";
    EXPECT_EQ(fixture.known(), 8U) << "with the new versions";

    auto list = fixture.list();
    const auto made_in = [&](const fs::path& place) {
        list.images[0].instance_data_dir = place;
        strata::comm::SelfComm comm;
        return strata_test::prepared<Fixture::Source>(comm, list, fixture.codec, fixture.text, fixture.options)
            ->report()
            .latents.made;
    };
    fs::rename(fixture.data(), fixture.folder.path() / "moved");
    EXPECT_EQ(made_in(fixture.folder.path() / "moved"), 0) << "moved";
    fs::copy(fixture.folder.path() / "moved", fixture.folder.path() / "copy");
    fixture.options.index_folder = fixture.folder.path() / "another index";
    EXPECT_EQ(made_in(fixture.folder.path() / "copy"), 0) << "copied, and used by another run";
    fs::rename(fixture.folder.path() / "copy" / "p0.png", fixture.folder.path() / "copy" / "z.png");
    fs::rename(fixture.folder.path() / "copy" / "p0.txt", fixture.folder.path() / "copy" / "z.txt");
    EXPECT_EQ(made_in(fixture.folder.path() / "copy"), 0) << "renamed";
    EXPECT_EQ(*fixture.codec->calls, 8);
}

TEST(ContentIdentity, AStartWithAnIndexReadsNoPictureAndOneWithoutReadsAllAndEncodesNone) {
    const Fixture fixture;
    static CountingStore::Calls* counted = nullptr;
    struct Counted : CountingStore {  // shares its counters with all others
        explicit Counted(const fs::path& root) : CountingStore{root} {}
        [[nodiscard]] std::vector<std::byte> get(std::string_view key) const {
            if (counted != nullptr) ++counted->reads[std::string{key}];
            return Local::get(key);
        }
    };
    CountingStore::Calls calls;
    counted = &calls;
    const auto pictures_read = [&] {
        calls.reads.clear();
        strata::comm::SelfComm comm;
        (void)strata_test::prepared<PictureSource<strata_test::FakeRecipe, Counted>>(
            comm, fixture.list(), fixture.codec, fixture.text, fixture.options);
        int count = 0;
        for (const auto& [key, reads] : calls.reads) count += key.ends_with(".png") ? reads : 0;
        return count;
    };
    EXPECT_EQ(pictures_read(), 8) << "read once, hashed and encoded of the same bytes";
    EXPECT_EQ(pictures_read(), 0);
    fs::remove_all(fixture.options.index_folder);
    EXPECT_EQ(pictures_read(), 8) << "the index is lost";
    EXPECT_EQ(pictures_read(), 0);
    EXPECT_EQ(*fixture.codec->calls, 8);
    counted = nullptr;
}

TEST(ContentIdentity, AnInterruptedStartKeepsWhatItFoundOut) {
    Fixture fixture;
    bool stop = false;
    fixture.options.vae_batch_size = 1;
    fixture.options.stopped = [&] { return stop; };
    fixture.options.progress = [&](std::string_view what, std::int64_t done, std::int64_t) {
        stop = what == "latents" && done == 3;
    };
    EXPECT_EQ(strata_test::thrown_by([&] { (void)fixture.open(); }).code, strata::Errc::interrupted);
    EXPECT_EQ(fixture.known(), static_cast<std::size_t>(*fixture.codec->calls));
}

TEST(ContentIdentity, WhatIsFoundOutAtVisitsIsKeptWithEveryCheckpointAndAtTheEndOfARun) {
    Fixture fixture;
    auto list = fixture.list();
    list.images[0].vae_cache_ondemand = true;
    strata::comm::SelfComm comm;
    {
        const auto source =
            strata_test::prepared<Fixture::Source>(comm, list, fixture.codec, fixture.text, fixture.options);
        EXPECT_EQ(fixture.known(), 0U) << "headers only";
        (void)source->next();
        source->remember(comm);  // as with a checkpoint
        EXPECT_GE(fixture.known(), 4U);
        source->seek(0);
        (void)Fixture::reds(*source);
        (void)source->closing_lines(comm);
        EXPECT_EQ(fixture.known(), 8U);
        EXPECT_EQ(Fixture::reds(*source).size(), 8U) << "and the source goes on";
    }
    const auto again = strata_test::prepared<Fixture::Source>(comm, list, fixture.codec, fixture.text, fixture.options);
    (void)Fixture::reds(*again);
    EXPECT_EQ(*fixture.codec->calls, 8);
}

TEST(ContentIdentity, EqualPicturesShareAnEntry) {
    const Fixture fixture;
    for (int i = 1; i < 8; ++i) write_file(fixture.picture(i), padded(0));
    auto source = fixture.open();
    EXPECT_EQ(fixture.latent_files().size(), 1U);
    EXPECT_LE(*fixture.codec->calls, 2)
        << "once in each of two batches of four, where both were read before one was kept";
    for (const float red : Fixture::reds(*source)) EXPECT_NEAR(red, -1, 1e-4F);
}

/// Where the index knows what they hold: however batches are cut.
TEST(ContentIdentity, EqualPicturesAreEncodedOnce) {
    Fixture fixture;
    for (int i = 1; i < 8; ++i) write_file(fixture.picture(i), padded(i % 4 == 3 ? 60 : 0));
    (void)fixture.open();
    ASSERT_EQ(fixture.latent_files().size(), 2U);
    for (const std::int64_t together : {1, 3}) {
        fs::remove_all(fixture.folder.path() / "vae");
        *fixture.codec->calls = 0;
        fixture.options.vae_batch_size = together;
        const auto source = fixture.open();
        EXPECT_EQ(*fixture.codec->calls, 2);
        EXPECT_EQ(source->report().latents.made, 2);
        const auto reds = Fixture::reds(*source);
        for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(reds[i], latent_of(i % 4 == 3 ? 60 : 0), 1e-4F) << i;
    }
}

TEST(ContentIdentity, APictureThatIsReplacedWhileARunGoesOnNeverGetsTheLatentsOfTheOther) {
    Fixture fixture;
    fixture.options.cache_memory_bytes = 0;
    fixture.options.prefetch_batches = 1;
    const auto source = fixture.open();
    for (const auto& file : fixture.latent_files()) fs::remove(file);
    for (int i = 0; i < 8; ++i) write_file(fixture.picture(i), padded(static_cast<std::uint8_t>(200 + i)));
    source->seek(0);
    const auto reds = Fixture::reds(*source);
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(reds[static_cast<std::size_t>(i)], latent_of(200 + i), 1e-4F);
    // What was made is known by what the files hold now: nothing is left for the next start to do.
    EXPECT_EQ(fixture.made(), 0);
}

}  // namespace
