// `strata sample`: pictures of tiny models in the ecosystem's folders, of runs' checkpoints and of files of weights.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/picture.hpp>
#include <strata/pictures/png.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/weights/weight_files.hpp>

#include "../support/made_pipeline.hpp"
#include "train_folder.hpp"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using strata_test::Outcome;
using strata_test::PipelineKind;
using strata_test::text_of;

struct SampleCommand : strata_test::TrainFolder {
    /// Two steps at 64 x 64 pixels, where the words say nothing else.
    Outcome sample(std::vector<std::string> words, bool is_short = true) const {
        words.insert(words.begin(), {STRATA_TOOL, "sample"});
        if (is_short) words.insert(words.end(), {"--steps", "2", "--size", "64"});
        return run(words);
    }
    [[nodiscard]] static std::vector<std::string> files_in(const fs::path& output) {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator{output})
            if (entry.path().filename() != ".lock") names.push_back(entry.path().filename().string());
        std::sort(names.begin(), names.end());
        return names;
    }
    /// A model of two steps on two ranks: the run is in `output`.
    void train_run(const std::string& output, const std::string& stage, const json& more = json::object()) const {
        json config{{"data_backend_config", path("list.json")},
                    {"model_family", "sdxl"},
                    {"pretrained_model_name_or_path", path("model")},
                    {"mixed_precision", "bf16"},
                    {"aspect_bucket_alignment", 16},
                    {"train_batch_size", 1},
                    {"learning_rate", 1e-2},
                    {"lr_scheduler", "constant"},
                    {"max_train_steps", 2},
                    {"checkpoint_step_interval", 1},
                    {"validation_disable", true}};
        config.update(more);
        write("config.json", config.dump());
        write("stage.json", R"({"zero_optimization": {"stage": )" + stage + "}}");
        const Outcome outcome =
            train({path("config.json"), path("stage.json"), "-n", "2", "--output", path(output), "--fresh"});
        ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    }
    /// A LoRA of rank 1 on a layer of the model, whose two matrices are this value everywhere.
    void write_lora(const std::string& name, const std::string& layer, float value) const {
        const strata::weights::WeightFiles files{folder / "model/unet"};
        const auto& shape = files.find(layer + ".weight")->entry->shape;
        const std::vector<float> down(static_cast<std::size_t>(shape[1]), value),
            up(static_cast<std::size_t>(shape[0]), value);
        strata::storage::write_safetensors(folder / name, {{{"unet." + layer + ".lora_A.weight",
                                                             strata::storage::Dtype::f32,
                                                             {1, shape[1]},
                                                             std::as_bytes(std::span{down})},
                                                            {"unet." + layer + ".lora_B.weight",
                                                             strata::storage::Dtype::f32,
                                                             {shape[0], 1},
                                                             std::as_bytes(std::span{up})}}});
    }
    /// Writes a file of fp32 weights anew, with what `change` makes of each tensor.
    static void rewrite(const fs::path& from, const fs::path& to,
                        const std::function<void(std::string& name, std::vector<float>& values)>& change) {
        std::list<std::vector<float>> values;
        std::vector<strata::storage::TensorBytes> tensors;
        const strata::weights::WeightFiles files{from};
        for (const auto& [old, place] : files.tensors()) {
            std::vector<float>& own = values.emplace_back(static_cast<std::size_t>(place.bytes()) / sizeof(float));
            strata::weights::WeightFiles::read(place, std::as_writable_bytes(std::span{own}));
            std::string name = old;
            change(name, own);
            tensors.push_back({name, strata::storage::Dtype::f32, place.entry->shape, std::as_bytes(std::span{own})});
        }
        strata::storage::write_safetensors(to, tensors);
    }
    /// The pixels of "a cat".
    std::vector<std::uint8_t> drawn(const std::string& output, std::vector<std::string> words) const {
        words.insert(words.end(), {"--prompt", "a cat", "--output", path(output)});
        const Outcome outcome = sample(words);
        EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
        return strata::pictures::decode_image(strata::storage::read_file(folder / output / "001_a-cat.png")).pixels;
    }
};

