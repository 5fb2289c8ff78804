#pragma once
// strata/train/checkpoints.hpp - Checkpoints: a trainer's state on disk, and the room that the next of it needs.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <strata/checkpoint/checkpoint.hpp>
#include <strata/checkpoint/resume.hpp>
#include <strata/checkpoint/size.hpp>
#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/core/step_name.hpp>
#include <strata/storage/reserved_room.hpp>
#include <strata/train/session.hpp>
#include <strata/train/trainable_history.hpp>
#include <strata/zero/state.hpp>

namespace strata::train {

/// The checkpoints of one trainer in OUTPUT/checkpoints.
///
///   Setup   of the engine
///   Model   its parameters and buffers go into model.safetensors
///   Engine  a zero::Engine, whose state goes into the other files
/// session, model and engine outlive it. All calls are collective unless they say otherwise.
template <class Setup, class Model, class Engine>
class Checkpoints {
public:
    ///   kept  newest ones that stay
    Checkpoints(Session& session, Model& model, Engine& engine, std::int64_t kept)
        : session_{session}, model_{model}, engine_{engine}, kept_{kept}, history_{engine.layout()} {}

    /// Where they are. Once, before all others. Local.
    ///
    ///   reserves  whether room for one checkpoint is kept
    void work_in(const std::filesystem::path& folder, bool reserves) {
        folder_ = folder / "checkpoints";
        if (session_.rank() != 0) return;
        const auto file = folder_ / ".reserve";
        std::error_code none;
        std::filesystem::remove(file, none);  // of a run that was killed; this one may have nothing left to do
        if (reserves) room_.emplace(file, "one checkpoint");
    }

    /// Engine::set_trainable(), remembered for checkpoints. Throws what it throws.
    void set_trainable(const std::function<bool(std::string_view name)>& trains, ChosenWhile when) {
        engine_.set_trainable(trains);
        history_.chosen(engine_.step_count(), engine_.layout(), when);
        static_cast<void>(bytes_needed());  // of the next checkpoint
    }
    /// What was chosen between two calls of fit() after the step that was done now, where that is done for a second time.
    void repeat_choice() {
        const TrainableHistory::Names* const chosen = history_.choice_after(engine_.step_count());
        if (chosen == nullptr) return;
        engine_.set_trainable([&](std::string_view name) { return chosen->contains(name); });
        history_.repeated(engine_.layout());
    }
    /// What a checkpoint of this moment says about parameters. Local.
    void describe_parameters(checkpoint::Manifest& manifest) const {
        manifest.parameters = engine_.layout();
        manifest.frozen = engine_.frozen_layout();
        history_.describe(manifest);
    }

    /// Loads the newest checkpoint that is whole into engine and model, and says which were passed over. Nothing where there
    /// is none. Throws corrupt_checkpoint, checkpoint_mismatch, io_failed.
    ///
    ///   expected  parameters and update_rule of this trainer
    [[nodiscard]] std::optional<checkpoint::Manifest> resume(const checkpoint::Manifest& expected) {
        const auto found = checkpoint::open_newest(session_.comm(), folder_, expected, named_buffers());
        newest_ = {-1, {}};
        if (!found) return std::nullopt;
        for (const std::string& note : found->notes) session_.progress().note(note);
        load(found->folder, found->manifest);
        return found->manifest;
    }

    // ---- for several trainers, whose checkpoints go together ---------------------------------------------------------------

    /// The steps there are checkpoints of, ascending; whole or not.
    [[nodiscard]] std::vector<std::int64_t> steps() {
        std::vector<std::int64_t> found;
        for (const auto& path : checkpoint::detail::newest_first(session_.comm(), folder_))
            found.insert(found.begin(), core::step_of(path.filename().string()).value_or(-1));
        return found;
    }
    /// What is wrong with the checkpoint of a step, if anything is. Throws checkpoint_mismatch.
    [[nodiscard]] std::optional<std::string> damage_at(const checkpoint::Manifest& expected, std::int64_t step) {
        auto& comm = session_.comm();
        try {
            comm::agree(comm, [&] {
                static_cast<void>(checkpoint::detail::verified(checkpoint::detail::final_name(folder_, step), expected,
                                                               comm.rank(), comm.world()));
            });
        } catch (const Error& error) {
            if (!checkpoint::is_damage(error.code())) throw;
            return error.problem();
        }
        return std::nullopt;
    }
    /// Gives the checkpoint of a step another name, under which nothing looks for it, and says so. Throws io_failed.
    ///
    ///   prefix  of its new name: "damaged_"
    void set_aside(std::int64_t step, std::string_view prefix, const std::string& why) {
        comm::agree(session_.comm(), [&] {
            if (session_.rank() != 0) return;
            const auto path = checkpoint::detail::final_name(folder_, step);
            session_.progress().note("passed over " + path.string() + ": " + why + "; it is kept as " +
                                     checkpoint::set_aside(path, prefix).filename().string());
        });
    }
    /// Loads the checkpoint of this step, which was looked at with damage_at(). Throws corrupt_checkpoint, io_failed.
    [[nodiscard]] checkpoint::Manifest resume_at(const checkpoint::Manifest& expected, std::int64_t step) {
        newest_ = {-1, {}};
        const auto path = checkpoint::detail::final_name(folder_, step);
        const checkpoint::Manifest found = checkpoint::open(session_.comm(), path, expected, named_buffers());
        load(path, found);
        return found;
    }

