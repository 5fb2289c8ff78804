#pragma once
// bench/image_pipeline/by_hand.hpp - the machine's limit: libjpeg-turbo's scaled decoder and a resize, and nothing
// else.

#include <cstddef>
#include <span>
#include <vector>

namespace by_hand {

/// Decodes JPEGs and resizes their middle, into memory that it keeps from picture to picture. One for each thread. No
/// file is read, no header looked at, no orientation, no limits, no other format; an error ends the program.
class Worker {
public:
    /// At the least scale of 1, 1/2, 1/4, 1/8 that is not below size x size, to {height, width, 3} bytes.
    void decode(std::span<const std::byte> file, int size);

    /// decode(), then the middle to 3 planes of size * size floats in [-1, 1], with Lanczos of three lobes.
    void decode_and_resize(std::span<const std::byte> file, int size, float* planes);

private:
    std::vector<unsigned char> pixels_;
    int width_ = 0;
    int height_ = 0;
    std::vector<float> row_;
};

}  // namespace by_hand