TEST_F(SampleCommand, APipelineDrawsAPictureThatSaysWhatItIs) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sdxl);
    const Outcome outcome = sample({path("model"), "--prompt", "[V] a cat, über \"dogs\"", "--negative", "no words",
                                    "--seed", "7", "--guidance", "3", "--solver", "unipc", "--output", path("out")});
    ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    ASSERT_EQ(files_in(folder / "out"), std::vector<std::string>{"001_V-a-cat-über-dogs.png"});
    const auto file = strata::storage::read_file(folder / "out/001_V-a-cat-über-dogs.png");
    const auto picture = strata::pictures::decode_image(file);
    EXPECT_EQ(picture.width, 64);
    EXPECT_EQ(picture.height, 64);
    const auto texts = strata::pictures::png_texts(file);
    ASSERT_EQ(texts.size(), 3U);
    EXPECT_EQ(texts[0].key, "parameters");
    expect_words(texts[0].text,
                 {"[V] a cat, über \"dogs\"\nNegative prompt: no words\nSteps: 2, Sampler: unipc, CFG scale: 3, "
                  "Seed: 7, Size: 64x64, Model: "});
    const json facts = json::parse(texts[1].text);
    EXPECT_EQ(facts.at("prompt"), "[V] a cat, über \"dogs\"");
    EXPECT_EQ(facts.at("seed"), 7);
    EXPECT_EQ(facts.at("steps"), 2);
}

TEST_F(SampleCommand, PicturesAreTheSameOnOneRankAndTwoAndDoNotDependOnOneAnother) {
    strata_test::write_pipeline(folder / "model", PipelineKind::flux);
    write("prompts.txt", "a cat\n\n  a dog\r\n");
    const std::vector<std::string> words{path("model"), "--prompts", path("prompts.txt"), "--count", "2",
                                         "--seed",      "5"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), words.begin(), words.end());
        return sample(more);
    };
    ::setenv("OMP_NUM_THREADS", "1", 1);
    const Outcome one = with({"--output", path("one")});
    const Outcome two = with({"--output", path("two"), "-n", "2"});
    const Outcome alone = sample({path("model"), "--prompt", "a dog", "--seed", "6", "--output", path("alone")});
    ::unsetenv("OMP_NUM_THREADS");
    ASSERT_EQ(one.status, 0) << one.out << one.err;
    ASSERT_EQ(two.status, 0) << two.out << two.err;
    ASSERT_EQ(alone.status, 0) << alone.out << alone.err;
    const std::vector<std::string> files{"001_a-cat.png", "002_a-cat.png", "003_a-dog.png", "004_a-dog.png",
                                         "grid.png"};
    ASSERT_EQ(files_in(folder / "one"), files);
    ASSERT_EQ(files_in(folder / "two"), files);
    for (const std::string& file : files)
        EXPECT_EQ(text_of(folder / "one" / file), text_of(folder / "two" / file)) << file;
    EXPECT_EQ(text_of(folder / "one/004_a-dog.png"), text_of(folder / "alone/001_a-dog.png"));
    EXPECT_NE(text_of(folder / "one/001_a-cat.png"), text_of(folder / "one/002_a-cat.png"));
    const auto grid = strata::pictures::decode_image(strata::storage::read_file(folder / "one/grid.png"));
    EXPECT_EQ(grid.width, 2 * 64 + 3 * 4);
    EXPECT_EQ(grid.height, 2 * 64 + 3 * 4);
}

