#pragma once
// strata/train/impl/base_weights.ipp - a hash of samples of every frozen parameter.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <strata/core/error.hpp>
#include <strata/core/text.hpp>
#include <strata/storage/content_hash.hpp>
#include <strata/storage/digest.hpp>
#include <strata/train/base_weights.hpp>

namespace strata::train {
namespace detail {

/// Name, type, shape and a hash of values, as a line.
inline std::string line_of(const std::string& name, const at::Tensor& parameter) {
    constexpr std::int64_t piece = 1024, pieces = 16;
    std::string line = name + ' ' + std::string{parameter.dtype().name()};
    for (const std::int64_t edge : parameter.sizes()) line += ' ' + std::to_string(edge);
    const at::Tensor flat = parameter.detach().flatten();
    std::string bytes;
    const auto add = [&](const at::Tensor& part) {
        const at::Tensor here = part.cpu().contiguous();
        bytes.append(static_cast<const char*>(here.data_ptr()), here.nbytes());
    };
    if (flat.numel() <= piece * pieces) {
        add(flat);
    } else {
        for (std::int64_t i = 0; i < pieces; ++i) add(flat.narrow(0, (flat.numel() - piece) * i / (pieces - 1), piece));
    }
    return line + ' ' + storage::to_hex(storage::content_hash(core::bytes_of(bytes)).bytes) + '\n';
}

}  // namespace detail

STRATA_INLINE std::string base_weights_id(Session& session, AnyModel& model, AnyEngine& engine) {
    const std::vector<zero::ParameterInfo> frozen = engine.frozen_layout();
    std::set<std::string_view> names;
    for (const zero::ParameterInfo& parameter : frozen) names.insert(parameter.name);
    std::string lines;
    for (const zero::Buffer& parameter : model.named_parameters()) {
        if (!names.contains(parameter.name)) continue;
        engine.hold_unit_of(parameter.tensor);
        if (session.rank() == 0) lines += detail::line_of(parameter.name, parameter.tensor);
    }
    engine.drop_units();
    if (session.rank() == 0) lines = storage::to_hex(storage::content_hash(core::bytes_of(lines)).bytes);
    return session.comm().all_gather_varied(lines).front();
}

STRATA_INLINE std::string base_change(const checkpoint::Manifest& then, const checkpoint::Manifest& now) {
    if (then.base.empty() || now.base.empty() || then.base == now.base) return {};
    return Error{
        Errc::other_base_weights,
        "the adapter of the checkpoint was trained over other base weights: " +
            checkpoint::FactChange{"their id", then.base, now.base}.text(),
        "load the weights that it was trained over, in the same precision, or start over with --fresh; training "
        "goes on over those that there are"}
        .what();
}

}  // namespace strata::train
