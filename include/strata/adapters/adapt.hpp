#pragma once
// strata/adapters/adapt.hpp - adapt(): a model's weights are frozen, and layers that are named have adapters, which are trained.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <strata/adapters/load_adapter_file.hpp>
#include <strata/adapters/targets.hpp>
#include <strata/core/inline.hpp>
#include <strata/models/adaptable_model.hpp>
#include <strata/models/layer_adapter.hpp>
#include <strata/policy/adapter.hpp>

namespace strata::adapters {

/// A kind of adapter:
///
///   Options        with defaults, copyable; they may have describe() and check() as others have
///   name           of the child of a layer that it becomes: its parameters are LAYER.name.*
///   make(s, o)     an adapter for a layer of that shape, which changes nothing at first. Its parameters are fp32 on the CPU; random numbers
///                  come from libtorch's default generator
template <class K>
concept AdapterKind = requires(const models::LayerShape& shape, const typename K::Options& options) {
    { K::name } -> std::convertible_to<std::string_view>;
    { K::make(shape, options) } -> std::convertible_to<std::shared_ptr<models::LayerAdapter>>;
}
&&std::default_initializable<typename K::Options>&& std::copyable<typename K::Options>;

/// A layer that adapters can be attached to, by its path in the model.
struct NamedAdaptable {
    std::string path;
    models::AdaptableLayer* layer = nullptr;  ///< the model's own
};
/// All of a model's, in order of registration.
[[nodiscard]] std::vector<NamedAdaptable> adaptable_layers(torch::nn::Module& model);

/// What adapt() did to a model. The model outlives it.
class Adapted {
public:
    Adapted(std::vector<NamedAdaptable> layers, std::shared_ptr<models::AdapterSwitch> acts)
        : layers_{std::move(layers)}, acts_{std::move(acts)} {}
    /// Those with an adapter.
    [[nodiscard]] const std::vector<NamedAdaptable>& layers() const noexcept { return layers_; }
    /// Whether adapters act; models::AdaptersOff switches them off for a while.
    [[nodiscard]] const std::shared_ptr<models::AdapterSwitch>& acts() const noexcept { return acts_; }
    /// Elements of all adapters.
    [[nodiscard]] std::int64_t numel() const;
    /// Whether nothing of the model but adapters is trained, as adapt() leaves it; a program may unfreeze more. Local.
    [[nodiscard]] bool base_is_frozen(const torch::nn::Module& model) const;
    /// Writes the merged weights in place of the layers' own, and switches the adapters off: the model computes what it did, dropout
    /// aside, as one without adapters. Sums are in fp32 and rounded once to the weights' type: pictures in fp32 are the same up to 1e-5, and a
    /// weight in bf16 is off by at most 2^-9 of itself. Local.
    ///
    /// All weights are whole: at stages 0 to 2 always, under ZeroStage<3> inside of Trainer::with_whole_model(), where all ranks call it: shards keep
    /// what all of them wrote. The weights stay merged, and adapters that were switched on again would act once more.
    /// Throws Errc::wrong_call_order, and changes nothing, where a weight has no memory.
    void merge();

private:
    std::vector<NamedAdaptable> layers_;
    std::shared_ptr<models::AdapterSwitch> acts_;
};

namespace detail {

/// An adapter for the layer of that path.
using MakeAdapter =
    std::function<std::shared_ptr<models::LayerAdapter>(const models::LayerShape& shape, const std::string& path)>;
/// Freezes the model and attaches what make() returns to the layers that targets name.
///
///   lists  of patterns of options of their own: check_own_options()
[[nodiscard]] Adapted adapt(torch::nn::Module& model, const std::vector<std::string>& targets,
                            const std::vector<std::string>& excluded, const std::vector<std::string>& lists,
                            const std::string& name, const MakeAdapter& make);

}  // namespace detail

/// Freezes every parameter of a model and attaches an adapter to each layer that a target names (fits()): then only the adapters' parameters
/// require a gradient. Before an engine takes the model; one made in_units() too, whose weights have no memory yet. Local: every
/// rank does it alike, with generators that stand alike.
///
///   by_layer  options of some of the layers in place of `options`; of several that fit a layer, the first
/// Throws Errc::bad_value as targeted() does, for patterns of by_layer that fit no adapted layer, where a layer has an adapter already, and
/// what make() throws.
template <AdapterKind Kind>
[[nodiscard]] Adapted adapt(torch::nn::Module& model, const typename Kind::Options& options,
                            const std::vector<std::string>& targets, const std::vector<std::string>& excluded = {},
                            const std::vector<train::LayerOptions<typename Kind::Options>>& by_layer = {}) {
    return detail::adapt(model, targets, excluded, pattern_lists(by_layer), std::string{Kind::name},
                         [&](const models::LayerShape& shape, const std::string& path) {
                             const auto* const own = own_options(by_layer, path);
                             return Kind::make(shape, own == nullptr ? options : *own);
                         });
}

}  // namespace strata::adapters

namespace strata {

/// What a trainer does for Adapter<Kind>.
template <class Kind>
class Adapter<Kind>::work {
    static_assert(
        adapters::AdapterKind<Kind>,
        "[ST0154] Adapter<Kind> names a type that is no kind of adapter. Fix: give it `struct Options` with defaults, "
        "`static constexpr std::string_view name` and `static std::shared_ptr<strata::models::LayerAdapter> make(const "
        "strata::models::LayerShape&, const Options&)` (docs/write-an-adapter.md).");

public:
    ///   options  train::AdapterOptions<Kind>
    work(torch::nn::Module& model, const auto& options)
        : adapted_{adapters::adapt<Kind>(model, options.kind, adapters::patterns_of(options.targets),
                                         adapters::patterns_of(options.excluded), options.by_layer)} {
        if (options.init.empty()) return;
        const auto facts = adapters::facts_of<Kind>(options.kind, options.by_layer);
        begins_with_ = adapters::words_of(adapters::load_adapter_file(model, options.init, facts), options.init);
    }
    [[nodiscard]] adapters::Adapted& adapted() noexcept { return adapted_; }
    [[nodiscard]] models::AdaptersOff off() const { return models::AdaptersOff{adapted_.acts()}; }
    /// What the adapters have of the file that they begin with, in words. Empty: there is none.
    [[nodiscard]] const std::string& begins_with() const noexcept { return begins_with_; }

private:
    adapters::Adapted adapted_;
    std::string begins_with_;
};

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/adapt.ipp>
#endif
