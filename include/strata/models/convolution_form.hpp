#pragma once
// strata/models/convolution_form.hpp - ConvolutionForm: what a convolution is besides its tensors.

#include <array>
#include <cstdint>

namespace strata::models {

/// What a convolution is besides its tensors: numbers for height and width.
struct ConvolutionForm {
    std::array<std::int64_t, 2> stride{1, 1};
    std::array<std::int64_t, 2> padding{0, 0};  ///< zeros on both sides
    std::array<std::int64_t, 2> dilation{1, 1};
};

}  // namespace strata::models
