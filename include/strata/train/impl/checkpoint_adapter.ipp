#pragma once
// strata/train/impl/checkpoint_adapter.ipp - tensors and facts of a checkpoint become an adapter file.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <stdlib.h>  // mkdtemp

#include <ATen/ops/empty.h>

#include <strata/adapters/saved_adapter.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/train/adapter_facts.hpp>
#include <strata/train/checkpoint_adapter.hpp>
#include <strata/weights/file_values.hpp>
#include <strata/weights/save_weights.hpp>
#include <strata/weights/weight_files.hpp>
#include <strata/zero/state.hpp>

namespace strata::train {
namespace detail {

/// Throws checkpoint_mismatch where parameters of the model itself were trained, which no file of adapters has.
inline void check_trained(const FoundCheckpoint& found) {
    std::vector<std::string> trained = found.manifest.settled;
    for (const zero::ParameterInfo& parameter : found.manifest.parameters) trained.push_back(parameter.name);
    const auto other = std::find_if(trained.begin(), trained.end(),
                                    [](const std::string& name) { return !adapters::is_of_adapter(name); });
    if (other != trained.end())
        throw Error{Errc::checkpoint_mismatch,
                    "the run of the checkpoint " + found.folder.string() + " trained the parameter " + *other +
                        " beside its adapters",
                    "draw with the program that trains them"};
}

/// The tensors of a checkpoint's adapters, in memory.
inline std::vector<weights::SavedTensor> adapters_in(const FoundCheckpoint& found) {
    std::vector<weights::SavedTensor> tensors;
    std::vector<weights::LoadTarget> targets;
    const weights::WeightFiles file{model_file_of(found)};
    for (const auto& [name, tensor] : file.tensors()) {
        if (!adapters::is_of_adapter(name)) continue;  // buffers
        const std::vector<std::int64_t> shape{tensor.entry->shape.begin(), tensor.entry->shape.end()};
        const at::Tensor values = at::empty(shape, at::TensorOptions{}.dtype(at::kFloat));
        weights::read_values(tensor, 0, values.view(-1));
        tensors.push_back({name, values});
        targets.push_back({{name}, values});
    }
    if (found.which == CheckpointWeights::masters) read_masters(targets, found);
    return tensors;
}

STRATA_INLINE bool has_magnitudes(const FoundCheckpoint& found) {
    const std::vector<zero::ParameterInfo>& trained = found.manifest.parameters;
    return std::any_of(trained.begin(), trained.end(), [](const zero::ParameterInfo& parameter) {
        return parameter.name.ends_with(".lora.magnitude");
    });
}

STRATA_INLINE CheckpointAdapterFile::CheckpointAdapterFile(const FoundCheckpoint& found,
                                                           const std::vector<weights::LoadTarget>& targets) {
    if (found.manifest.adapter.empty())
        throw Error{
            Errc::checkpoint_mismatch,
            "the checkpoint " + found.folder.string() + " does not say its adapters' alpha: it is of an earlier strata",
            "let its run go on for a step, or draw with the adapter file that the run left"};
    const auto facts = facts_of_tensors(found.manifest.adapter);
    if (!facts)
        throw Error{Errc::checkpoint_mismatch,
                    "the adapters of the checkpoint " + found.folder.string() + " are not LoRA, DoRA or LoKr",
                    "draw with the program that trains them, which knows their kind"};
    check_trained(found);
    std::vector<weights::SavedTensor> tensors = adapters_in(found);
    for (const weights::LoadTarget& target : targets) tensors.push_back({target.names.front(), target.tensor});
    const adapters::SavedAdapter saved = adapters::saved_adapter(tensors, {.facts = *facts});

    std::error_code none;
    std::filesystem::path place = std::filesystem::temp_directory_path(none);
    std::string folder = ((none ? std::filesystem::path{"/tmp"} : place) / "strata-adapter-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr)
        throw Error{Errc::io_failed, "no folder " + folder + " can be made: " + std::generic_category().message(errno),
                    "set TMPDIR to a folder that this program may write in"};
    path_ = std::filesystem::path{folder} / adapters::adapter_file_name;
    try {
        comm::SelfComm self;
        weights::save_weights(self, path_, saved.tensors, [](const at::Tensor&) {}, {.metadata = saved.metadata});
    } catch (...) {
        std::filesystem::remove_all(folder, none);
        throw;
    }
}

STRATA_INLINE CheckpointAdapterFile::~CheckpointAdapterFile() {
    std::error_code none;
    std::filesystem::remove_all(path_.parent_path(), none);
}

}  // namespace detail

STRATA_INLINE bool holds_adapters_alone(const FoundCheckpoint& found) { return !found.manifest.base.empty(); }

}  // namespace strata::train
