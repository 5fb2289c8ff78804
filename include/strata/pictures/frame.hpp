#pragma once
// strata/pictures/frame.hpp - Frame: which part of a picture becomes a training picture, and at what scale.

#include <cstdint>

#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// The picture is resized to width x height, and of that a box of `target` is kept.
///
/// The intermediary size need not be whole pixels: its two edges have the picture's own ratio then. It is at least as
/// large as the box in both edges, and the box is inside: left + target.width <= width, top + target.height <= height.
struct Frame {
    PictureSize target;  ///< the training size
    double width = 0;    ///< of the intermediary
    double height = 0;
    double left = 0;  ///< of the box, in pixels of the intermediary
    double top = 0;
    friend bool operator==(const Frame&, const Frame&) = default;
};

/// The middle of a picture at the smallest size that covers `target`: one edge of the intermediary is the target's.
///
///   picture, target  no edge below 1
constexpr Frame centered(const PictureSize& picture, const PictureSize& target) noexcept {
    const auto w = static_cast<double>(picture.width);
    const auto h = static_cast<double>(picture.height);
    const auto target_w = static_cast<double>(target.width);
    const auto target_h = static_cast<double>(target.height);
    Frame frame{target, target_w, target_h, 0, 0};
    if (target.width * picture.height >= target.height * picture.width)
        frame.height = h * target_w / w;
    else
        frame.width = w * target_h / h;
    frame.left = (frame.width - target_w) / 2;
    frame.top = (frame.height - target_h) / 2;
    return frame;
}
static_assert(centered({300, 100}, {50, 50}) == Frame{{50, 50}, 150, 50, 50, 0});

}  // namespace strata::pictures
