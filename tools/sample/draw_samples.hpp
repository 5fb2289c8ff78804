#pragma once
// tools/sample/draw_samples.hpp - draw_samples(): what `strata-train sample` does on every rank.

#include <strata/train/session.hpp>

#include "sample_settings.hpp"

namespace strata::tools {

/// Draws all pictures into the session's output directory: each rank its share, one picture after another, and rank 0 the grid. A picture's bits
/// depend on its prompt, its seed and the model, and neither on the other pictures nor on the ranks.
///
/// Text encoders are in memory first, and gone when the denoiser comes; that is gone when up to 16 pictures of a rank are decoded, and comes
/// again for the next ones.
/// Collective. Throws on all ranks what is wrong with the settings, the model and its weights; bad_value for a size that the model has not, and
/// for pictures that are there already and may not be replaced; io_failed, no_space.
void draw_samples(Session& session, const SampleSettings& settings);

/// The main of `strata-train sample`.
///
///   argv  whose first word is the program's name
int sample_main(int argc, char** argv);

}  // namespace strata::tools
