#pragma once
// strata/adapters/impl/adapter_match.ipp - names and shapes of a file's adapters beside those of a model's layers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>

#include <strata/adapters/adapter_match.hpp>
#include <strata/adapters/impl/adapter_file.ipp>
#include <strata/adapters/impl/adapter_shapes.ipp>
#include <strata/adapters/impl/layer_names.ipp>
#include <strata/adapters/impl/numbered_layers.ipp>
#include <strata/core/error.hpp>
#include <strata/weights/file_values.hpp>

namespace strata::adapters {

namespace detail {

/// What is wrong with a file of adapters, each kind in a list of its own.
struct AdapterMisfits {
    std::vector<std::string> unknown{};  // modules of the file
    std::vector<std::string> unread{};   // tensors of the file
    std::vector<std::string> others{};   // sentences
    std::string nearest{};               // of an unknown one

    [[nodiscard]] bool any() const noexcept { return !unknown.empty() || !unread.empty() || !others.empty(); }
};

inline std::string listed_names(std::string_view what, const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return std::to_string(names.size()) + " " + std::string{what} + ": " + text;
}

[[noreturn]] inline void refuse(const AdapterFile& file, const AdapterMisfits& misfits) {
    std::vector<std::string> parts;
    const std::string kinds = kinds_of_unread(misfits.unread);
    if (!misfits.unknown.empty()) parts.push_back(listed_names("layers that the model does not have", misfits.unknown));
    if (!misfits.unread.empty())
        parts.push_back(listed_names("tensors that are of no LoRA, DoRA or LoKr", misfits.unread) +
                        (kinds.empty() ? "" : " (" + kinds + ")"));
    parts.insert(parts.end(), misfits.others.begin(), misfits.others.end());
    std::string all;
    for (const std::string& part : parts) all += (all.empty() ? "" : "; ") + part;
    throw Error{Errc::adapter_does_not_fit,
                "the adapter file '" + file.files().path().string() + "' (" + std::string{name_of(file.naming())} +
                    " names) does not fit the model: " + all,
                misfits.nearest.empty() ? "take an adapter of this model; AdapterFileOptions says what may be left"
                                        : misfits.nearest};
}

/// Whether all values are numbers. Reads the tensor, 4 MiB at a time.
inline bool is_finite(const weights::WeightFiles::Tensor& tensor) {
    constexpr std::int64_t most = std::int64_t{1} << 20;
    const std::int64_t numel = numel_of(tensor);
    const at::ScalarType type = tensor.entry->dtype == storage::Dtype::f64 ? at::kDouble : at::kFloat;
    for (std::int64_t begin = 0; begin < numel; begin += most) {
        const at::Tensor piece = at::empty({std::min(most, numel - begin)}, at::TensorOptions{}.dtype(type));
        weights::read_values(tensor, begin, piece);
        if (!at::isfinite(piece).all().item().toBool()) return false;
    }
    return true;
}
/// Throws bad_adapter_file with all tensors of the adapters that have NaN or infinity in them.
inline void check_finite(const AdapterMatch& match) {
    std::vector<std::string> names;
    std::set<const AdapterTensors*> seen;  // a fused one is several layers'
    for (const MatchedAdapter& adapter : match.adapters) {
        const AdapterTensors& own = *adapter.tensors;
        if (!seen.insert(&own).second) continue;
        for (const AdapterTensors::Tensor& tensor : {own.down, own.up, own.middle, own.magnitude, own.w1, own.w1_a,
                                                     own.w1_b, own.w2, own.w2_a, own.w2_b, own.t2}) {
            if (tensor && !is_finite(*tensor)) names.push_back(tensor->entry->name);
        }
        if (own.alpha && !std::isfinite(*own.alpha)) names.push_back(own.module + ".alpha");
    }
    if (!names.empty())
        throw Error{Errc::bad_adapter_file,
                    "the adapter file '" + match.file->files().path().string() + "' has " +
                        listed_names("tensors with NaN or infinity in them", names),
                    "take it from before the run that wrote it diverged"};
}

/// The layers of each module, of files that name them.
class NamedFinder {
public:
    NamedFinder(const std::vector<NamedLayer>& layers, ModelPart part) : names_{layers, part} {}
    [[nodiscard]] std::vector<FilePlace> find(const std::string& module) const { return names_.find(module); }
    [[nodiscard]] bool is_of_another_part(const std::string& module) const { return names_.is_of_another_part(module); }
    [[nodiscard]] std::string nearest(const std::string& module) const {
        std::string text;
        for (const std::string& name : names_.nearest(module)) text += (text.empty() ? "" : ", ") + name;
        return text.empty() ? text : "for " + module + " the model's nearest layers are " + text;
    }

private:
    LayerNames names_;
};

/// The same of files that number them.
class NumberedFinder {
public:
    NumberedFinder(const AdapterFile& file, const std::vector<NamedLayer>& layers, ModelPart part)
        : layers_{layers}, prefix_{std::string{name_of(part)} + ":"} {
        std::vector<std::string> classes = file.target_classes(name_of(part));
        if (classes.empty())  // what that library takes where nobody says otherwise
            classes = part == ModelPart::unet ? std::vector<std::string>{"CrossAttention", "Attention", "GEGLU"}
                                              : std::vector<std::string>{"CLIPAttention"};
        order_ = numbered_layers(layers, part, classes, true);
        if (part != ModelPart::unet || fits(file)) return;
        const std::vector<std::size_t> older = std::exchange(order_, numbered_layers(layers, part, classes, false));
        if (!fits(file)) order_ = older;
    }
    [[nodiscard]] std::vector<FilePlace> find(const std::string& module) const {
        if (!module.starts_with(prefix_)) return {};
        const auto place = number(std::string_view{module}.substr(prefix_.size()));
        if (!place || *place < 0 || *place >= static_cast<std::int64_t>(order_.size())) return {};
        const std::size_t layer = order_[static_cast<std::size_t>(*place)];
        return {FilePlace{.layer = layer, .rows = layers_[layer].rows()}};
    }
    [[nodiscard]] bool is_of_another_part(const std::string& module) const { return !module.starts_with(prefix_); }
    [[nodiscard]] std::string nearest(const std::string&) const {
        return "the model has " + std::to_string(order_.size()) + " layers of the classes that the file names";
    }

private:
    [[nodiscard]] bool fits(const AdapterFile& file) const {
        for (const AdapterTensors& tensors : file.modules()) {
            for (const FilePlace& place : find(tensors.module)) {
                if (!shape_problem(tensors, layers_[place.layer], place).empty()) return false;
            }
        }
        return true;
    }