TEST_F(SampleCommand, ARunIsDrawnFromItsCheckpointsWhateverWroteThem) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sdxl);
    write_pictures(4, [](int i) { return i % 2 == 0 ? "a cat" : "a dog"; });
    write_list();
    ASSERT_NO_FATAL_FAILURE(train_run("run", "3"));
    const fs::path last = folder / "run/checkpoints/step_00000002";
    const auto newest = drawn("newest", {path("run")});
    EXPECT_EQ(newest, drawn("exported", {path("model"), "--weights", (last / "model.safetensors").string()}));
    EXPECT_EQ(newest, drawn("named", {path("config.json"), "--checkpoint", path("run")}));
    EXPECT_EQ(newest, drawn("itself", {last.string()}));
    EXPECT_EQ(newest, drawn("rounded", {path("run"), "--masters", "--dtype", "bf16"}));
    const auto before = drawn("before", {path("run"), "--checkpoint", "1"});
    EXPECT_NE(newest, before);
    EXPECT_NE(newest, drawn("base", {path("model")}));
    const Outcome none = sample({path("run"), "--ema", "--prompt", "a cat", "--output", path("none")});
    EXPECT_NE(none.status, 0);
    expect_words(none.err, {"has no moving average", "Fix: "});

    // One that is damaged is passed over, and stays.
    fs::resize_file(last / "model.safetensors", fs::file_size(last / "model.safetensors") - 1);
    EXPECT_EQ(before, drawn("whole", {path("run")}));
    EXPECT_TRUE(fs::exists(last));
}

TEST_F(SampleCommand, ARunsAverageIsDrawnAndWhatItLeftAtItsEnd) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sdxl);
    write_pictures(4, [](int i) { return i % 2 == 0 ? "a cat" : "a dog"; });
    write_list();
    ASSERT_NO_FATAL_FAILURE(train_run("averaged", "2", {{"use_ema", true}, {"ema_decay", 0.5}}));
    const auto average = drawn("average", {path("averaged"), "--ema"});
    const auto trained = drawn("trained", {path("averaged")});
    EXPECT_NE(average, trained);
    const fs::path file = folder / "averaged/checkpoints/step_00000002/model_ema.safetensors";
    EXPECT_EQ(average, drawn("file", {path("model"), "--weights", file.string()}));

    // A complete run whose checkpoints are gone still has what it left for other programs.
    fs::remove_all(folder / "averaged/checkpoints");
    EXPECT_EQ(trained, drawn("left", {path("averaged")}));
}

TEST_F(SampleCommand, AdaptersAreAddedAsStronglyAsTheyAreAskedFor) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sdxl);
    const strata::weights::WeightFiles files{folder / "model/unet"};
    const auto to_q = std::find_if(files.tensors().begin(), files.tensors().end(),
                                   [](const auto& one) { return one.first.ends_with(".to_q.weight"); });
    ASSERT_NE(to_q, files.tensors().end());
    const std::string layer = to_q->first.substr(0, to_q->first.size() - std::string{".weight"}.size());
    write_lora("lora.safetensors", layer, 0.5F);
    const auto plain = drawn("plain", {path("model")});
    EXPECT_EQ(plain, drawn("none", {path("model"), "--lora", path("lora.safetensors"), "--lora-strength", "0"}));
    const auto whole = drawn("whole", {path("model"), "--lora", path("lora.safetensors")});
    EXPECT_NE(plain, whole);
    EXPECT_EQ(whole, drawn("halves", {path("model"), "--dtype", "bf16", "--lora", path("lora.safetensors"), "--lora",
                                      path("lora.safetensors"), "--lora_strength", "1", "--lora_strength", "0"}));
    const auto texts = strata::pictures::png_texts(strata::storage::read_file(folder / "whole" / "001_a-cat.png"));
    expect_words(texts[1].text, {"with ", "lora.safetensors"});

    // A run that trained one: over the model that it recorded.
    fs::create_directories(folder / "run");
    write("run/model.json", json{{"model_family", "sdxl"}, {"pretrained_model_name_or_path", path("model")}}.dump());
    fs::copy_file(folder / "lora.safetensors", folder / "run/pytorch_lora_weights.safetensors");
    EXPECT_EQ(whole, drawn("of_run", {path("run")}));

    const Outcome number = sample({path("model"), "--prompt", "a cat", "--lora", path("lora.safetensors"),
                                   "--lora_strength", "much", "--output", path("out")});
    EXPECT_EQ(number.status, 2);
    expect_words(number.err, {"--lora_strength is 'much'", "Fix: "});
    EXPECT_EQ(sample({path("model"), "--prompt", "a cat", "--lora_strength", "1", "--output", path("out")}).status, 2);
    write("other.safetensors", "");
    const Outcome absent =
        sample({path("model"), "--prompt", "a cat", "--lora", path("other.safetensors"), "--output", path("out")});
    EXPECT_NE(absent.status, 0);
    expect_words(absent.err, {"other.safetensors", "Fix: "});
}

