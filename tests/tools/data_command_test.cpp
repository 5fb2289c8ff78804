// `strata data` as a person and a script meet it: on pictures made here, with wrong words, interrupted, from a bucket.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/comm/self_comm.hpp>
#include <strata/datasets/collection.hpp>
#include <strata/s3/s3.hpp>
#include <strata/storage/local.hpp>

#include "../support/pictures.hpp"
#include "../support/s3_server.hpp"
#include "../support/temporary_folder.hpp"
#include "run_tool.hpp"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using strata_test::Outcome;
using strata_test::plain_png;
using strata_test::Running;
using strata_test::text_of;

/// 12 square pictures and 6 wide ones, with captions of which two are equal; four others that are skipped.
struct DataCommand : testing::Test {
    strata_test::TemporaryFolder temporary;
    fs::path folder = temporary.path();
    fs::path pictures = folder / "pictures";
    int pictures_made_ = 0;

    void SetUp() override {
        for (int i = 0; i < 18; ++i)
            add("p" + std::to_string(10 + i), i < 12 ? 64 : 128, 64, "caption " + std::to_string(std::max(i, 1)));
        add("bare", 64, 64, "");
        add("small", 20, 40, "a small one");
        add("narrow", 30, 400, "a narrow one");
        add("cut", 64, 64, "half a header");
        fs::resize_file(pictures / "cut.png", 20);
        write_list("");
        write_config("");
    }
    void add(const std::string& stem, int width, int height, const std::string& caption) {
        fs::create_directories(pictures);
        // Of a colour of its own: pictures that hold the same are one to a cache.
        const auto bytes = plain_png(width, height, 10, static_cast<std::uint8_t>(pictures_made_++), 30);
        std::ofstream{pictures / (stem + ".png"), std::ios::binary}.write(reinterpret_cast<const char*>(bytes.data()),
                                                                          static_cast<std::streamsize>(bytes.size()));
        if (!caption.empty()) std::ofstream{pictures / (stem + ".txt")} << caption << '\n';
    }
    /// `keys` go into the entry of the pictures, each behind a comma; `entries` behind the others.
    void write_list(const std::string& keys, const std::string& entries = "") {
        std::ofstream{folder / "list.json"}
            << R"([{"id": "pictures", "type": "local", "resolution": 64, "minimum_image_size": 48,)"
            << R"( "instance_data_dir": ")" << pictures.string() << R"(", "cache_dir_vae": ")"
            << (folder / "vae").string() << "\"" << keys
            << R"(}, {"id": "texts", "type": "local", "dataset_type": "text_embeds", "cache_dir": ")"
            << (folder / "texts").string() << "\"}" << entries << "]";
    }
    void write_config(const std::string& keys) {
        std::ofstream{folder / "config.json"} << R"({"data_backend_config": ")" << (folder / "list.json").string()
                                              << R"(", "output_dir": ")" << (folder / "output").string()
                                              << R"(", "aspect_bucket_alignment": 16, "train_batch_size": 4)" << keys
                                              << "}";
    }
    Outcome strata(std::vector<std::string> words) {
        words.insert(words.begin(), STRATA_TOOL);
        return Running{words, folder}.wait();
    }
    /// A command on the configuration, that ends well, as JSON.
    json asked(const std::string& command, std::vector<std::string> options = {}) {
        options.insert(options.begin(), {"data", command, (folder / "config.json").string(), "--json"});
        const Outcome outcome = strata(options);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(outcome.err, "");
        return json::parse(outcome.out, nullptr, false);
    }
    std::string told(const std::string& command, std::vector<std::string> options = {}) {
        options.insert(options.begin(), {"data", command, (folder / "config.json").string()});
        const Outcome outcome = strata(options);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        return outcome.out;
    }
    void expect_refusal(const Outcome& outcome, int status, const std::vector<std::string>& words) {
        EXPECT_EQ(outcome.status, status) << outcome.out << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << "one line is enough:\n"
                                                                               << outcome.err;
        for (const std::string& word : words)
            EXPECT_NE(outcome.err.find(word), std::string::npos) << word << " in " << outcome.err;
    }
};

TEST_F(DataCommand, NeedsNeitherLibtorchNorMpi) {
    ::setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
    const Outcome outcome = strata({});
    ::unsetenv("LD_TRACE_LOADED_OBJECTS");
    EXPECT_NE(outcome.out.find("libsqlite3"), std::string::npos) << "the loader lists libraries: " << outcome.out;
    for (const char* name : {"torch", "libc10", "libmpi"})
        EXPECT_EQ(outcome.out.find(name), std::string::npos) << outcome.out;
}