    const std::vector<NamedLayer>& layers_;
    std::string prefix_;
    std::vector<std::size_t> order_;
};

template <class Finder>
void find_all(AdapterMatch& match, const Finder& finder, ModelPart part, const AdapterFileOptions& options) {
    AdapterMisfits misfits;
    std::map<std::size_t, std::string> module_of;  // by layer
    const auto may_be_left = [&](const std::string& name) { return options.may_be_left && options.may_be_left(name); };
    for (const AdapterTensors& tensors : match.file->modules()) {
        const std::vector<FilePlace> places = finder.find(tensors.module);
        if (places.empty()) {
            if (finder.is_of_another_part(tensors.module)) {
                ++match.of_other_parts;
            } else if (!may_be_left(tensors.module)) {
                misfits.unknown.push_back(tensors.module);
                if (misfits.nearest.empty()) misfits.nearest = finder.nearest(tensors.module);
            }
            continue;
        }
        std::string problem;
        for (const FilePlace& place : places) {
            if (problem.empty()) problem = shape_problem(tensors, match.layers[place.layer], place);
        }
        if (!problem.empty()) {
            misfits.others.push_back("'" + tensors.module + "' " + problem);
            continue;
        }
        for (const FilePlace& place : places) {
            const std::string& path = match.layers[place.layer].path;
            if (const auto [before, is_new] = module_of.emplace(place.layer, tensors.module); !is_new) {
                misfits.others.push_back("'" + before->second + "' and '" + tensors.module + "' are both the layer " +
                                         path);
                continue;
            }
            const std::int64_t rank = rank_of(tensors);
            const double scale =
                rank == 0 ? 1 : match.file->scale_of(tensors, name_of(part), path, rank, options.alpha);
            match.adapters.push_back({&tensors, place, scale});
        }
    }
    for (const std::string& name : match.file->unread()) {
        if (!finder.is_of_another_part(name) && !may_be_left(name)) misfits.unread.push_back(name);
    }
    for (const std::string& name : match.file->repeated())
        misfits.others.push_back("'" + name + "' is there under another name, too");
    if (!misfits.any() && match.adapters.empty() && !options.may_have_nothing)
        misfits.others.push_back("it has nothing for the " + std::string{name_of(part)} + ", and " +
                                 std::to_string(match.of_other_parts) + " adapters for other models of the pipeline");
    if (misfits.any()) refuse(*match.file, misfits);
    std::sort(match.adapters.begin(), match.adapters.end(),
              [](const auto& a, const auto& b) { return a.place.layer < b.place.layer; });
}

}  // namespace detail

STRATA_INLINE AdapterMatch match_adapter(std::shared_ptr<const AdapterFile> file, std::vector<NamedLayer> layers,
                                         const AdapterFileOptions& options) {
    AdapterMatch match{.file = std::move(file), .layers = std::move(layers), .adapters = {}, .of_other_parts = 0};
    const ModelPart part = options.part.value_or(part_of(match.layers));
    if (match.file->naming() == FileNaming::cloneofsimo)
        detail::find_all(match, detail::NumberedFinder{*match.file, match.layers, part}, part, options);
    else
        detail::find_all(match, detail::NamedFinder{match.layers, part}, part, options);
    detail::check_finite(match);
    return match;
}

}  // namespace strata::adapters
