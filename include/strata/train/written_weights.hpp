#pragma once
// strata/train/written_weights.hpp - write_weights(): a trainer's model becomes files for other programs.

#include <filesystem>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/session.hpp>
#include <strata/weights/save_weights.hpp>

namespace strata::train {

/// Trainer::save_weights(). Collective; errors are its.
///
///   averages  the engine keeps an average
std::vector<std::filesystem::path> write_weights(Session& session, AnyModel& model, AnyEngine& engine, bool averages,
                                                 const std::filesystem::path& path,
                                                 const weights::SaveOptions& options);

/// The same of these tensors of the model, which may be written as something else.
std::vector<std::filesystem::path> write_tensors(Session& session, AnyEngine& engine, bool averages,
                                                 const std::filesystem::path& path,
                                                 std::vector<weights::SavedTensor> tensors,
                                                 const weights::SaveOptions& options);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/written_weights.ipp>
#endif