TEST_F(DataCommand, HelpIsOnStandardOutput) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"--help"}, {"help"}, {"data", "--help"}, {"data", "plan", "--help"}, {"--version"}}) {
        const Outcome outcome = strata(words);
        EXPECT_EQ(outcome.status, 0);
        EXPECT_EQ(outcome.err, "");
        EXPECT_NE(outcome.out.find("strata"), std::string::npos);
    }
    const std::string help = strata({"data", "--help"}).out;
    for (const char* option : {"--index", "--ranks", "--batches", "--json", "--model", "--names"})
        EXPECT_NE(help.find(option), std::string::npos) << option;
}

TEST_F(DataCommand, WordsThatAreNotUnderstoodSayWhatToTypeInstead) {
    const std::string list = (folder / "list.json").string();
    const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
        {{}, "strata --help"},
        {{"dta"}, "did you mean 'data'"},
        {{"evaluate"}, "use one of config, codegen, data"},
        {{"data"}, "scan FILE"},
        {{"data", "stat", list}, "did you mean 'stats'"},
        {{"data", list}, "scan FILE"},
        {{"data", "scan"}, "needs a FILE"},
        {{"data", "scan", list, list}, "takes one FILE"},
        {{"data", "scan", list, "--jsn"}, "did you mean '--json'"},
        {{"data", "scan", list, "--gpu", "1"}, "'strata data scan --help'"},
        {{"data", "scan", list, "--json=yes"}, "type --json alone"},
        {{"data", "scan", list, "--threads"}, "type --threads N"},
        {{"data", "scan", list, "--index="}, "type --index FOLDER"},
        {{"data", "plan", list, "--ranks", "0"}, "from 1 to 65536"},
        {{"data", "plan", list, "--ranks", "2x"}, "--ranks is '2x'"},
        {{"data", "plan", list, "--seed", "1", "--seed=2"}, "--seed is given twice"},
        {{"data", "stats", list, "--model", "flx"}, "did you mean 'flux'"},
        {{"data", "stats", list, "--model", "imagen"}, "small_flux, flux, sdxl, sd15"},
    };
    for (const auto& [words, fix] : wrong) expect_refusal(strata(words), 2, {"[ST2601]", "Fix: ", fix});
    EXPECT_FALSE(fs::exists(folder / "output"));
}

TEST_F(DataCommand, WrongInputIsThatOfTraining) {
    expect_refusal(strata({"data", "scan", (folder / "none.json").string()}), 1, {"[ST2101]", "none.json"});
    std::ofstream{folder / "number.json"} << "3";
    expect_refusal(strata({"data", "scan", (folder / "number.json").string()}), 1,
                   {"[ST2103]", "neither a dataset list"});
    write_config(R"(, "train_batch_sice": 4)");
    expect_refusal(strata({"data", "plan", (folder / "config.json").string()}), 1, {"[ST2102]", "'train_batch_size'"});
    write_config("");
    write_list(R"(, "repeats": -1)");
    expect_refusal(strata({"data", "plan", (folder / "config.json").string()}), 1, {"[ST2103]", "[0].repeats"});
    write_list("");
    fs::rename(pictures, folder / "elsewhere");
    expect_refusal(strata({"data", "scan", (folder / "config.json").string()}), 1, {"[ST2201]", pictures.string()});
}

