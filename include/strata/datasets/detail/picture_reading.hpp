#pragma once
// strata/datasets/detail/picture_reading.hpp - what ranks are asked to read of pictures, what they answer, and what errors say of a picture.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/datasets/byte_budget.hpp>
#include <strata/datasets/picture_fault.hpp>
#include <strata/pictures/image_header.hpp>
#include <strata/storage/content_hash.hpp>

namespace strata::datasets::detail {

/// What is to be read of one picture.
struct ReadTask {
    enum What : int { header = 1, caption = 2, pixels = 4 };
    std::size_t index = 0;  ///< in the catalog
    int what = 0;
    std::string key;
    std::string version;
    std::uint64_t bytes = 0;
};

/// What came of it.
struct ReadAnswer {
    std::size_t index = 0;
    int what = 0;
    std::string failure;  ///< the file could not be read, which says nothing about it; the rest is then empty
    pictures::PictureSize size;
    std::string caption;
    storage::ContentHash content;  ///< where all of the file was read
    std::optional<PictureFault> size_fault;
    std::optional<PictureFault> pixel_fault;
    std::string note;  ///< what was wrong with the pixels and did no harm
};

[[nodiscard]] std::string pack(const std::vector<ReadTask>& tasks);
[[nodiscard]] std::vector<ReadTask> unpack_tasks(std::string_view bytes);
[[nodiscard]] std::string pack(const std::vector<ReadAnswer>& answers);
[[nodiscard]] std::vector<ReadAnswer> unpack_answers(std::string_view bytes);

/// What an error says of a picture. Throws it again if it says nothing: a store that cannot be reached.
struct Verdict {
    std::optional<PictureFault> fault;
    std::string failure;
};
[[nodiscard]] Verdict verdict_of(const Error& error);

/// What decoding all of a file shows.
struct Look {
    pictures::PictureSize size;         ///< as it is meant to be seen; empty: the fault is in the header
    std::optional<PictureFault> fault;  ///< none: it decodes
    std::string failure;                ///< the decoder gave up, which says nothing about the file
    std::string note;                   ///< Picture::note
};
/// Decodes all of a file. Takes memory from `memory` meanwhile. Throws nothing but what is no Error.
[[nodiscard]] Look look_at(std::span<const std::byte> file, ByteBudget& memory);

/// Throws Errc::picture_too_large for a picture beyond the limits, no_picture_library for one that is not decoded.
void require_usable(const pictures::ImageHeader& header);

}  // namespace strata::datasets::detail

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/picture_reading.ipp>
#endif