TEST_F(SampleCommand, WeightsMayHaveThePrefixOfAWholePipelinesFile) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sd15);
    rewrite(folder / "model/unet/diffusion_pytorch_model.safetensors", folder / "whole.safetensors",
            [](std::string& name, std::vector<float>&) { name = "model.diffusion_model." + name; });
    EXPECT_EQ(drawn("own", {path("model")}), drawn("whole", {path("model"), "--weights", path("whole.safetensors")}));
}

/// Captions are read by what the adapter made of the text encoder: the picture is that of a folder whose text encoder has it merged.
TEST_F(SampleCommand, AdaptersOfTextEncodersAreAddedToo) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sd15);
    const std::string layer = "text_model.encoder.layers.0.mlp.fc1";
    const std::vector<float> down(24, 0.25F), up(48, 0.5F);
    const auto pair_of = [&](const std::string& name) {
        return std::vector<strata::storage::TensorBytes>{
            {name + ".lora_down.weight", strata::storage::Dtype::f32, {1, 24}, std::as_bytes(std::span{down})},
            {name + ".lora_up.weight", strata::storage::Dtype::f32, {48, 1}, std::as_bytes(std::span{up})}};
    };
    strata::storage::write_safetensors(folder / "lora.safetensors",
                                       pair_of("lora_te_text_model_encoder_layers_0_mlp_fc1"));
    fs::copy(folder / "model", folder / "merged", fs::copy_options::recursive);
    // Multiples of 1/64, with and without the adapter's 1/8: bf16 rounds neither.
    const auto round = [&](const std::string& model, float added) {
        const fs::path file = folder / model / "text_encoder/model.safetensors";
        rewrite(file, file, [&](const std::string& name, std::vector<float>& values) {
            if (name != layer + ".weight") return;
            for (float& value : values) value = std::round(value * 64) / 64 + added;
        });
    };
    round("model", 0);
    round("merged", 0.25F * 0.5F);
    const auto with = drawn("with", {path("model"), "--lora", path("lora.safetensors")});
    EXPECT_NE(with, drawn("plain", {path("model")}));
    EXPECT_EQ(with, drawn("merged_drawn", {path("merged")}));

    // What is for no model that is here is said.
    auto tensors = pair_of("lora_te_text_model_encoder_layers_0_mlp_fc1");
    for (auto& tensor : pair_of("lora_te2_text_model_encoder_layers_0_mlp_fc1")) tensors.push_back(tensor);
    strata::storage::write_safetensors(folder / "more.safetensors", tensors);
    const Outcome more =
        sample({path("model"), "--prompt", "a cat", "--lora", path("more.safetensors"), "--output", path("more")});
    EXPECT_EQ(more.status, 0) << more.err;
    expect_words(more.out + more.err, {"more.safetensors has adapters of 1 layer that no model here has"});
}

