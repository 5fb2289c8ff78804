#pragma once
// strata/pictures/mask.hpp - a mask of any size to its training size, with the edges that it has.

#include <span>

#include <strata/pictures/frame.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Resizes a mask to the frame's intermediary size, and keeps the frame's box of it: each value is the mean of the mask over
/// the area that its pixel covers. So what is all white stays 1 and what is all black 0 up to the edge between them, where
/// a pixel has the share that is white; nothing rings beyond an edge as it would with Lanczos, thin lines stay, and what was soft
/// stays soft. A model that wants two values takes those from 0.5.
///
/// The mask is the mean of red, green and blue, and 0 where it is transparent. The same bits on every CPU.
///
///   picture  the mask; its edges need not have the ratio of the picture that the frame was made for
///   values   height * width of the frame's target, in [0, 1]
///
/// Throws Errc::bad_picture for an empty picture, and where memory does not fit sizes.
void resize_mask_into(const Picture& picture, const Frame& frame, std::span<float> values);

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/mask.ipp>
#endif
