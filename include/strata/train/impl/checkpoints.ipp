#pragma once
// strata/train/impl/checkpoints.ipp - what is saved and loaded in which order.

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <system_error>

#include <strata/checkpoint/resume.hpp>
#include <strata/checkpoint/size.hpp>
#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/train/checkpoints.hpp>
#include <strata/zero/state.hpp>

namespace strata::train {

STRATA_INLINE void Checkpoints::work_in(const std::filesystem::path& folder, bool reserves) {
    folder_ = folder / "checkpoints";
    if (!session_.keeps_output()) return;
    const auto file = folder_ / ".reserve";
    std::error_code none;
    std::filesystem::remove(file, none);  // of a run that was killed; this one may have nothing left to do
    if (reserves) room_.emplace(file, "one checkpoint");
}

STRATA_INLINE void Checkpoints::set_trainable(const AnyEngine::ByName& trains, ChosenWhile when) {
    engine_.set_trainable(trains);
    history_.chosen(engine_.step_count(), engine_.layout(), when);
    static_cast<void>(bytes_needed());  // of the next checkpoint
}

STRATA_INLINE void Checkpoints::repeat_choice() {
    const TrainableHistory::Names* const chosen = history_.choice_after(engine_.step_count());
    if (chosen == nullptr) return;
    engine_.set_trainable([&](std::string_view name) { return chosen->contains(name); });
    history_.repeated(engine_.layout());
}

STRATA_INLINE void Checkpoints::describe_parameters(checkpoint::Manifest& manifest) const {
    manifest.parameters = engine_.layout();
    manifest.frozen = engine_.frozen_layout();
    history_.describe(manifest);
}

STRATA_INLINE std::optional<checkpoint::Manifest> Checkpoints::resume(const checkpoint::Manifest& expected) {
    const auto found =
        checkpoint::open_newest(session_.comm(), folder_, expected, named_buffers(), session_.output_keepers());
    newest_ = {-1, {}};
    if (!found) return std::nullopt;
    for (const std::string& note : found->notes) session_.say(note);
    load(found->folder, found->manifest);
    return found->manifest;
}

STRATA_INLINE std::vector<std::int64_t> Checkpoints::steps() {
    std::set<std::int64_t> found;
    for (const auto& [step, holder] :
         checkpoint::detail::newest_first(session_.comm(), folder_, session_.output_keepers()))
        found.insert(step);
    return {found.begin(), found.end()};
}

STRATA_INLINE std::optional<std::string> Checkpoints::damage_at(const checkpoint::Manifest& expected,
                                                                std::int64_t step) {
    auto& comm = session_.comm();
    const comm::FolderKeepers& keepers = session_.output_keepers();
    auto candidates = checkpoint::detail::newest_first(comm, folder_, keepers);
    std::erase_if(candidates, [&](const auto& one) { return one.step != step; });
    if (candidates.empty()) candidates.push_back({step, 0});
    std::optional<std::string> damage;
    for (const auto& [its_step, holder] : candidates) {
        try {
            static_cast<void>(checkpoint::detail::verified_everywhere(
                comm, keepers, checkpoint::detail::final_name(folder_, step), expected, holder));
            return std::nullopt;
        } catch (const Error& error) {
            if (!checkpoint::is_damage(error.code())) throw;
            if (!damage) damage = error.problem();
        }
    }
    return damage;
}

STRATA_INLINE void Checkpoints::set_aside(std::int64_t step, std::string_view prefix, const std::string& why) {
    comm::agree(session_.comm(), [&] {
        const auto path = checkpoint::detail::final_name(folder_, step);
        std::error_code unknown;
        if (!session_.keeps_output() || (session_.rank() != 0 && !std::filesystem::exists(path, unknown))) return;
        session_.say("passed over " + path.string() + ": " + why + "; it is kept as " +
                     checkpoint::set_aside(path, prefix).filename().string());
    });
}

STRATA_INLINE checkpoint::Manifest Checkpoints::resume_at(const checkpoint::Manifest& expected, std::int64_t step) {
    newest_ = {-1, {}};
    const auto path = checkpoint::detail::final_name(folder_, step);
    const checkpoint::Manifest found =
        checkpoint::open(session_.comm(), path, expected, named_buffers(), session_.output_keepers());
    load(path, found);
    return found;
}

STRATA_INLINE void Checkpoints::reserve() {
    auto& comm = session_.comm();
    bool reserved = true;
    const std::uint64_t bytes = bytes_needed();
    comm::agree(comm, [&] {
        if (!room_) return;
        checkpoint::remove_unfinished(folder_);
        reserved = room_->make(bytes);
    });
    if (!reserved)
        session_.say("the file system of " + folder_.string() +
                     " cannot reserve room: a disk that fills up may cost the steps since the last checkpoint");
}

STRATA_INLINE void Checkpoints::save(const checkpoint::Manifest& manifest, core::FunctionRef<void()> beside) {
    auto& comm = session_.comm();
    failed_step_ = manifest.step;
    write(manifest);
    failed_step_ = -1;
    comm::agree(comm, [&] {
        if (session_.keeps_output()) checkpoint::keep_newest(folder_, options_.kept);
        if (comm.rank() == 0) beside();
    });
    session_.progress().note("saved " + newest_.second.string());
    if (!room_) return;
    try {
        const bool reserved = room_->make(total_bytes_);
        static_cast<void>(reserved);  // reserve() has said that it cannot be
    } catch (const Error& error) {
        session_.say("no room is reserved for the next checkpoint: " + error.problem());
    }
}

STRATA_INLINE void Checkpoints::write(const checkpoint::Manifest& manifest) {
    if (is_saved(manifest.step)) return;
    auto& comm = session_.comm();
    if (room_) room_->release();
    const auto read_state = [&](auto&& sink) { engine_.read_state(sink); };
    newest_ = {manifest.step, checkpoint::save(
                                  comm, folder_, manifest, engine_.state_outline(), read_state,
                                  [&](const auto& partial) { return write_models(partial); }, session_.output_keepers(),
                                  [&](const std::string& what) { session_.progress().note(what); })};
}

STRATA_INLINE std::string Checkpoints::newest_text() const {
    return newest_.first < 0 ? "there is no checkpoint" : "the newest checkpoint is " + newest_.second.string();
}

STRATA_INLINE void Checkpoints::load(const std::filesystem::path& path, const checkpoint::Manifest& manifest) {
    train_as_in(path, manifest);
    checkpoint::StateReader state{path, manifest};
    const bool averaged = state.has(zero::average_kind);
    engine_.set_step_count(manifest.step);
    engine_.restore_scalars(manifest.scalars);
    engine_.write_state(
        [&](std::string_view kind, std::int64_t begin, std::span<float> values) { state.read(kind, begin, values); },
        averaged);
    if (options_.averages && !averaged) {
        engine_.restart_average();
        session_.progress().note("the checkpoint has no moving average: it starts anew from the weights");
    }
    newest_ = {manifest.step, path};
    repeat_choice();
}

STRATA_INLINE void Checkpoints::train_as_in(const std::filesystem::path& path, const checkpoint::Manifest& manifest) {
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
        engine_.write_frozen(
            [&](std::string_view name) { return settled.contains(name); },
            [&](const std::string& name, const at::Tensor& values) { checkpoint::read_parameter(path, name, values); });
    }
    history_.resumed(manifest);
}

