#pragma once
// strata/data/impl/loaded_recipe.ipp - what a recipe made, looked at; and memory that goes back.

#include <cstdlib>

#include <strata/core/error.hpp>
#include <strata/core/kept_blocks.hpp>
#include <strata/data/detail/loaded_recipe.hpp>
#include <strata/data/impl/named_tensors.ipp>

namespace strata::data::detail {

/// The entries on the CPU, if they are as many as were asked for and each is as specified.
inline std::vector<NamedTensors> looked_at(std::vector<NamedTensors> entries, std::size_t count, const char* call,
                                           const std::vector<TensorSpec>& specs, const char* says) {
    if (entries.size() != count)
        throw Error{Errc::bad_recipe,
                    std::string{"the recipe's "} + call + " returned " + std::to_string(entries.size()) +
                        " entries of " + std::to_string(count),
                    "return one for each, in their order"};
    for (NamedTensors& entry : entries) {
        // A view of a batch would be written, and kept in memory, with all of it.
        for (auto& [name, tensor] : entry)
            if (tensor.defined()) {
                tensor = tensor.detach().to(at::kCPU).contiguous();
                if (tensor.storage().nbytes() > tensor.nbytes()) tensor = tensor.clone();
            }
        if (const std::string wrong = mismatch(entry, specs); !wrong.empty())
            throw Error{Errc::bad_recipe, std::string{"of what the recipe's "} + call + " returned, " + wrong,
                        std::string{"return what its "} + says + " says, or say there what it returns"};
    }
    return entries;
}

STRATA_INLINE std::vector<NamedTensors> LoadedRecipe::encode_pictures(PictureBatch pictures) {
    const std::lock_guard lock{of_pictures_};
    const at::NoGradGuard no_gradients;
    const pictures::PictureSize size = pictures.geometry.front().frame.target;
    pictures.pixels_B3HW = pictures.pixels_B3HW.to(device_);
    for (at::Tensor& one : pictures.conditioning) one = one.to(device_);
    return looked_at(encode(pictures), pictures.geometry.size(), "encode_pictures()", picture_tensors(size),
                     "picture_tensors()");
}

STRATA_INLINE std::vector<NamedTensors> LoadedRecipe::encode_captions(std::span<const std::string> captions) {
    const std::lock_guard lock{of_captions_};
    const at::NoGradGuard no_gradients;
    return looked_at(encode(captions), captions.size(), "encode_captions()", caption_tensors(), "caption_tensors()");
}

STRATA_INLINE void LoadedRecipe::release_picture_encoders() {
    const std::lock_guard lock{of_pictures_};
    drop_picture_encoders();
    core::give_back_memory();
}

STRATA_INLINE void LoadedRecipe::release_caption_encoders() {
    const std::lock_guard lock{of_captions_};
    drop_caption_encoders();
    core::give_back_memory();
}

}  // namespace strata::data::detail
