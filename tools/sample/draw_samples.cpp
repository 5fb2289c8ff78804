#include "draw_samples.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <strata/adapters/merge_adapter_file.hpp>
#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/core/kept_blocks.hpp>
#include <strata/core/text.hpp>
#include <strata/families/any_model.hpp>
#include <strata/families/any_recipe.hpp>
#include <strata/families/denoiser_names.hpp>
#include <strata/families/family.hpp>
#include <strata/models/drawing.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/png.hpp>
#include <strata/policy/setup.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/train/checkpoint_adapter.hpp>
#include <strata/train/checkpoint_weights.hpp>
#include <strata/train/compute_device.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/zero/in_units.hpp>

#include "sample_model.hpp"
#include "sample_plan.hpp"
#include "usual_sampling.hpp"

namespace strata::tools {

namespace {

namespace fs = std::filesystem;
using pictures::PictureSize;

/// Captions of the pictures that this rank draws.
struct Captions {
    std::map<std::size_t, data::NamedTensors> prompts;  // by number
    data::NamedTensors negative;
};

class Samples {
public:
    Samples(Session& session, const SampleSettings& settings)
        : session_{session},
          settings_{settings},
          prompts_{settings.all_prompts()},
          pictures_{plan_pictures(prompts_, settings.count, settings.seed)},
          model_{sample_model(settings)},
          added_{settings.adapters()} {
        if (!model_.adapter.empty()) added_.insert(added_.begin(), {model_.adapter, 1});
    }

    /// Collective.
    void draw() {
        checkpoint_ = looked_up();
        comm::agree(session_.comm(), [&] {
            if (own(session_.rank())) make_family();
        });
        const fs::path output = session_.output("samples");
        check_files(output);
        const at::NoGradGuard no_gradients;
        const at::Device device = train::compute_device<Setup<>>(session_);
        if (session_.rank() == 0) {
            const std::string weights = weights_text();
            session_.progress().note("draws with " + family_->title() + (weights.empty() ? "" : ", " + weights));
            if (const std::string line = family_->stand_in_note(); !line.empty() && !settings_.solver)
                session_.progress().note(line);
        }
        comm::agree(session_.comm(), [&] {
            if (!own(session_.rank())) return;
            const Captions captions = encoded(device);
            std::vector<std::size_t> own;
            for (std::size_t i = 0; i < pictures_.size(); ++i)
                if (is_own(i)) own.push_back(i);
            constexpr std::size_t at_once = 16;
            for (std::size_t begin = 0; begin < own.size(); begin += at_once)
                draw_some(captions, std::span{own}.subspan(begin, std::min(at_once, own.size() - begin)), output,
                          device);
        });
        comm::agree(session_.comm(), [&] {
            if (session_.rank() == 0 && has_grid()) write_grid(output);
        });
        session_.progress().note(std::to_string(pictures_.size()) + (pictures_.size() == 1 ? " picture" : " pictures") +
                                 " in " + output.string());
    }

private:
    /// Pictures are dealt in turn.
    [[nodiscard]] bool is_own(std::size_t picture) const {
        return static_cast<int>(picture % static_cast<std::size_t>(session_.world())) == session_.rank();
    }
    [[nodiscard]] bool own(int rank) const { return static_cast<std::size_t>(rank) < pictures_.size(); }
    [[nodiscard]] bool has_grid() const { return pictures_.size() > 1 && columns() > 0; }
    [[nodiscard]] std::int64_t columns() const {
        return grid_columns(settings_.columns, pictures_.size(), settings_.count);
    }

    /// Before hours of drawing.
    void check_files(const fs::path& output) {
        if (settings_.force) return;
        comm::agree(session_.comm(), [&] {
            if (session_.rank() != 0) return;
            std::error_code none;
            std::size_t there = 0;
            std::string first;
            const auto look = [&](const std::string& file) {
                if (!fs::exists(output / file, none)) return;
                if (++there == 1) first = file;
            };
            for (const PlannedPicture& picture : pictures_) look(picture.file);
            if (has_grid()) look(grid_file);
            if (there == 0) return;
            throw Error{Errc::bad_value,
                        (output / first).string() + (there == 1 ? " is there already"
                                                                : " and " + std::to_string(there - 1) +
                                                                      " more of these pictures are there already"),
                        "draw into another folder with --output DIR, or replace them with --force"};
        });
    }

    [[nodiscard]] Captions encoded(at::Device device) const {
        Captions captions;
        const auto& recipe = *family_->recipe();
        auto encoders = recipe.load_caption_encoders(device);
        for (std::size_t i = 0; i < pictures_.size(); ++i) {
            const std::size_t number = pictures_[i].prompt;
            if (!is_own(i) || captions.prompts.contains(number)) continue;
            // Alone: the last bits of a caption may depend on how many are encoded with it.
            captions.prompts[number] = std::move(recipe.encode_captions(encoders, {&prompts_[number], 1}).front());
        }
        captions.negative = models::negative_caption(recipe, encoders, settings_.negative);
        return captions;
    }