TEST_F(SampleCommand, AdaptersOfCheckpointsAreDrawnAsTheFilesThatTheirRunLeaves) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sdxl);
    write_pictures(4, [](int i) { return i % 2 == 0 ? "a cat" : "a dog"; });
    write_list();
    const auto plain = drawn("plain", {path("model")});
    const auto expect_drawn = [&](const std::string& run, const std::string& stage, const json& of_adapter) {
        SCOPED_TRACE(run);
        json more{{"model_type", "lora"}};
        more.update(of_adapter);
        ASSERT_NO_FATAL_FAILURE(train_run(run, stage, more));
        const auto left =
            drawn(run + "_left", {path("model"), "--lora", path(run + "/pytorch_lora_weights.safetensors")});
        EXPECT_NE(left, plain);
        EXPECT_EQ(left, drawn(run + "_last", {path(run), "--checkpoint", "2"}));
        const auto before = drawn(run + "_before", {path(run), "--checkpoint", "1"});
        EXPECT_NE(before, plain);
        EXPECT_NE(before, left);
        EXPECT_NE(drawn(run + "_masters", {path(run), "--masters", "--dtype", "bf16"}), plain);
        // What a run left goes before nothing: it may have gone on since, or was stopped before its end.
        write(run + "/pytorch_lora_weights.safetensors", "of an earlier end");
        EXPECT_EQ(left, drawn(run + "_newest", {path(run)}));
    };
    expect_drawn("lora", "3", {{"lora_rank", 4}, {"lora_alpha", 2}, {"use_ema", true}, {"ema_decay", 0.5}});
    const auto average = drawn("lora_average", {path("lora"), "--ema"});
    EXPECT_EQ(average,
              drawn("lora_average_left", {path("model"), "--lora", path("lora/ema/pytorch_lora_weights.safetensors")}));
    EXPECT_NE(average, plain);
    EXPECT_NE(average, drawn("lora_trained", {path("lora")}));
    write("lycoris.json", R"({"algo": "lokr", "linear_dim": 4, "linear_alpha": 2, "factor": 4,
        "apply_preset": {"target_module": ["Attention"]}})");
    const json lokr{{"lora_type", "lycoris"}, {"lycoris_config", path("lycoris.json")}};
    expect_drawn("lokr", "1", lokr);
    json over_int8 = lokr;
    over_int8["base_model_precision"] = "int8-quanto";
    expect_drawn("int8", "3", over_int8);
    const Outcome none = sample({path("lokr"), "--ema", "--prompt", "a cat", "--output", path("none")});
    EXPECT_NE(none.status, 0);
    expect_words(none.err, {"has no moving average", "Fix: "});
}

/// Sixteen are drawn before the denoiser goes, and it comes again for the seventeenth.
TEST_F(SampleCommand, ManyPicturesAreThoseThatAreDrawnAlone) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sd15);
    const std::vector<std::string> words{path("model"), "--prompt", "a cat"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), words.begin(), words.end());
        return sample(more);
    };
    ASSERT_EQ(with({"--count", "17", "--seed", "5", "--output", path("many")}).status, 0);
    ASSERT_EQ(with({"--seed", "5", "--output", path("first")}).status, 0);
    ASSERT_EQ(with({"--seed", "21", "--output", path("last")}).status, 0);
    const auto file = [&](const char* in, const char* name) { return text_of(folder / in / name); };
    EXPECT_EQ(file("many", "001_a-cat.png"), file("first", "001_a-cat.png"));
    EXPECT_EQ(file("many", "017_a-cat.png"), file("last", "001_a-cat.png"));
    EXPECT_NE(file("many", "001_a-cat.png"), file("many", "017_a-cat.png"));
}

