#pragma once
// strata/train/checkpoints.hpp - Checkpoints: a trainer's state on disk, and the room that the next of it needs.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/checkpoint/checkpoint.hpp>
#include <strata/checkpoint/manifest.hpp>
#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
#include <strata/storage/reserved_room.hpp>
#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/session.hpp>
#include <strata/train/trainable_history.hpp>

namespace strata::train {

/// The checkpoints of one trainer in OUTPUT/checkpoints. All calls are collective unless they say otherwise.
class Checkpoints {
public:
    struct Options {
        std::int64_t kept = 5;        ///< newest ones that stay
        bool averages = false;        ///< the engine keeps an average of the weights
        bool adapters_alone = false;  ///< frozen parameters that were never trained are not written
    };
    ///   model   its parameters and buffers go into model.safetensors
    ///   engine  its state goes into the other files
    /// session, model and engine outlive it.
    Checkpoints(Session& session, AnyModel& model, AnyEngine& engine, const Options& options)
        : session_{session}, model_{model}, engine_{engine}, options_{options}, history_{engine.layout()} {}

    /// Where they are. Once, before all others. Local.
    ///
    ///   reserves  whether room for one checkpoint is kept
    void work_in(const std::filesystem::path& folder, bool reserves);

    /// Engine::set_trainable(), remembered for checkpoints. Throws what it throws.
    void set_trainable(const AnyEngine::ByName& trains, ChosenWhile when);
    /// What was chosen between two calls of fit() after the step that was done now, where that is done for a second time.
    void repeat_choice();
    /// What a checkpoint of this moment says about parameters. Local.
    void describe_parameters(checkpoint::Manifest& manifest) const;

    /// Loads the newest checkpoint that is whole into engine and model, and says which were passed over. Nothing where there
    /// is none. Throws corrupt_checkpoint, checkpoint_mismatch, io_failed.
    ///
    ///   expected  parameters and update_rule of this trainer
    [[nodiscard]] std::optional<checkpoint::Manifest> resume(const checkpoint::Manifest& expected);

    // ---- for several trainers, whose checkpoints go together ---------------------------------------------------------------

    /// The steps there are checkpoints of, ascending; whole or not.
    [[nodiscard]] std::vector<std::int64_t> steps();
    /// What is wrong with the checkpoint of a step, if anything is. Throws checkpoint_mismatch.
    [[nodiscard]] std::optional<std::string> damage_at(const checkpoint::Manifest& expected, std::int64_t step);
    /// Gives the checkpoint of a step another name, under which nothing looks for it, and says so. Throws io_failed.
    ///
    ///   prefix  of its new name: "damaged_"
    void set_aside(std::int64_t step, std::string_view prefix, const std::string& why);
    /// Loads the checkpoint of this step, which was looked at with damage_at(). Throws corrupt_checkpoint, io_failed.
    [[nodiscard]] checkpoint::Manifest resume_at(const checkpoint::Manifest& expected, std::int64_t step);

    /// Keeps room for the next checkpoint, of all ranks together: each folder gets all of it. What a killed run left
    /// unfinished goes first. Throws no_space.
    void reserve();

    /// Saves the state, in the room that was reserved, and reserves the next. Nothing when this step is saved already.
    /// Throws what checkpoint::save() throws.
    ///
    ///   beside  called on rank 0 when the checkpoint is there, before room is reserved anew: for smaller files
    void save(const checkpoint::Manifest& manifest, core::FunctionRef<void()> beside);

    /// save() and nothing else, for a run that ends. Throws as it does.
    void write(const checkpoint::Manifest& manifest);

    /// Whether the newest checkpoint is of this step. Local.
    [[nodiscard]] bool is_saved(std::int64_t step) const noexcept { return newest_.first == step; }
    /// Whether save() failed at this step. Local.
    [[nodiscard]] bool has_failed(std::int64_t step) const noexcept { return failed_step_ == step; }
    /// "the newest checkpoint is /out/checkpoints/step_00000005". Local.
    [[nodiscard]] std::string newest_text() const;
    [[nodiscard]] const std::filesystem::path& newest() const noexcept { return newest_.second; }
    /// -1: there is none. Local.
    [[nodiscard]] std::int64_t newest_step() const noexcept { return newest_.first; }

    /// Gives the reserved room back. Local.
    void release_room() noexcept {
        if (room_) room_->release();
    }

private:
    void load(const std::filesystem::path& path, const checkpoint::Manifest& manifest);
    /// What the run trained at that step is trained, and what it had trained before has the values that it had then.
    void train_as_in(const std::filesystem::path& path, const checkpoint::Manifest& manifest);
    /// State is found by the numbers of elements: parameters must stand where they stood. Throws checkpoint_mismatch.
    void check_order(const std::filesystem::path& path, const checkpoint::Manifest& manifest) const;

    [[nodiscard]] std::vector<checkpoint::NamedTensor> named_buffers() const;
    [[nodiscard]] std::vector<checkpoint::NamedTensor> named_tensors() const;
    [[nodiscard]] std::vector<checkpoint::FileRecord> write_models(const std::filesystem::path& folder);
    [[nodiscard]] std::uint64_t bytes_needed();

    Session& session_;
    AnyModel& model_;
    AnyEngine& engine_;
    Options options_;
    TrainableHistory history_;
    std::filesystem::path folder_;
    std::optional<storage::ReservedRoom> room_;  // of a rank that keeps the output directory
    std::uint64_t total_bytes_ = 0;
    std::pair<std::int64_t, std::filesystem::path> newest_{-1, {}};  // step and folder
    std::int64_t failed_step_ = -1;
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/checkpoints.ipp>
#endif
