#pragma once
// strata/data/detail/source_identity.hpp - what the batches of an ImageTextSource follow from, as names and texts.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/data/image_text_source.hpp>
#include <strata/datasets/collection.hpp>

namespace strata::data::detail {

/// See ImageTextSource::identity(). Cost: a hash over the keys and captions of all samples.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> source_identity(const ImageTextOptions& options,
                                                                               const datasets::Collection& collection,
                                                                               std::string_view autoencoder,
                                                                               std::string_view text_encoder);

}  // namespace strata::data::detail

#ifndef STRATA_COMPILED
#include <strata/data/impl/source_identity.ipp>
#endif