TEST_F(DataCommand, ScanSaysWhatIsThereAndWhatIsSkippedAndWhy) {
    const json all = asked("scan");
    ASSERT_EQ(all.at("data_sets").size(), 1U);
    const json& set = all.at("data_sets").at(0);
    EXPECT_EQ(set.at("id"), "pictures");
    EXPECT_EQ(set.at("found"), 22);
    EXPECT_EQ(set.at("used"), 18);
    EXPECT_EQ(set.at("examined"), 22);
    std::map<std::string, std::string> reasons;  // to the file and the detail
    for (const json& one : set.at("skipped")) {
        EXPECT_EQ(one.at("count"), 1);
        reasons[one.at("reason")] = one.at("named").at(0).at("place").get<std::string>() + " " +
                                    one.at("named").at(0).at("detail").get<std::string>();
    }
    EXPECT_EQ(reasons["no caption"], (pictures / "bare.png").string() + " ");
    EXPECT_EQ(reasons["below the minimum size"], (pictures / "small.png").string() + " 20 x 40 pixels");
    EXPECT_EQ(reasons["outside the aspect ratios"], (pictures / "narrow.png").string() + " 30 x 400 pixels");
    EXPECT_TRUE(reasons["unreadable"].starts_with((pictures / "cut.png").string() + " ")) << reasons["unreadable"];
    EXPECT_EQ(reasons.size(), 4U);
    ASSERT_EQ(set.at("buckets").size(), 2U);
    EXPECT_EQ(set.at("buckets").at(0).at("pictures"), 12);
    EXPECT_FALSE(all.contains("caches") || all.contains("plan"));
    EXPECT_TRUE(all.at("s3").is_null());

    const std::string text = told("scan", {"--names", "0"});
    EXPECT_NE(text.find("22 pictures found: 18 used, 4 skipped"), std::string::npos) << text;
    EXPECT_NE(text.find("skipped, no caption: 1\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("bare.png"), std::string::npos) << text;
    EXPECT_NE(told("scan").find((pictures / "narrow.png").string() + " (30 x 400 pixels)\n"), std::string::npos);
}

TEST_F(DataCommand, PairsAreShownAndWhatHasNone) {
    write_list(
        R"(, "conditioning_data": "masks")",
        R"(, {"id": "masks", "dataset_type": "conditioning", "conditioning_type": "mask", "instance_data_dir": ")" +
            (folder / "masks").string() + "\"}");
    fs::create_directories(folder / "masks");
    for (int i = 0; i < 16; ++i)
        fs::copy_file(pictures / "p10.png", folder / "masks" / ("p" + std::to_string(10 + i) + ".png"));
    fs::copy_file(pictures / "p10.png", folder / "masks" / "other.png");
    const json all = asked("scan");
    const json& set = all.at("data_sets").at(0);
    EXPECT_EQ(set.at("used"), 16);
    EXPECT_EQ(set.at("conditioning_data"), json::array({"masks"}));
    ASSERT_EQ(all.at("data_sets").size(), 1U);
    ASSERT_EQ(all.at("conditioning").size(), 1U);
    const json& masks = all.at("conditioning").at(0);
    EXPECT_EQ(masks.at("dataset_type"), "conditioning");
    EXPECT_EQ(masks.at("found"), 17);
    EXPECT_EQ(masks.at("used"), 16);
    const std::string text = told("scan");
    EXPECT_NE(text.find("16 used, 6 skipped\n  each with a conditioning picture of 'masks'\n"), std::string::npos)
        << text;
    EXPECT_NE(text.find("skipped, without a conditioning picture: 2\n    " + (pictures / "p26.png").string() +
                        " (no 'p26' in data set 'masks')\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("conditioning data set 'masks': " + (folder / "masks").string()), std::string::npos) << text;
    EXPECT_NE(text.find("17 pictures found: 16 used, 0 skipped, 1 of no picture that is used\n"), std::string::npos)
        << text;
    for (const char* command : {"stats", "plan"}) EXPECT_NE(told(command).find("'masks'"), std::string::npos);
    fs::rename(folder / "masks", folder / "gone");
    expect_refusal(strata({"data", "scan", (folder / "config.json").string()}), 1,
                   {"[ST2201]", (folder / "masks").string()});
    fs::create_directories(folder / "masks");
    fs::copy_file(pictures / "p10.png", folder / "masks" / "other.png");
    expect_refusal(strata({"data", "scan", (folder / "config.json").string()}), 1, {"[ST2118]", "'p10'"});
}

/// A terminal must not be cleared, a line not forged and an ending not hidden by what somebody called a file.
TEST_F(DataCommand, NamesFromOutsideAreShownAndNotObeyed) {
    const std::string turned = "\xe2\x80\xae";  // U+202E: what follows is written from right to left
    const std::string bad = "\x1b[2Jgone\n[ST2001] forged\r" + turned + "gnp\xff";
    const std::string shown = "\\x1b[2Jgone\\n[ST2001] forged\\r\\u202egnp\\xff";
    add("used" + bad, 64, 64, "a caption " + bad);
    add("bare" + bad, 64, 64, "");
    add("umlaut-\xc3\xbc", 64, 64, "");
    std::string list = text_of(folder / "list.json");
    const std::string id = "\"id\": \"pictures\"";
    list.replace(list.find(id), id.size(), R"("id": "pictures \u001b[31m\u009b1m\u202e")");
    std::ofstream{folder / "list.json"} << list;
    for (const char* command : {"scan", "stats", "plan"}) {
        const std::string text = told(command, {"--batches", "20", "--names", "100"});
        EXPECT_NE(text.find("data set 'pictures \\x1b[31m\\u009b1m\\u202e'"), std::string::npos) << text;
        EXPECT_NE(text.find("bare" + shown + ".png\n"), std::string::npos) << text;
        EXPECT_NE(text.find("umlaut-\xc3\xbc.png"), std::string::npos) << text;
        for (const std::string& raw :
             {std::string{"\x1b"}, std::string{"\r"}, turned, std::string{"\xff"}, std::string{"\xc2\x9b"}})
            EXPECT_EQ(text.find(raw), std::string::npos) << command << ":\n" << text;
        EXPECT_EQ(text.find("\n[ST2001]"), std::string::npos) << text;
        if (command == std::string{"plan"}) {
            EXPECT_NE(text.find("    used" + shown + ".png\n"), std::string::npos) << text;
        }
    }
    expect_refusal(strata({"data", "scan", (folder / ("no" + bad)).string()}), 1, {"[ST2101]", "no" + shown});
    EXPECT_EQ(strata({"data", "scan", "x" + bad}).err.find('\x1b'), std::string::npos);
}

TEST_F(DataCommand, NamesAreLimitedForEachReasonAndTheRestIsCounted) {
    for (int i = 0; i < 5; ++i) add("bare" + std::to_string(i), 64, 64, "");
    const std::string text = told("scan", {"--names", "2"});
    EXPECT_NE(text.find("skipped, no caption: 6\n"), std::string::npos) << text;
    EXPECT_NE(text.find("bare0.png"), std::string::npos) << text;
    EXPECT_EQ(text.find("bare1.png"), std::string::npos) << text;
    EXPECT_NE(text.find("and 4 more"), std::string::npos) << text;
    const json all = asked("scan", {"--names", "2"});
    const json& skipped = all.at("data_sets").at(0).at("skipped").at(0);
    EXPECT_EQ(skipped.at("count"), 6);
    EXPECT_EQ(skipped.at("named").size(), 2U);
}

TEST_F(DataCommand, WhatWasFoundIsKeptInTheIndexOfTheConfiguration) {
    (void)asked("scan");
    EXPECT_TRUE(fs::exists(folder / "output/index/pictures.sqlite"));
    add("new", 64, 64, "a new one");
    for (const char* command : {"stats", "plan", "scan"}) {
        const json set = asked(command).at("data_sets").at(0);
        EXPECT_EQ(set.at("found"), 23);
        EXPECT_EQ(set.at("examined"), command == std::string{"stats"} ? 1 : 0) << command;
    }
    // A list has no output folder: nothing is written unless a folder is named.
    const std::string list = (folder / "list.json").string();
    const fs::path before = folder / "before";
    fs::rename(folder / "output", before);
    EXPECT_NE(strata({"data", "scan", list}).out.find("index: none"), std::string::npos);
    EXPECT_FALSE(fs::exists(folder / "output"));
    EXPECT_NE(strata({"data", "scan", list, "--index=" + (folder / "mine").string()}).out.find("23 examined now"),
              std::string::npos);
    EXPECT_TRUE(fs::exists(folder / "mine/pictures.sqlite"));
    EXPECT_EQ(asked("scan", {"--index", (folder / "mine").string()}).at("data_sets").at(0).at("examined"), 0);
}

TEST_F(DataCommand, StatsCountsPicturesCaptionsAndBuckets) {
    const json set = asked("stats").at("data_sets").at(0);
    const json& sizes = set.at("pictures");
    EXPECT_EQ(sizes.at("count"), 18);
    EXPECT_EQ(sizes.at("smallest"), (json{{"width", 64}, {"height", 64}}));
    EXPECT_EQ(sizes.at("median"), (json{{"width", 64}, {"height", 64}}));
    EXPECT_EQ(sizes.at("largest"), (json{{"width", 128}, {"height", 64}}));
    EXPECT_EQ(sizes.at("aspect_ratio").at("median"), 1.0);
    EXPECT_EQ(sizes.at("aspect_ratio").at("largest"), 2.0);
    std::uintmax_t bytes = 0;
    for (int i = 10; i < 28; ++i) bytes += fs::file_size(pictures / ("p" + std::to_string(i) + ".png"));
    EXPECT_EQ(sizes.at("bytes"), bytes);
    EXPECT_EQ(set.at("captions").at("found"), 18);
    EXPECT_EQ(set.at("captions").at("different"), 17);
    EXPECT_EQ(set.at("captions").at("characters"), (json{{"smallest", 9.0}, {"median", 9.0}, {"largest", 10.0}}));
    const json& buckets = set.at("buckets");
    ASSERT_EQ(buckets.size(), 2U);
    EXPECT_EQ(buckets.at(0).at("pictures"), 12);
    EXPECT_DOUBLE_EQ(buckets.at(0).at("share"), 12.0 / 18);
    EXPECT_EQ(buckets.at(1).at("pictures"), 6);
    EXPECT_GT(buckets.at(1).at("width"), buckets.at(1).at("height"));
    const std::string text = told("stats");
    for (const char* words :
         {"width x height    ", "64 x 64    64 x 64   128 x 64", "18 found, 17 different ones to embed", "66.7 %"})
        EXPECT_NE(text.find(words), std::string::npos) << words << " in\n" << text;
}

/// The numbers of the models are written down here once more: 64 x 64 pixels and 17 captions and the empty one.
TEST_F(DataCommand, StatsForeseesTheCachesOfAModel) {
    const auto tensors = [&](const std::string& model, std::int64_t captions = 18) {
        const json caches = asked("stats", {"--model", model}).at("caches");
        EXPECT_EQ(caches.at("latents").at(0).at("entries"), 18);
        EXPECT_EQ(caches.at("captions").at(0).at("entries"), captions);
        EXPECT_EQ(caches.at("together").at("entries"), 18 + captions);
        return std::pair{caches.at("latents").at(0).at("bytes").get<std::int64_t>(),
                         caches.at("captions").at(0).at("bytes").get<std::int64_t>()};
    };
    const json buckets = asked("stats").at("data_sets").at(0).at("buckets");
    const std::int64_t wide =
        buckets.at(1).at("width").get<std::int64_t>() * buckets.at(1).at("height").get<std::int64_t>();
    const std::int64_t blocks = 12 * (64 / 8) * (64 / 8) + 6 * wide / 64;
    const auto expect_above = [](std::int64_t bytes, std::int64_t of_tensors) {  // headers of 17 or 18 files
        EXPECT_GT(bytes, of_tensors + 17 * 150);
        EXPECT_LT(bytes, of_tensors + 18 * 600);
    };
    const auto [small_latents, small_texts] = tensors("small_flux");
    expect_above(small_latents, blocks * 16 * 4);
    expect_above(small_texts, 18 * (8 * 128 + 128) * 4);
    const auto [flux_latents, flux_texts] = tensors("flux");
    expect_above(flux_latents, blocks * 16 * 2);
    expect_above(flux_texts, 18 * ((512 * 4096 + 768) * 2 + 512));
    const auto [sdxl_latents, sdxl_texts] = tensors("sdxl", 17);  // dropped captions are zeros
    expect_above(sdxl_latents, blocks * 4 * 2);
    expect_above(sdxl_texts, 17 * (77 * 2048 + 1280) * 2);
    const auto [sd15_latents, sd15_texts] = tensors("sd15");
    expect_above(sd15_latents, blocks * 4 * 2);
    expect_above(sd15_texts, 18 * 77 * 768 * 2);
    EXPECT_NE(told("stats", {"--model", "sdxl"}).find("model sdxl, bf16"), std::string::npos);
    EXPECT_NE(told("stats", {"--model", "sdxl"}).find("A dropped caption is zeros"), std::string::npos);

    EXPECT_NE(told("stats").find("model small_flux, fp32"), std::string::npos);
    EXPECT_NE(told("stats").find("compress_disk_cache makes"), std::string::npos);
    write_list(R"(, "compress_disk_cache": true)");
    EXPECT_NE(told("stats").find("with it files are smaller"), std::string::npos);
    write_list(R"(, "vae_cache_disable": true)");
    const json none = asked("stats").at("caches").at("latents").at(0);
    EXPECT_EQ(none.at("made"), "none");
    EXPECT_EQ(none.at("entries"), 0);
    EXPECT_EQ(none.at("bytes"), 0);
}

TEST_F(DataCommand, StatsForeseesExactlyWhatTrainingWrites) {
#ifdef STRATA_TRAIN_PICTURES
    write_config(R"(, "max_train_steps": 1, "learning_rate": 1e-3, "validation_resolution": 32)");
    const json caches = asked("stats").at("caches");
    const Outcome trained = Running{{STRATA_TOOL, "launch", "-n", "1", "--", STRATA_TRAIN_PICTURES, "--config",
                                     (folder / "config.json").string(), "--output", (folder / "output").string()},
                                    folder}
                                .wait();
    ASSERT_EQ(trained.status, 0) << trained.out << trained.err;
    for (const auto& [cache, place] : {std::pair{"latents", "vae"}, std::pair{"captions", "texts"}}) {
        std::uintmax_t entries = 0;
        std::uintmax_t bytes = 0;
        for (const auto& entry : fs::recursive_directory_iterator{folder / place}) {
            if (!entry.is_regular_file()) continue;
            ++entries;
            bytes += entry.file_size();
        }
        EXPECT_EQ(caches.at(cache).at(0).at("entries"), entries) << cache;
        EXPECT_EQ(caches.at(cache).at(0).at("bytes"), bytes) << cache;
    }
    EXPECT_EQ(asked("plan").at("data_sets").at(0).at("examined"), 0) << "training and the command share the index";
#else
    GTEST_SKIP() << "the example that trains was not built";
#endif
}

TEST_F(DataCommand, PlanCountsStepsAndListsWhatTrainingWillSee) {
    write_list(R"(, "repeats": 1)");
    const json plan =
        asked("plan", {"--ranks", "2", "--gradient-accumulation-steps", "1", "--train-batch-size=4", "--batches", "5"})
            .at("plan");
    EXPECT_EQ(plan.at("effective_batch"), 8);
    EXPECT_EQ(plan.at("first_epoch"), (json{{"micro_batches", 5}, {"optimizer_steps", 5}}));
    EXPECT_EQ(plan.at("round"), (json{{"turns", 36}, {"filled_up", 4}, {"batches", 5}}));
    EXPECT_EQ(plan.at("data_sets").at(0).at("steps_of_first_epoch"), 5);
    EXPECT_TRUE(plan.at("steps_in_all").is_null());
    EXPECT_FALSE(plan.at("epochs_differ"));
    ASSERT_EQ(plan.at("batches").size(), 5U);
    std::map<std::string, int> turns;
    for (std::size_t i = 0; i < 5; ++i) {
        const json& batch = plan.at("batches").at(i);
        EXPECT_EQ(batch.at("step"), i + 1);
        EXPECT_EQ(batch.at("epoch"), 1);
        EXPECT_EQ(batch.at("samples").size(), 8U);
        for (const json& key : batch.at("samples")) ++turns[key.get<std::string>()];
    }
    EXPECT_EQ(turns.size(), 18U);
    for (const auto& [key, count] : turns) EXPECT_GE(count, 2) << key;

    const std::string text = told("plan", {"--ranks", "2", "--batches", "1"});
    EXPECT_NE(text.find("effective batch: 8 samples = train_batch_size 4 x 2 ranks x gradient_accumulation_steps 1\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("first epoch: 5 optimizer steps of 8 samples\n"), std::string::npos) << text;
    EXPECT_NE(text.find("turns of a round: 36, and 4 more that fill up last batches (10.0 % of all)"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("step 1: epoch 1, data set 'pictures', "), std::string::npos) << text;
    EXPECT_NE(plan, asked("plan", {"--ranks", "2", "--seed", "7", "--batches", "5"}).at("plan"))
        << "another seed, another order";

    // 12 squares and 6 wide ones.
    write_list("");
    const std::string uneven = told("plan", {"--gradient-accumulation-steps", "2", "--train-batch-size", "3"});
    EXPECT_NE(uneven.find("first epoch: 3 optimizer steps of 6 samples, each in 2 micro-batches of 3 samples\n"),
              std::string::npos)
        << uneven;
    const std::string rest = told("plan", {"--gradient-accumulation-steps", "1", "--train-batch-size", "4"});
    EXPECT_NE(rest.find("first epoch: 5 optimizer steps of 4 samples\n"), std::string::npos) << rest;
    const std::string open = told("plan", {"--gradient-accumulation-steps", "4", "--train-batch-size", "1"});
    EXPECT_NE(open.find("first epoch: 5 optimizer steps of 4 samples, each in 4 micro-batches of 1 sample\n"),
              std::string::npos)
        << open;
}

TEST_F(DataCommand, ABucketThatIsTooSmallEndsThePlanWithTheErrorOfTraining) {
    const auto config = strata::config::load_trainer_config(folder / "config.json");
    strata::comm::SelfComm comm;
    const auto list = strata::config::load_datasets(config.data_backend_config, config.image_defaults());
    strata::datasets::Stores<strata::Local> stores{list};
    auto collection = strata::datasets::discover_all(comm, list, stores, {config.aspect_bucket_alignment}, {});
    const auto thrown = strata_test::thrown_by([&] { collection.arrange({4, 2, 1}, 42, false); });
    ASSERT_EQ(thrown.code, strata::Errc::small_bucket);

    const std::string file = (folder / "config.json").string();
    const Outcome outcome = strata({"data", "plan", file, "--ranks", "2"});
    expect_refusal(outcome, 1, {"[ST2203]"});
    EXPECT_EQ(outcome.err, thrown.message + "\n");

    const json plan = asked("plan", {"--ranks", "2", "--allow-dataset-oversubscription"});
    const json& buckets = plan.at("data_sets").at(0).at("buckets");
    EXPECT_EQ(buckets.at(0).at("repeats"), 0);
    EXPECT_EQ(buckets.at(1).at("repeats"), 1);
    EXPECT_EQ(buckets.at(1).at("repeats_asked"), 0);
    const std::string text = told("plan", {"--ranks", "2", "--allow-dataset-oversubscription"});
    EXPECT_NE(text.find("repeats raised from 0 to hold an effective batch"), std::string::npos) << text;
    write_config(R"(, "allow_dataset_oversubscription": true)");
    EXPECT_EQ(strata({"data", "plan", file, "--ranks", "2"}).status, 0);
}

TEST_F(DataCommand, NothingThatCanBeUsedIsAnErrorOfThePlanOnly) {
    for (int i = 10; i < 28; ++i) fs::remove(pictures / ("p" + std::to_string(i) + ".txt"));
    expect_refusal(strata({"data", "plan", (folder / "config.json").string()}), 1,
                   {"[ST2201]", "none of the 22 pictures"});
    const json set = asked("stats").at("data_sets").at(0);
    EXPECT_EQ(set.at("used"), 0);
    EXPECT_EQ(set.at("pictures").at("count"), 0);
    EXPECT_TRUE(set.at("buckets").empty());
    EXPECT_NE(told("stats").find("22 pictures found: 0 used, 22 skipped"), std::string::npos);
}

TEST_F(DataCommand, EvalSetsAndSchedulesAreSaid) {
    const fs::path more = folder / "more";
    fs::create_directories(more);
    fs::copy_file(pictures / "p10.png", more / "a.png");
    write_list(
        R"(, "end_epoch": 2, "max_num_samples": 16)",
        R"(, {"id": "check", "type": "local", "dataset_type": "eval", "caption_strategy": "filename", "resolution": 64, "instance_data_dir": ")" +
            more.string() + R"(", "cache_dir_vae": ")" + (folder / "vae2").string() + "\"}");
    const json all = asked("plan", {"--train-batch-size", "1", "--gradient-accumulation-steps", "3"});
    ASSERT_EQ(all.at("data_sets").size(), 2U);
    EXPECT_EQ(all.at("data_sets").at(0).at("used"), 16);
    EXPECT_EQ(all.at("data_sets").at(1).at("dataset_type"), "eval");
    EXPECT_EQ(all.at("data_sets").at(1).at("found"), 1);
    EXPECT_FALSE(all.at("data_sets").at(1).contains("buckets"));
    EXPECT_EQ(all.at("plan").at("steps_in_all"), 12);
    EXPECT_TRUE(all.at("plan").at("epochs_differ"));
    const std::string text = told("plan", {"--train-batch-size", "1", "--gradient-accumulation-steps", "3"});
    EXPECT_NE(text.find("2 left out by max_num_samples"), std::string::npos) << text;
    EXPECT_NE(text.find("No data set takes part any more after step 12.\n"), std::string::npos) << text;
    EXPECT_NE(text.find("eval data set 'check'"), std::string::npos) << text;
    EXPECT_EQ(asked("stats").at("caches").at("latents").size(), 1U);
}

TEST_F(DataCommand, DeletesNothing) {
    write_list(R"(, "scan_for_errors": true, "delete_problematic_images": true)");
    fs::resize_file(pictures / "p10.png", fs::file_size(pictures / "p10.png") - 30);
    const std::string text = told("scan");
    EXPECT_NE(text.find("skipped, unreadable: 2\n"), std::string::npos) << text;
    EXPECT_NE(text.find("this command deletes nothing"), std::string::npos) << text;
    EXPECT_TRUE(fs::exists(pictures / "p10.png"));
    EXPECT_TRUE(fs::exists(pictures / "cut.png"));
}

TEST_F(DataCommand, NamesInNoEncodingDoNotEndTheJson) {
    add("bare \xFF", 64, 64, "");
    const json all = asked("scan");
    ASSERT_TRUE(all.is_object());
    EXPECT_EQ(all.at("data_sets").at(0).at("found"), 23);
}

/// The dataset list is a named pipe: the command has begun when it opens it, and cannot go on before it has read it.
TEST_F(DataCommand, CtrlCEndsItClearlyAndKeepsTheIndex) {
    (void)asked("scan");
    add("new", 64, 64, "a new one");
    const fs::path list = folder / "list.json";
    const std::string text = text_of(list);
    fs::remove(list);
    ASSERT_EQ(::mkfifo(list.c_str(), 0600), 0);
    Running run{{STRATA_TOOL, "data", "scan", (folder / "config.json").string()}, folder};
    int writing = -1;
    while (writing < 0 && !run.has_ended()) {
        writing = ::open(list.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (writing < 0) std::this_thread::yield();
    }
    run.signal(SIGINT);
    EXPECT_EQ(::write(writing, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(writing);
    const fs::path index = folder / "output/index";
    expect_refusal(run.wait(), 130, {"[ST2604]", "kept in '" + index.string() + "'", "same command again"});

    fs::remove(list);
    write_list("");
    EXPECT_EQ(asked("scan").at("data_sets").at(0).at("examined"), 1) << "what was known is known";
}

TEST_F(DataCommand, ReadsABucketAndSaysWhatItCost) {
    const strata_test::S3Server server;
    if (server.is_missing()) GTEST_SKIP() << server.why_not();
    ASSERT_EQ(server.why_not(), "");
    const auto options = server.bucket("photos");
    auto below = options;
    below.data_prefix = "2024";
    const strata::S3 store{below};
    for (const auto& entry : fs::directory_iterator{pictures}) {
        const std::string bytes = text_of(entry.path());
        store.put(entry.path().filename().string(), std::as_bytes(std::span{bytes.data(), bytes.size()}));
    }
    ::setenv("STRATA_TEST_SECRET", strata_test::S3Server::secret, 1);
    std::ofstream{folder / "list.json"}
        << R"([{"id": "photos", "type": "aws", "resolution": 64, "minimum_image_size": 48, "aws_bucket_name": "photos", "aws_data_prefix": "2024", "aws_endpoint_url": ")"
        << server.url() << R"(", "aws_access_key_id": ")" << strata_test::S3Server::key
        << R"(", "aws_secret_access_key": "{env:STRATA_TEST_SECRET}", "cache_dir_vae": "latents"}, {"id": "texts", "type": "local", "dataset_type": "text_embeds", "cache_dir": ")"
        << (folder / "texts").string() << "\"}]";
    const json all = asked("stats");
    EXPECT_EQ(all.at("data_sets").at(0).at("found"), 22);
    EXPECT_EQ(all.at("data_sets").at(0).at("used"), 18);
    EXPECT_EQ(all.at("s3").at("list"), 1);
    EXPECT_GE(all.at("s3").at("get"), 22 + 21);
    EXPECT_EQ(all.at("s3").at("put"), 0);
    EXPECT_EQ(all.dump().find(strata_test::S3Server::secret), std::string::npos);
    const std::string text = told("scan");
    EXPECT_NE(text.find("S3: 1 LIST, 0 HEAD, 0 GET, 0 PUT, 0 DELETE"), std::string::npos)
        << "the index spares the rest:\n"
        << text;
    ::setenv("STRATA_TEST_SECRET", "wrong", 1);
    const Outcome refused = strata({"data", "scan", (folder / "config.json").string()});
    ::unsetenv("STRATA_TEST_SECRET");
    expect_refusal(refused, 1, {"[ST2007]", "photos"});
}

}  // namespace