    /// Where the denoiser's weights are, once for all pictures: a run that goes on would have newer ones for later ones.
    [[nodiscard]] std::optional<train::FoundCheckpoint> looked_up() {
        if (!model_.weights.empty() || model_.checkpoint.empty()) return std::nullopt;
        const auto which = settings_.ema       ? train::CheckpointWeights::average
                           : settings_.masters ? train::CheckpointWeights::masters
                                               : train::CheckpointWeights::parameters;
        // Rank 0 looks for the newest; the others check that they see it.
        std::int64_t step = 0;
        std::optional<train::FoundCheckpoint> found;
        comm::agree(session_.comm(), [&] {
            if (session_.rank() != 0) return;
            found = train::find_checkpoint(model_.checkpoint, model_.step, which);
            step = found->manifest.step;
            for (const std::string& note : found->notes) session_.progress().note(note);
        });
        session_.comm().broadcast(std::as_writable_bytes(std::span{&step, 1}), 0);
        comm::agree(session_.comm(), [&] {
            if (session_.rank() != 0 && own(session_.rank()))
                found = train::find_checkpoint(model_.checkpoint, step, which);
        });
        return found;
    }

    /// A checkpoint of weights takes the place of those that the model was published with, one of adapters comes on top of them.
    void make_family() {
        if (checkpoint_ && !train::holds_adapters_alone(*checkpoint_)) model_.settings.from_scratch = true;
        family_ = families::make_family(model_.settings, added_);
        usual_ = usual_sampling(family_->name(), model_.settings.flavour);
        size_ = settings_.size.value_or(PictureSize{usual_.edge, usual_.edge});
        check_alignment(size_, family_->recipe()->alignment());
    }

    /// What the denoiser draws with, in words; empty: the model's own.
    [[nodiscard]] std::string weights_text() const {
        std::string text;
        if (!model_.weights.empty()) text = fs::absolute(model_.weights).lexically_normal().string();
        if (checkpoint_)
            text = (settings_.ema       ? "average of "
                    : settings_.masters ? "masters of "
                                        : "") +
                   fs::absolute(checkpoint_->folder).lexically_normal().string();
        for (const families::AddedAdapter& one : added_)
            text += (text.empty() ? "" : ", ") + std::string{"with "} +
                    fs::absolute(one.file).lexically_normal().string() +
                    (one.strength == 1 ? "" : " at " + core::shortest_text(one.strength));
        return text;
    }

    [[nodiscard]] std::shared_ptr<families::AnyModel> loaded(at::Device device) {
        const auto model = family_->make_model();
        if (!model_.weights.empty()) {
            const weights::WeightFiles files{model_.weights};
            const auto targets = weights::load_targets_of(*model);
            weights::load_into(targets, files, families::denoiser_names(weights::wanted_of(targets), files));
        }
        if (checkpoint_ && train::holds_adapters_alone(*checkpoint_))
            train::merge_checkpoint_adapter(*model, *checkpoint_);
        else if (checkpoint_)
            train::load_checkpoint(*model, *checkpoint_);
        for (std::size_t i = 0; i < added_.size(); ++i) merge(*model, i);
        has_told_what_is_left_ = true;
        const auto dtype = settings_.dtype.value_or(settings_.masters ? SampleDtype::fp32 : SampleDtype::bf16);
        const at::ScalarType type = dtype == SampleDtype::fp32 ? at::kFloat : at::kBFloat16;
        make_whole(*model, type);
        for (at::Tensor& parameter : model->parameters()) parameter.set_data(parameter.detach().to(device, type));
        model->to(device);  // buffers, which keep their type
        model->eval();
        return model;
    }

    /// The denoiser's part of an added file; text encoders have got theirs when they were loaded.
    void merge(families::AnyModel& model, std::size_t number) const {
        const auto& [file, strength] = added_[number];
        const std::size_t of_encoders = family_->layers_of_encoders()[number];
        const adapters::MergedAdapterFile merged =
            adapters::merge_adapter_file(model, file, strength, {.may_have_nothing = of_encoders > 0});
        if (merged.of_other_parts <= of_encoders || session_.rank() != 0 || has_told_what_is_left_) return;
        const std::size_t left = merged.of_other_parts - of_encoders;
        session_.progress().note(file.string() + " has adapters of " + std::to_string(left) +
                                 (left == 1 ? " layer" : " layers") + " that no model here has, which are not used");
    }

