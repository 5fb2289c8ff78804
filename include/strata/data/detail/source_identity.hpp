#pragma once
// strata/data/detail/source_identity.hpp - what the batches of a PictureSource follow from, as names and texts.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/data/source_options.hpp>
#include <strata/datasets/collection.hpp>

namespace strata::data::detail {

/// See PictureSource::identity(). Cost: a hash over the keys and captions of all samples.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> source_identity(const SourceOptions& options,
                                                                               const datasets::Collection& collection,
                                                                               std::string_view picture_id,
                                                                               std::string_view caption_id);

}  // namespace strata::data::detail

#ifndef STRATA_COMPILED
#include <strata/data/impl/source_identity.ipp>
#endif