STRATA_INLINE void Checkpoints::check_order(const std::filesystem::path& path,
                                            const checkpoint::Manifest& manifest) const {
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

STRATA_INLINE std::vector<checkpoint::NamedTensor> Checkpoints::named_buffers() const {
    std::vector<checkpoint::NamedTensor> tensors;
    for (const zero::Buffer& buffer : model_.named_buffers()) tensors.push_back({buffer.name, buffer.tensor});
    return tensors;
}

STRATA_INLINE std::vector<checkpoint::NamedTensor> Checkpoints::named_tensors() const {
    auto tensors = named_buffers();
    checkpoint::Manifest says;
    if (options_.adapters_alone) history_.describe(says);
    const std::set<std::string_view> settled(says.settled.begin(), says.settled.end());
    for (const zero::Buffer& parameter : model_.named_parameters()) {
        const bool trained = parameter.tensor.requires_grad();
        if (options_.adapters_alone && !trained && !settled.contains(parameter.name)) continue;
        tensors.push_back({parameter.name, parameter.tensor, trained});
    }
    return tensors;
}

STRATA_INLINE std::vector<checkpoint::FileRecord> Checkpoints::write_models(const std::filesystem::path& folder) {
    const auto tensors = named_tensors();
    const auto write_one = [&](std::string_view file) {
        auto record = checkpoint::write_model(session_.comm(), folder / file, tensors,
                                              [&](const at::Tensor& tensor) { engine_.hold_unit_of(tensor); });
        engine_.drop_units();
        return record;
    };
    std::vector<checkpoint::FileRecord> records{write_one(checkpoint::model_file)};
    if (options_.averages) {
        engine_.swap_average();
        records.push_back(write_one(checkpoint::average_file));
        engine_.swap_average();
    }
    return records;
}

STRATA_INLINE std::uint64_t Checkpoints::bytes_needed() {
    auto& comm = session_.comm();
    constexpr std::uint64_t beside = std::uint64_t{1} << 20;  // the manifest's frame, lines of the log, a report
    const auto tensors = comm.rank() == 0 ? named_tensors() : std::vector<checkpoint::NamedTensor>{};
    const std::uint64_t mine = checkpoint::bytes_on_disk(engine_.state_outline(), tensors, options_.averages ? 2 : 1);
    std::vector<std::uint64_t> all(static_cast<std::size_t>(comm.world()));
    comm.all_gather(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}));
    return total_bytes_ = std::accumulate(all.begin(), all.end(), beside);
}

}  // namespace strata::train