    /// Keeps room for the next checkpoint, of all ranks together: they write to one disk. What a killed run left
    /// unfinished goes first. Throws no_space.
    void reserve() {
        auto& comm = session_.comm();
        bool reserved = true;
        const std::uint64_t bytes = bytes_needed();
        comm::agree(comm, [&] {
            if (!room_) return;
            checkpoint::remove_unfinished(folder_);
            reserved = room_->make(bytes);
        });
        if (!reserved)
            session_.progress().note(
                "the file system of " + folder_.string() +
                " cannot reserve room: a disk that fills up may cost the steps since the last checkpoint");
    }

    /// Saves the state, in the room that was reserved, and reserves the next. Nothing when this step is saved already.
    /// Throws what checkpoint::save() throws.
    ///
    ///   beside  called on rank 0 when the checkpoint is there, before room is reserved anew: for smaller files
    template <class Beside>
    void save(const checkpoint::Manifest& manifest, Beside&& beside) {
        auto& comm = session_.comm();
        failed_step_ = manifest.step;
        write(manifest);
        failed_step_ = -1;
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            checkpoint::keep_newest(folder_, kept_);
            beside();
        });
        session_.progress().note("saved " + newest_.second.string());
        if (!room_) return;
        try {
            const bool reserved = room_->make(total_bytes_);
            static_cast<void>(reserved);  // reserve() has said that it cannot be
        } catch (const Error& error) {
            session_.progress().note("no room is reserved for the next checkpoint: " + error.problem());
        }
    }

    /// save() and nothing else, for a run that ends. Throws as it does.
    void write(const checkpoint::Manifest& manifest) {
        if (is_saved(manifest.step)) return;
        auto& comm = session_.comm();
        if (room_) room_->release();
        const auto read_state = [&](auto&& sink) { engine_.read_state(sink); };
        newest_ = {manifest.step, checkpoint::save(
                                      comm, folder_, manifest, engine_.state_outline(), read_state,
                                      [&](const auto& partial) { return write_models(partial); },
                                      [&](const std::string& what) { session_.progress().note(what); })};
    }

    /// Whether the newest checkpoint is of this step. Local.
    [[nodiscard]] bool is_saved(std::int64_t step) const noexcept { return newest_.first == step; }
    /// Whether save() failed at this step. Local.
    [[nodiscard]] bool has_failed(std::int64_t step) const noexcept { return failed_step_ == step; }
    /// "the newest checkpoint is /out/checkpoints/step_00000005". Local.
    [[nodiscard]] std::string newest_text() const {
        return newest_.first < 0 ? "there is no checkpoint" : "the newest checkpoint is " + newest_.second.string();
    }
    [[nodiscard]] const std::filesystem::path& newest() const noexcept { return newest_.second; }

    /// Gives the reserved room back. Local.
    void release_room() noexcept {
        if (room_) room_->release();
    }

