#pragma once
// strata/zero/unit_link.hpp - UnitLink: what ties a unit of a model to the engine that has its parameters.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/zero/unit_values.hpp>

namespace strata::zero {

/// What an engine does around the forward and backward passes of a model's units.
class UnitHooks {
public:
    /// Whether its calls keep no activations and run forward again in backward.
    [[nodiscard]] virtual bool recomputes(std::int32_t unit) const = 0;

    virtual void before_forward(std::int32_t unit) = 0;
    /// outputs  those that backward enters the unit by; empty for a unit that is recomputed
    /// watched  how often input_done() comes after backward has entered this call
    virtual void after_forward(std::int32_t unit, const std::vector<at::Tensor>& outputs, std::size_t watched) = 0;
    virtual void forward_failed(std::int32_t unit) noexcept = 0;
    /// watched  as in after_forward()
    virtual void before_rerun(std::int32_t unit, std::size_t watched) = 0;
    /// Backward has made an input's gradient, the last thing it does in a unit.
    virtual void input_done(std::int32_t unit) = 0;

protected:
    ~UnitHooks() = default;
};

/// Ties a unit of a model to the engine that has its parameters; outlives either.
struct UnitLink {
    UnitHooks* hooks = nullptr;
    std::int32_t number = -1;  ///< in registration order
    std::string name{};        ///< as in the state dict: "block0"
    /// Of a unit without memory (in_units()), until an engine has taken it over; else nullptr.
    std::shared_ptr<DeferredUnit> deferred{};
};

/// What every Unit<Block> is as well, whatever its block: how a walk over a model finds units.
class UnitBase {
public:
    virtual ~UnitBase() = default;
    [[nodiscard]] const std::shared_ptr<UnitLink>& link() const noexcept { return link_; }

protected:
    UnitBase() = default;
    /// A copy is another unit. It has the same parameters, and so the values that these are to have.
    UnitBase(const UnitBase& other) { link_->deferred = other.link_->deferred; }
    UnitBase& operator=(const UnitBase& other) {
        link_->deferred = other.link_->deferred;
        return *this;
    }

private:
    std::shared_ptr<UnitLink> link_ = std::make_shared<UnitLink>();
};

}  // namespace strata::zero
