#pragma once
// strata/train/impl/written_adapter.ipp - which of a model's parameters are written, and as what.

#include <utility>

#include <strata/comm/agree.hpp>
#include <strata/train/impl/written_weights.ipp>
#include <strata/train/written_adapter.hpp>
#include <strata/weights/save_weights.hpp>

namespace strata::train {

STRATA_INLINE std::vector<std::filesystem::path> write_adapter(Session& session, AnyModel& model, AnyEngine& engine,
                                                               bool averages, const std::filesystem::path& path,
                                                               const WriteAdapterOptions& options) {
    adapters::SavedAdapter saved;
    comm::agree(session.comm(), [&] {
        std::vector<weights::SavedTensor> parameters;
        for (const zero::Buffer& parameter : model.named_parameters())
            parameters.push_back({parameter.name, parameter.tensor});
        saved = adapters::saved_adapter(parameters, options.file);
    });
    return write_tensors(session, engine, averages, path, std::move(saved.tensors),
                         {.dtype = options.dtype, .average = options.average, .metadata = std::move(saved.metadata)});
}

}  // namespace strata::train
