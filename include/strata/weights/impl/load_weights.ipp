#pragma once
// strata/weights/impl/load_weights.ipp - into tensors that have memory at once, into the others when they get it.

#include <map>
#include <optional>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <strata/core/error.hpp>
#include <strata/weights/file_values.hpp>
#include <strata/weights/impl/file_values.ipp>
#include <strata/weights/impl/weight_match.ipp>
#include <strata/weights/load_weights.hpp>
#include <strata/weights/weight_match.hpp>

namespace strata::weights {

namespace detail {

/// Of a tensor that has memory.
inline void fill(const at::Tensor& tensor, const WeightFiles::Tensor& from) {
    const at::Tensor values = tensor.detach();
    if (values.is_contiguous()) return read_values(from, 0, values.view(-1));
    const at::Tensor in_order = at::empty(values.sizes(), values.options().memory_format(at::MemoryFormat::Contiguous));
    read_values(from, 0, in_order.view(-1));
    values.copy_(in_order);
}

}  // namespace detail

STRATA_INLINE std::vector<WantedWeight> wanted_of(const std::vector<LoadTarget>& targets) {
    std::vector<WantedWeight> wanted;
    for (const LoadTarget& target : targets) {
        const std::optional<storage::Dtype> dtype = file_type(target.tensor.scalar_type());
        if (!dtype)
            throw Error{Errc::bad_parameter,
                        "'" + target.names.front() + "' has an element type that safetensors files do not have",
                        "register it in a type such as fp32 or bf16"};
        wanted.push_back({target.names, *dtype, target.tensor.sizes().vec()});
    }
    return wanted;
}

STRATA_INLINE void check_has_memory(const LoadTarget& target) {
    const at::Tensor& tensor = target.tensor;
    const bool deferred = target.link && target.link->deferred;
    if (deferred || !tensor.has_storage() || tensor.numel() == 0 || tensor.storage().data() != nullptr) return;
    throw Error{Errc::bad_parameter,
                "the parameter " + target.names.front() +
                    " has no memory, because an engine of ZeroStage<3> has it: nothing can be written into it",
                "load or merge weights before the model is given to a trainer"};
}

STRATA_INLINE LoadedWeights load_into(const std::vector<LoadTarget>& targets, const WeightFiles& files,
                                      const LoadOptions& options) {
    const at::NoGradGuard no_grad;
    for (const LoadTarget& target : targets) check_has_memory(target);
    const auto found = match_weights(wanted_of(targets), files, options);
    LoadedWeights loaded;
    std::map<zero::UnitLink*, std::vector<std::optional<WeightFiles::Tensor>>> of_unit;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const LoadTarget& target = targets[i];
        if (!found[i]) {
            loaded.missing.push_back(target.names.front());
            continue;
        }
        ++loaded.tensors;
        std::optional<std::size_t>
            place;  // none as well of a parameter that came after its unit was made, an adapter's
        if (target.link && target.link->deferred) place = target.link->deferred->find(target.tensor);
        if (!place) {
            detail::fill(target.tensor, *found[i]);
            continue;
        }
        auto& unit = of_unit[target.link.get()];
        unit.resize(target.link->deferred->parameters.size());
        unit[*place] = found[i];
    }
    for (auto& [link, tensors] : of_unit)
        link->deferred->values = std::make_shared<FileValues>(files, std::move(tensors), link->deferred->values);
    return loaded;
}

}  // namespace strata::weights
