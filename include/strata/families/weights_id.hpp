#pragma once
// strata/families/weights_id.hpp - weights_id(): what weights are known by in the names of what was cached with them.

#include <string>

#include <strata/core/inline.hpp>
#include <strata/weights/weight_files.hpp>

namespace strata::families {

/// 32 hexadecimal digits of the weights' names, types and shapes, and of values of each tensor: all of one of up to 64 KiB, else 16 pieces
/// of 4 KiB, the first and the last among them, evenly apart. Equal files have equal ids, wherever they lie and whenever they
/// were written; any training changes values everywhere, and so the id.
///
/// Not noticed is a change of a few values in the midst of one large tensor, a single row of an embedding, say. That is the price of
/// 14 MB to read where T5 v1.1 XXL has 9.5 GB, which a hash of everything would read at each start on every rank. Who edits a file in this way gives
/// its data sets another cache folder. Reads the files. Throws io_failed, corrupt_safetensors.
[[nodiscard]] std::string weights_id(const weights::WeightFiles& files);

}  // namespace strata::families

#ifndef STRATA_COMPILED
#include <strata/families/impl/weights_id.ipp>
#endif
