#pragma once
// strata/train/impl/written_weights.ipp - units are gathered one by one, for the weights and for their average.

#include <exception>
#include <optional>
#include <utility>

#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/train/written_weights.hpp>

namespace strata::train {

STRATA_INLINE std::vector<std::filesystem::path> write_weights(Session& session, AnyModel& model, AnyEngine& engine,
                                                               bool averages, const std::filesystem::path& path,
                                                               const weights::SaveOptions& options) {
    std::vector<weights::SavedTensor> tensors;
    for (const zero::Buffer& buffer : model.named_buffers()) tensors.push_back({buffer.name, buffer.tensor});
    for (const zero::Buffer& parameter : model.named_parameters())
        tensors.push_back({parameter.name, parameter.tensor});
    return write_tensors(session, engine, averages, path, std::move(tensors), options);
}

STRATA_INLINE std::vector<std::filesystem::path> write_tensors(Session& session, AnyEngine& engine, bool averages,
                                                               const std::filesystem::path& path,
                                                               std::vector<weights::SavedTensor> tensors,
                                                               const weights::SaveOptions& options) {
    auto& comm = session.comm();
    comm::agree(comm, [&] {
        if (!options.average || averages) return;
        throw Error{Errc::bad_value, "the average of the weights was to be written, and the trainer keeps none",
                    "compose it with Ema<>, or leave SaveOptions::average out"};
    });
    if (options.average) engine.swap_average();
    std::exception_ptr failure;
    std::vector<std::filesystem::path> files;
    try {
        files = weights::save_weights(
            comm, path, std::move(tensors), [&](const at::Tensor& tensor) { engine.hold_unit_of(tensor); }, options);
    } catch (...) {  // on all ranks
        failure = std::current_exception();
    }
    engine.drop_units();
    if (options.average) engine.swap_average();
    if (failure) std::rethrow_exception(failure);
    return files;
}

}  // namespace strata::train
