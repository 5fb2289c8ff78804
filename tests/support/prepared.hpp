#pragma once
// tests/support/prepared.hpp - a source of the fake encoders, made and prepared.

#include <memory>
#include <utility>

#include <strata/config/dataset_list.hpp>
#include <strata/data/picture_source.hpp>

#include "fake_encoders.hpp"

namespace strata_test {

/// Collective.
///
///   Source  a PictureSource<FakeRecipe, Store>
template <class Source, class Comm>
[[nodiscard]] std::unique_ptr<Source> prepared(Comm& comm, strata::config::DatasetList list,
                                               const std::shared_ptr<MeanCodec>& codec,
                                               const std::shared_ptr<LengthText>& text,
                                               strata::data::SourceOptions options) {
    auto source = std::make_unique<Source>(comm, std::move(list), std::make_shared<const FakeRecipe>(*codec, *text),
                                           std::move(options));
    source->prepare();
    return source;
}

}  // namespace strata_test
