#pragma once
// strata/adapters/impl/merge_adapter_file.ipp - adapters are added to weights that have memory at once, to the others when they are read.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <strata/adapters/impl/adapter_match.ipp>
#include <strata/adapters/impl/layer_change.ipp>
#include <strata/adapters/merge_adapter_file.hpp>
#include <strata/core/error.hpp>
#include <strata/core/option_check.hpp>

namespace strata::adapters {

namespace detail {

inline constexpr std::int64_t piece_elements = std::int64_t{4} << 20;  // 16 MiB in fp32
inline constexpr std::string_view weight_ending = ".weight";

/// Rows that are merged at once.
inline std::int64_t piece_rows(const LayerChange& change) {
    if (change.needs_all_rows()) return change.layer().rows();
    return std::clamp(piece_elements / change.layer().columns(), std::int64_t{1}, change.layer().rows());
}
inline at::ScalarType sum_type(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

/// Of a weight that has memory.
inline void merge_in_place(const at::Tensor& weight, const LayerChange& change) {
    const at::Tensor own = weight.detach();
    const at::Tensor rows_OI = own.contiguous().view({change.layer().rows(), change.layer().columns()});
    const std::int64_t at_once = piece_rows(change);
    for (std::int64_t first = 0; first < rows_OI.size(0); first += at_once) {
        const at::Tensor piece = rows_OI.narrow(0, first, std::min(at_once, rows_OI.size(0) - first));
        piece.copy_(change.merged(piece.to(sum_type(piece.scalar_type())), first));
    }
    if (!own.is_contiguous()) own.copy_(rows_OI.view(own.sizes()));
}

inline std::optional<std::string_view> path_of_weight(std::string_view name) {
    if (!name.ends_with(weight_ending)) return std::nullopt;
    name.remove_suffix(weight_ending.size());
    return name;
}
inline std::optional<NamedLayer> layer_of(std::string_view name, std::vector<std::int64_t> shape) {
    const auto path = path_of_weight(name);
    if (!path || (shape.size() != 2 && shape.size() != 4)) return std::nullopt;
    return NamedLayer{std::string{*path}, std::move(shape)};
}
inline std::optional<NamedLayer> layer_of(const weights::LoadTarget& target) {
    if (!target.tensor.is_floating_point()) return std::nullopt;
    return layer_of(target.names.front(), target.tensor.sizes().vec());
}

}  // namespace detail

STRATA_INLINE std::vector<NamedLayer> named_layers(const std::vector<weights::LoadTarget>& targets) {
    std::vector<NamedLayer> layers;
    for (const weights::LoadTarget& target : targets) {
        if (auto layer = detail::layer_of(target)) layers.push_back(std::move(*layer));
    }
    return layers;
}

STRATA_INLINE std::vector<NamedLayer> named_layers(const std::vector<weights::WantedWeight>& wanted) {
    std::vector<NamedLayer> layers;
    for (const weights::WantedWeight& weight : wanted) {
        if (auto layer = detail::layer_of(weight.names.front(), weight.shape)) layers.push_back(std::move(*layer));
    }
    return layers;
}

STRATA_INLINE MergedAdapterFile merge_into(const std::vector<weights::LoadTarget>& targets,
                                           const std::filesystem::path& file, double strength,
                                           const AdapterFileOptions& options) {
    const at::NoGradGuard no_grad;
    if (!std::isfinite(strength))
        throw Error{Errc::bad_value, "an adapter was to be merged with the strength " + OptionCheck::shown(strength),
                    "give a number such as 1 or 0.8"};
    std::vector<const weights::LoadTarget*> target_of;  // by layer
    for (const weights::LoadTarget& target : targets) {
        if (detail::layer_of(target)) target_of.push_back(&target);
    }
    const AdapterMatch match = match_adapter(std::make_shared<const AdapterFile>(file), named_layers(targets), options);
    for (const MatchedAdapter& adapter : match.adapters) weights::check_has_memory(*target_of[adapter.place.layer]);
    std::map<zero::UnitLink*, std::map<std::size_t, LayerChange>> of_unit;
    for (const MatchedAdapter& adapter : match.adapters) {
        const weights::LoadTarget& target = *target_of[adapter.place.layer];
        LayerChange change{match.file, adapter, match.layers[adapter.place.layer], strength};
        if (target.link && target.link->deferred)
            of_unit[target.link.get()].emplace(target.link->deferred->find(target.tensor).value(), std::move(change));
        else
            detail::merge_in_place(target.tensor, change);
    }
    const std::string said = ", with " + match.file->files().digest() + " times " + OptionCheck::shown(strength);
    for (auto& [link, changes] : of_unit)
        link->deferred->values = std::make_shared<MergedValues>(std::move(changes), link->deferred->parameters,
                                                                link->deferred->values, said);
    return {match.file->naming(), match.adapters.size(), match.of_other_parts};
}

STRATA_INLINE MergedValues::MergedValues(std::map<std::size_t, LayerChange> changes,
                                         const std::vector<at::Tensor>& parameters,
                                         std::shared_ptr<zero::UnitValues> others, std::string said)
    : changes_{std::move(changes)}, others_{std::move(others)}, said_{std::move(said)} {
    for (const auto& [parameter, change] : changes_) types_.emplace(parameter, parameters[parameter].scalar_type());
}

STRATA_INLINE void MergedValues::read(std::size_t parameter, std::int64_t begin, const at::Tensor& values) {
    const auto changed = changes_.find(parameter);
    if (changed == changes_.end()) return others_->read(parameter, begin, values);
    const at::NoGradGuard no_grad;
    const LayerChange& change = changed->second;
    const std::int64_t I = change.layer().columns();
    const std::int64_t end = begin + values.numel();
    const at::ScalarType type = types_.at(parameter);  // the rounding is that of weights with memory
    const bool all = change.needs_all_rows();
    const std::int64_t last = all ? change.layer().rows() : (end + I - 1) / I;
    for (std::int64_t row = all ? 0 : begin / I; row < last;) {
        const std::int64_t rows = std::min(detail::piece_rows(change), last - row);
        const at::Tensor base_nI = at::empty({rows, I}, at::TensorOptions{}.dtype(type));
        others_->read(parameter, row * I, base_nI.view(-1));
        const at::Tensor merged = change.merged(base_nI.to(detail::sum_type(type)), row).to(type).view(-1);
        const std::int64_t from = std::max(begin, row * I);
        const std::int64_t to = std::min(end, (row + rows) * I);
        if (to > from) values.narrow(0, from - begin, to - from).copy_(merged.narrow(0, from - row * I, to - from));
        row += rows;
    }
}

STRATA_INLINE std::int64_t MergedValues::bytes_beside() const noexcept {
    std::int64_t most = 0;
    for (const auto& [parameter, change] : changes_) {
        const std::int64_t rows = detail::piece_rows(change);
        const std::int64_t pieces = 4 * rows * change.layer().columns();  // as they are, for the sum, and merged
        most = std::max(most, 3 * pieces + change.bytes_beside(rows));
    }
    return others_->bytes_beside() + most;
}

}  // namespace strata::adapters
