#pragma once
// strata/options/layer_options.hpp - LayerOptions: options of an adapter for some of the layers, in place of those for all.

#include <string>

namespace strata::train {

/// Options for the adapted layers that a pattern fits. Of several in a list a layer has the first that fits it, and without one the options
/// for all. A pattern that fits no adapted layer is an error when the model is there.
///
///   adapter.by_layer = {{"ff.net.0.proj,ff.net.2", {.rank = 4}}, {"to_v", {.rank = 32, .alpha = 16}}};
///
///   Options  of a kind of adapter, whole: what is not given here has the kind's default
template <class Options>
struct LayerOptions {
    std::string layers;  ///< patterns as AdapterOptions::targets has them, with commas between: one of them fits
    Options options{};   ///< in place of AdapterOptions::kind
    std::string also{};  ///< more patterns, of which one has to fit besides; empty: nothing more is asked
    friend bool operator==(const LayerOptions&, const LayerOptions&) = default;
};

}  // namespace strata::train