TEST_F(SampleCommand, NothingIsReplacedUnlessAskedFor) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sd15);
    const std::vector<std::string> words{path("model"), "--prompt", "a cat", "--output", path("out")};
    ASSERT_EQ(sample(words).status, 0);
    write("out/001_a-cat.png", "mine");
    const Outcome refused = sample(words);
    EXPECT_EQ(refused.status, 2) << refused.out;
    expect_words(refused.err, {"001_a-cat.png is there already", "--force"});
    EXPECT_EQ(text_of(folder / "out/001_a-cat.png"), "mine");
    auto forced = words;
    forced.emplace_back("--force");
    EXPECT_EQ(sample(forced).status, 0);
    EXPECT_NE(text_of(folder / "out/001_a-cat.png"), "mine");
}

TEST_F(SampleCommand, CtrlCEndsItAtOnceAndLeavesNoHalfPicture) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sd15);
    strata_test::Running running{{STRATA_TOOL, "sample", path("model"), "--prompt", "a cat", "--count", "1000",
                                  "--steps", "20", "--size", "64", "--output", path("out")},
                                 folder};
    while (!fs::exists(folder / "out/0001_a-cat.png")) {
        ASSERT_FALSE(running.has_ended()) << text_of(folder / "err.txt");
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    running.signal(SIGINT);
    EXPECT_EQ(running.wait().status, 128 + SIGINT);
    const auto files = files_in(folder / "out");
    EXPECT_LT(files.size(), 1000U);
    for (const std::string& file : files) {
        EXPECT_FALSE(file.starts_with('.')) << file;
        EXPECT_EQ(strata::pictures::decode_image(strata::storage::read_file(folder / "out" / file)).width, 64) << file;
    }
}

TEST_F(SampleCommand, WhatIsWrongIsSaidBeforeAnythingIsDrawn) {
    strata_test::write_pipeline(folder / "model", PipelineKind::flux);
    strata_test::write_pipeline(folder / "other", PipelineKind::sdxl);
    fs::create_directories(folder / "empty");
    write("none.txt", "\n \n");
    const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> cases{
        {{path("model")}, {"there is nothing to draw", "--prompt"}},
        {{"--prompt", "a cat"}, {"needs a MODEL"}},
        {{path("model"), path("other"), "--prompt", "a cat"}, {"is a second"}},
        {{path("nowhere"), "--prompt", "a cat"}, {"there is no model", "run's output directory"}},
        {{"someone/flux", "--prompt", "a cat"}, {"there is no model 'someone/flux'", "download it first"}},
        {{path("empty"), "--prompt", "a cat"}, {"there is no model in the folder"}},
        {{path("model/transformer"), "--prompt", "a cat"}, {"is a part of a pipeline"}},
        {{path("other/unet/diffusion_pytorch_model.safetensors"), "--prompt", "a cat"}, {"--weights"}},
        {{path("model"), "--prompts", path("none.txt")}, {"none.txt"}},
        {{path("model"), "--promt", "a cat"}, {"--promt is unknown", "--prompt"}},
        {{path("model"), "--prompt", "a cat", "--solver", "eulr"}, {"--solver", "`euler`", "`unipc`"}},
        {{path("model"), "--prompt", "a cat", "--size", "64y64"}, {"--size", "1024x768"}},
        {{path("model"), "--prompt", "a cat", "--size", "70x100"}, {"70x100", "multiples of 16", "--size 64x96"}},
        {{path("model"), "--prompt", "a cat", "--ema"}, {"--ema is of a checkpoint"}},
        {{path("model"), "--prompt", "a cat", "--checkpoint", "7"}, {"--checkpoint 7 is a step"}},
        {{path("model"), "--prompt", "a cat", "--size", "64", "--weights", path("other/unet")},
         {"ST2706", "missing", "unexpected"}},
    };
    for (const auto& [words, says] : cases) {
        auto all = words;
        all.insert(all.end(), {"--output", path("out")});
        const Outcome outcome = sample(all, false);
        EXPECT_NE(outcome.status, 0) << says.front();
        expect_words(outcome.err, says);
        expect_words(outcome.err, {"Fix: "});
        EXPECT_FALSE(fs::exists(folder / "out")) << says.front();
    }
}

}  // namespace
