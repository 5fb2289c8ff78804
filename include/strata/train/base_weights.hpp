#pragma once
// strata/train/base_weights.hpp - base_weights_id(): what the frozen weights beneath adapters are known by in checkpoints.

#include <string>

#include <strata/checkpoint/manifest.hpp>
#include <strata/core/inline.hpp>
#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/session.hpp>

namespace strata::train {

/// 32 hexadecimal digits of the names, types and shapes of a model's frozen parameters, and of values of each, in their order: all of one of
/// up to 16384 elements, else 16 pieces of 1024, the first and the last among them, evenly apart. The values are those that the
/// model computes with, so that other formats have other ids. A change of a few values in the midst of one large parameter is not noticed.
///
/// Units are gathered one at a time, as to write a checkpoint of them: under ZeroStage<3> the cost of a forward pass's gathering. The same on
/// every rank. Collective. Throws what gathering throws.
[[nodiscard]] std::string base_weights_id(Session& session, AnyModel& model, AnyEngine& engine);

/// [ST2128] in full where a checkpoint's adapters were trained over other base weights than this run's; empty where they were not, and where
/// either does not say.
[[nodiscard]] std::string base_change(const checkpoint::Manifest& then, const checkpoint::Manifest& now);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/base_weights.ipp>
#endif
