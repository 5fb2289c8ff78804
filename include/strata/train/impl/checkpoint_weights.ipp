#pragma once
// strata/train/impl/checkpoint_weights.ipp - which checkpoint is whole, and how masters come back to their parameters.

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <system_error>
#include <utility>

#include <ATen/ops/empty.h>

#include <strata/checkpoint/checkpoint.hpp>
#include <strata/core/error.hpp>
#include <strata/core/step_name.hpp>
#include <strata/train/checkpoint_weights.hpp>
#include <strata/zero/state.hpp>

namespace strata::train {
namespace detail {

/// The folder that checkpoints are in; of one checkpoint the folder around it.
inline std::filesystem::path checkpoints_at(const std::filesystem::path& place) {
    std::error_code none;
    const auto inside = place / "checkpoints";
    return std::filesystem::is_directory(inside, none) ? inside : place;
}

/// The step that a place is the checkpoint of, if it is one.
inline std::optional<std::int64_t> step_at(const std::filesystem::path& place) {
    std::filesystem::path name = place.lexically_normal();
    if (!name.has_filename()) name = name.parent_path();
    std::error_code none;
    if (!std::filesystem::exists(place / "manifest.json", none)) return std::nullopt;
    return core::step_of(name.filename().string());
}

inline std::string steps_text(const std::vector<std::pair<std::int64_t, std::filesystem::path>>& all) {
    constexpr std::size_t most = 8;
    std::string text;
    for (std::size_t i = all.size() - std::min(all.size(), most); i < all.size(); ++i)
        text += (text.empty() ? "" : ", ") + std::to_string(all[i].first);
    return all.size() > most ? "..., " + text : text;
}

inline bool is_needed(const checkpoint::FileRecord& file, CheckpointWeights which) {
    switch (which) {
        case CheckpointWeights::average:
            return file.name == checkpoint::average_file;
        case CheckpointWeights::masters:
            return file.name != checkpoint::average_file;
        case CheckpointWeights::parameters:
            break;
    }
    return file.name == checkpoint::model_file;
}

/// Throws corrupt_checkpoint, checkpoint_mismatch.
inline checkpoint::Manifest looked_at(const std::filesystem::path& folder, CheckpointWeights which) {
    checkpoint::Manifest manifest = checkpoint::read_manifest(folder / "manifest.json");
    checkpoint::detail::check_place(folder, manifest);
    const bool has_average =
        std::any_of(manifest.files.begin(), manifest.files.end(),
                    [](const checkpoint::FileRecord& file) { return file.name == checkpoint::average_file; });
    if (which == CheckpointWeights::average && !has_average)
        throw Error{Errc::checkpoint_mismatch,
                    "the checkpoint " + folder.string() + " has no moving average: its run kept none",
                    "use its weights, without --ema"};
    checkpoint::Manifest needed = manifest;
    std::erase_if(needed.files, [&](const checkpoint::FileRecord& file) { return !is_needed(file, which); });
    if (which == CheckpointWeights::masters) checkpoint::detail::check_complete(folder, needed);
    checkpoint::detail::verify_files(folder, needed, 0, 1);
    return manifest;
}

STRATA_INLINE std::filesystem::path model_file_of(const FoundCheckpoint& found) {
    return found.folder /
           (found.which == CheckpointWeights::average ? checkpoint::average_file : checkpoint::model_file);
}

STRATA_INLINE void read_masters(const std::vector<weights::LoadTarget>& targets, const FoundCheckpoint& found) {
    std::map<std::string, at::Tensor, std::less<>> tensors;
    for (const weights::LoadTarget& target : targets)
        for (const std::string& name : target.names) tensors.emplace(name, target.tensor.detach());
    checkpoint::StateReader state{found.folder, found.manifest};
    for (const zero::ParameterInfo& parameter : found.manifest.parameters) {
        const auto tensor = tensors.find(parameter.name);
        if (tensor == tensors.end() || tensor->second.sizes() != at::IntArrayRef{parameter.shape})
            throw Error{Errc::checkpoint_mismatch,
                        "the checkpoint " + found.folder.string() + " trains the parameter " + parameter.name +
                            ", which this model lacks or has in another shape",
                        "make the model as the run's was"};
        const at::Tensor values = at::empty(parameter.shape, at::TensorOptions{}.dtype(at::kFloat));
        state.read(zero::weight_kind, parameter.begin,
                   {values.data_ptr<float>(), static_cast<std::size_t>(values.numel())});
        tensor->second.copy_(values);
    }
}

}  // namespace detail

STRATA_INLINE FoundCheckpoint find_checkpoint(const std::filesystem::path& place, std::optional<std::int64_t> step,
                                              CheckpointWeights which) {
    if (const auto own = detail::step_at(place); own && (!step || step == own))
        return {place, detail::looked_at(place, which), which};
    const auto folder = detail::checkpoints_at(place);
    const auto all = checkpoint::detail::checkpoints_by_step(folder);
    if (all.empty())
        throw Error{Errc::not_found, "there is no checkpoint in " + folder.string(),
                    "name a run's output directory after its first checkpoint, or weights with --weights"};
    if (step) {
        const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == *step; });
        if (found == all.end())
            throw Error{Errc::not_found,
                        "there is no checkpoint of step " + std::to_string(*step) + " in " + folder.string(),
                        "use one of its steps: " + detail::steps_text(all)};
        return {found->second, detail::looked_at(found->second, which), which};
    }
    FoundCheckpoint found{{}, {}, which};
    for (auto at = all.rbegin(); at != all.rend(); ++at) {
        try {
            found.manifest = detail::looked_at(at->second, which);
            found.folder = at->second;
            return found;
        } catch (const Error& error) {
            if (!checkpoint::is_damage(error.code())) throw;
            found.notes.push_back("passed over " + at->second.string() + ": " + error.problem());
        }
    }
    std::string what = "no checkpoint in " + folder.string() + " is whole";
    for (const std::string& note : found.notes) what += "; " + note;
    throw Error{Errc::corrupt_checkpoint, what, "put back a copy of one, or train on and save another"};
}

}  // namespace strata::train
