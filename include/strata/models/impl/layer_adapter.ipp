#pragma once
// strata/models/impl/layer_adapter.ipp - an adapter becomes a child of its layer.

#include <utility>

#include <strata/core/error.hpp>
#include <strata/models/layer_adapter.hpp>

namespace strata::models {

STRATA_INLINE void AdaptableLayer::attach(const std::string& name, std::shared_ptr<LayerAdapter> adapter,
                                          std::shared_ptr<const AdapterSwitch> acts) {
    if (adapter_)
        throw Error{Errc::bad_value, "a layer was given a second adapter",
                    "merge the first one into the weights, or attach one of both"};
    module().register_module(name, adapter);
    adapter_ = std::move(adapter);
    acts_ = std::move(acts);
}

}  // namespace strata::models
