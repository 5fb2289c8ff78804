#pragma once
// tools/train/check_fresh.hpp - check_fresh(): no run starts over where that takes away what it begins with.

#include <strata/train/session.hpp>

#include "train_settings.hpp"

namespace strata::tools {

/// With --fresh, refuses a run whose denoiser, autoencoder, text encoders or first adapter are weights that an earlier run left in its own output
/// folder: the first fit() would remove them, hours of encoding later. Parts of a model that are not found are told by its family.
/// Collective. Throws Errc::bad_reference, before anything is removed, on every rank.
void check_fresh(Session& session, const TrainSettings& settings);

}  // namespace strata::tools
