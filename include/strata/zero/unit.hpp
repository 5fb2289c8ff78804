#pragma once
// strata/zero/unit.hpp - Unit<Block>: marks a module as a grain of sharding.

namespace strata {

namespace zero {

/// What every Unit<Block> is as well, whatever its block: how a walk over a model finds units.
class UnitBase {
public:
    virtual ~UnitBase() = default;

protected:
    UnitBase() = default;
    UnitBase(const UnitBase&) = default;
    UnitBase& operator=(const UnitBase&) = default;
};

}  // namespace zero

/// A Block whose parameters are reduced, updated and gathered together; otherwise it is the Block itself.
///
///   blocks.push_back(register_module("block0", std::make_shared<Unit<Block>>(width)));
///
/// Names in the state dict do not change. Take what repeats in a model, a transformer block say: a unit is one
/// message, so it should hold some MB. Parameters outside of units are cut into buckets by size. A unit inside a
/// unit is part of the outer one. Under stages 0 to 2 forward() is Block's, without anything in between.
///
///   Block  a torch::nn::Module that is not final
template <class Block>
class Unit final : public Block, public zero::UnitBase {
public:
    using Block::Block;
};

}  // namespace strata
