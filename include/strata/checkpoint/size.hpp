#pragma once
// strata/checkpoint/size.hpp - how much room on a disk a checkpoint takes.

#include <cstdint>
#include <span>

#include <strata/checkpoint/checkpoint.hpp>
#include <strata/zero/state.hpp>

namespace strata::checkpoint {

/// Bytes of a rank's part of a checkpoint at most, with what a file system needs beside them. Local.
///
///   outline  this rank's runs of state
///   model    what is in the model files; empty on ranks that write none
///   copies   how many model files there are
[[nodiscard]] std::uint64_t bytes_on_disk(std::span<const zero::StateOutline> outline,
                                          std::span<const NamedTensor> model, int copies);

}  // namespace strata::checkpoint

#ifndef STRATA_COMPILED
#include <strata/checkpoint/impl/size.ipp>
#endif