    /// The denoiser goes before they are decoded, and the autoencoder after.
    void draw_some(const Captions& captions, std::span<const std::size_t> numbers, const fs::path& output,
                   at::Device device) {
        const std::vector<at::Tensor> latents = drawn_latents(captions, numbers, device);
        core::give_back_memory();
        family_->recipe()->decode_each(latents, device, [&](std::size_t i, const at::Tensor& drawn_3HW) {
            const PlannedPicture& picture = pictures_[numbers[i]];
            storage::write_file(output / picture.file,
                                pictures::encode_png(size_.width, size_.height, bytes_of(drawn_3HW),
                                                     texts_of(facts_of(picture, sampler_options(picture.seed)))));
            session_.progress().note("drew " + (output / picture.file).string());
        });
        core::give_back_memory();
    }
    [[nodiscard]] std::vector<at::Tensor> drawn_latents(const Captions& captions, std::span<const std::size_t> numbers,
                                                        at::Device device) {
        const auto model = loaded(device);
        std::vector<at::Tensor> latents;
        for (const std::size_t number : numbers) {
            const PlannedPicture& picture = pictures_[number];
            // Alone, so that its bits do not depend on those beside it.
            const std::vector<data::NamedTensors> prompt{captions.prompts.at(picture.prompt)};
            latents.push_back(
                std::move(family_->recipe()
                              ->draw_latents(*model, prompt, captions.negative, size_, sampler_options(picture.seed), 0)
                              .front()));
        }
        return latents;
    }

    [[nodiscard]] models::SamplerOptions sampler_options(std::uint64_t seed) const {
        models::SamplerOptions options;
        options.steps = static_cast<int>(settings_.steps.value_or(usual_.steps));
        options.guidance = settings_.guidance.value_or(usual_.guidance);
        options.seed = seed;
        options.method = settings_.solver;
        options.rescale = settings_.guidance_rescale;
        options.real_guidance = settings_.real_guidance;
        return options;
    }

    [[nodiscard]] PictureFacts facts_of(const PlannedPicture& picture, const models::SamplerOptions& options) const {
        PictureFacts facts;
        facts.prompt = prompts_[picture.prompt];
        facts.negative = settings_.negative;
        facts.seed = picture.seed;
        facts.steps = options.steps;
        facts.guidance = options.guidance;
        facts.guidance_rescale = options.rescale;
        facts.real_guidance = options.real_guidance;
        facts.solver = "model's own";
        for (const auto& one : sampling_methods)
            if (options.method == one.value) facts.solver = one.name;
        facts.model = family_->title();
        facts.weights = weights_text();
        facts.size = size_;
        return facts;
    }

    /// (3, H, W) in [-1, 1] as packed rows.
    [[nodiscard]] static std::vector<std::uint8_t> bytes_of(const at::Tensor& picture_3HW) {
        const at::Tensor bytes_HW3 = picture_3HW.to(at::kCPU, at::kFloat)
                                         .clamp(-1, 1)
                                         .add(1)
                                         .mul(127.5)
                                         .round()
                                         .to(at::kByte)
                                         .permute({1, 2, 0})
                                         .contiguous();
        const auto* const begin = bytes_HW3.data_ptr<std::uint8_t>();
        return {begin, begin + bytes_HW3.numel()};
    }

    /// Of the files, so that no rank holds more than one picture before.
    void write_grid(const fs::path& output) const {
        constexpr std::int64_t gap = 4;
        const auto count = static_cast<std::int64_t>(pictures_.size());
        const std::int64_t columns = std::min(count, this->columns()), rows = (count + columns - 1) / columns;
        const std::int64_t width = columns * (size_.width + gap) + gap, height = rows * (size_.height + gap) + gap;
        constexpr std::int64_t most_pixels = std::int64_t{1} << 28;
        if (width * height > most_pixels)
            return session_.progress().note("no grid: of so many pictures it would have more than 268 million pixels");
        std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width * height * 3), 255);
        for (std::int64_t i = 0; i < count; ++i) {
            const auto file = storage::read_file(output / pictures_[static_cast<std::size_t>(i)].file);
            const pictures::Picture picture = pictures::decode_image(file);
            const std::int64_t left = gap + i % columns * (size_.width + gap),
                               top = gap + i / columns * (size_.height + gap);
            for (std::int64_t y = 0; y < size_.height; ++y)
                std::copy_n(picture.pixels.begin() + y * size_.width * 3, size_.width * 3,
                            rgb.begin() + ((top + y) * width + left) * 3);
        }
        storage::write_file(output / grid_file, pictures::encode_png(width, height, rgb));
        session_.progress().note("drew " + (output / grid_file).string());
    }

    Session& session_;
    const SampleSettings& settings_;
    std::vector<std::string> prompts_;
    std::vector<PlannedPicture> pictures_;
    SampleModel model_;
    std::vector<families::AddedAdapter> added_;  ///< to its weights or the checkpoint's, in this order
    std::optional<train::FoundCheckpoint> checkpoint_;
    std::unique_ptr<families::Family> family_;
    bool has_told_what_is_left_ = false;  ///< of added files: a model is loaded for every few pictures
    UsualSampling usual_{};
    PictureSize size_{};
};

}  // namespace

void draw_samples(Session& session, const SampleSettings& settings) {
    settings.check();
    session.set_collective_timeout(std::chrono::hours{24 * 365});  // who is ready waits for the slowest picture
    std::optional<Samples> samples;
    comm::agree(session.comm(), [&] { samples.emplace(session, settings); });
    samples->draw();
}

int sample_main(int argc, char** argv) {
    return run<SampleSettings>(
        argc, argv, [](Session& session, const SampleSettings& settings) { draw_samples(session, settings); });
}

}  // namespace strata::tools