private:
    void load(const std::filesystem::path& path, const checkpoint::Manifest& manifest) {
        train_as_in(path, manifest);
        checkpoint::StateReader state{path, manifest};
        const bool averaged = state.has(zero::average_kind);
        engine_.set_step_count(manifest.step);
        engine_.restore_scalars(manifest.scalars);
        engine_.write_state([&](std::string_view kind, std::int64_t begin,
                                std::span<float> values) { state.read(kind, begin, values); },
                            averaged);
        if constexpr (Setup::averaging::enabled) {
            if (!averaged) {
                engine_.restart_average();
                session_.progress().note("the checkpoint has no moving average: it starts anew from the weights");
            }
        }
        newest_ = {manifest.step, path};
        repeat_choice();
    }

    /// What the run trained at that step is trained, and what it had trained before has the values that it had then.
    void train_as_in(const std::filesystem::path& path, const checkpoint::Manifest& manifest) {
        if (manifest.parameters != engine_.layout()) {
            std::set<std::string_view> trained;
            for (const zero::ParameterInfo& parameter : manifest.parameters) trained.insert(parameter.name);
            engine_.set_trainable([&](std::string_view name) { return trained.contains(name); });
            check_order(path, manifest);
            session_.progress().note("the run had set_trainable() choose " + std::to_string(trained.size()) +
                                     " parameters by then: they are trained, whatever was chosen before fit()");
        }
        const std::set<std::string_view> settled(manifest.settled.begin(), manifest.settled.end());
        if (!settled.empty()) {
            engine_.write_frozen([&](std::string_view name) { return settled.contains(name); },
                                 [&](const std::string& name, const at::Tensor& values) {
                                     checkpoint::read_parameter(path, name, values);
                                 });
        }
        history_.resumed(manifest);
    }

    /// State is found by the numbers of elements: parameters must stand where they stood. Throws checkpoint_mismatch.
    void check_order(const std::filesystem::path& path, const checkpoint::Manifest& manifest) const {
        const std::vector<zero::ParameterInfo>& here = engine_.layout();
        const auto differs =
            std::mismatch(manifest.parameters.begin(), manifest.parameters.end(), here.begin(), here.end());
        if (differs.first == manifest.parameters.end() && differs.second == here.end()) return;
        const auto name = [](const auto& found, const auto& end) {
            return found == end ? std::string{"nothing"} : "'" + found->name + "'";
        };
        throw Error{
            Errc::checkpoint_mismatch,
            path.string() + " has " + name(differs.first, manifest.parameters.end()) + " where this run has " +
                name(differs.second, here.end()) + ", in the order of what set_trainable() had chosen",
            "register the model's parameters in the order they had, with the same excepted_parameters, or start over "
            "with --fresh"};
    }

    [[nodiscard]] std::vector<checkpoint::NamedTensor> named_buffers() const {
        std::vector<checkpoint::NamedTensor> tensors;
        for (const auto& item : model_.named_buffers()) tensors.push_back({item.key(), item.value()});
        return tensors;
    }
    [[nodiscard]] std::vector<checkpoint::NamedTensor> named_tensors() const {
        auto tensors = named_buffers();
        for (const auto& item : model_.named_parameters())
            tensors.push_back({item.key(), item.value(), item.value().requires_grad()});
        return tensors;
    }

    [[nodiscard]] std::vector<checkpoint::FileRecord> write_models(const std::filesystem::path& folder) {
        const auto tensors = named_tensors();
        const auto write_one = [&](std::string_view file) {
            auto record = checkpoint::write_model(session_.comm(), folder / file, tensors,
                                                  [&](const at::Tensor& tensor) { engine_.hold_unit_of(tensor); });
            engine_.drop_units();
            return record;
        };
        std::vector<checkpoint::FileRecord> records{write_one(checkpoint::model_file)};
        if constexpr (Setup::averaging::enabled) {
            engine_.swap_average();
            records.push_back(write_one(checkpoint::average_file));
            engine_.swap_average();
        }
        return records;
    }

    [[nodiscard]] std::uint64_t bytes_needed() {
        auto& comm = session_.comm();
        constexpr std::uint64_t beside = std::uint64_t{1} << 20;  // the manifest's frame, lines of the log, a report
        const auto tensors = comm.rank() == 0 ? named_tensors() : std::vector<checkpoint::NamedTensor>{};
        const std::uint64_t mine =
            checkpoint::bytes_on_disk(engine_.state_outline(), tensors, Setup::averaging::enabled ? 2 : 1);
        std::vector<std::uint64_t> all(static_cast<std::size_t>(comm.world()));
        comm.all_gather(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}));
        return total_bytes_ = std::accumulate(all.begin(), all.end(), beside);
    }

    Session& session_;
    Model& model_;
    Engine& engine_;
    std::int64_t kept_;
    TrainableHistory history_;
    std::filesystem::path folder_;
    std::optional<storage::ReservedRoom> room_;  // rank 0
    std::uint64_t total_bytes_ = 0;
    std::pair<std::int64_t, std::filesystem::path> newest_{-1, {}};  // step and folder
    std::int64_t failed_step_ = -1;
};

}  // namespace strata::train
