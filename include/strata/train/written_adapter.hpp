#pragma once
// strata/train/written_adapter.hpp - write_adapter(): the adapters of a trainer's model become a file for other programs.

#include <filesystem>
#include <optional>
#include <vector>

#include <strata/adapters/saved_adapter.hpp>
#include <strata/core/inline.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/session.hpp>

namespace strata::train {

struct WriteAdapterOptions {
    adapters::SaveAdapterOptions file{};    ///< names and what the file says of itself
    std::optional<storage::Dtype> dtype{};  ///< f32, bf16 or f16; none: as the adapters are computed with
    bool average = false;                   ///< the moving average in place of the adapters
};

/// Writes adapters::saved_adapter() of the model at any stage: units are gathered one at a time, rank 0 writes tensor by tensor, and a tensor has all
/// of its elements whatever the stage. Returns what was written, on rank 0. Collective. Throws on all ranks what saved_adapter() and
/// weights::save_weights() throw, and bad_value for an average that is not kept.
///
///   averages  the engine keeps an average
std::vector<std::filesystem::path> write_adapter(Session& session, AnyModel& model, AnyEngine& engine, bool averages,
                                                 const std::filesystem::path& path,
                                                 const WriteAdapterOptions& options = {});

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/written_adapter.ipp>
#endif
