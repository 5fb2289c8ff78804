#pragma once
// strata/pictures/impl/heic.ipp - libheif, without its turning.

#include <algorithm>
#include <cstring>
#include <memory>

#include <libheif/heif.h>

#include <strata/core/inline.hpp>
#include <strata/pictures/heic.hpp>
#include <strata/pictures/picture_fault.hpp>

namespace strata::pictures {

namespace detail {

[[noreturn]] inline void throw_heif_fault(const ::heif_error& error, std::string_view source) {
    const std::string_view why = error.message != nullptr ? error.message : "libheif gave up";
    if (error.subcode == heif_suberror_Security_limit_exceeded) throw_fault(Errc::picture_too_large, source, why);
    if (error.subcode == heif_suberror_End_of_data) throw_bad_picture(source, "the file ends too early");
    switch (error.code) {
        case heif_error_Invalid_input:
            throw_bad_picture(source, why);
        case heif_error_Unsupported_filetype:
        case heif_error_Unsupported_feature:
            throw_fault(Errc::unsupported_picture, source, why);
        default:
            throw_fault(Errc::picture_undecided, source, why);
    }
}

template <class T, void (*Release)(T*)>
struct ReleaseHeif {
    void operator()(T* thing) const noexcept { Release(thing); }
};
using HeifContext = std::unique_ptr<::heif_context, ReleaseHeif<::heif_context, ::heif_context_free>>;
using HeifHandle =
    std::unique_ptr<const ::heif_image_handle, ReleaseHeif<const ::heif_image_handle, ::heif_image_handle_release>>;
using HeifImage = std::unique_ptr<const ::heif_image, ReleaseHeif<const ::heif_image, ::heif_image_release>>;
using HeifOptions =
    std::unique_ptr<::heif_decoding_options, ReleaseHeif<::heif_decoding_options, ::heif_decoding_options_free>>;

/// A sample without the alpha that was multiplied into it.
inline std::uint8_t without_alpha(std::uint8_t sample, std::uint8_t alpha) noexcept {
    if (alpha == 0) return 0;
    return static_cast<std::uint8_t>(std::min((unsigned{sample} * 255 + alpha / 2) / alpha, 255U));
}

}  // namespace detail

STRATA_INLINE Picture decode_heic(std::span<const std::byte> file, const ImageHeader& header, std::string_view source,
                                  const DecodeLimits& limits) {
    const auto check = [&](const ::heif_error& error) {
        if (error.code != heif_error_Ok) detail::throw_heif_fault(error, source);
    };
    const detail::HeifContext context{::heif_context_alloc()};
    const detail::HeifOptions options{::heif_decoding_options_alloc()};
    if (!context || !options) throw std::bad_alloc{};
    ::heif_context_set_maximum_image_size_limit(context.get(),
                                                static_cast<int>(std::min<std::int64_t>(limits.edge, 1 << 17)));
    ::heif_context_set_max_decoding_threads(context.get(), 0);  // pictures are decoded side by side
    check(::heif_context_read_from_memory_without_copy(context.get(), file.data(), file.size(), nullptr));
    ::heif_image_handle* primary = nullptr;
    check(::heif_context_get_primary_image_handle(context.get(), &primary));
    const detail::HeifHandle handle{primary};
    const bool has_alpha = ::heif_image_handle_has_alpha_channel(handle.get()) != 0;
    options->ignore_transformations = 1;
    options->convert_hdr_to_8bit = 1;
    options->strict_decoding = 1;
    ::heif_image* decoded = nullptr;
    check(::heif_decode_image(handle.get(), &decoded, heif_colorspace_RGB,
                              has_alpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, options.get()));
    const detail::HeifImage image{decoded};
    const auto& layout = std::get<HeifLayout>(header.layout);
    int stride = 0;
    const std::uint8_t* const plane = ::heif_image_get_plane_readonly(image.get(), heif_channel_interleaved, &stride);
    if (plane == nullptr || layout.coded != PictureSize{::heif_image_get_primary_width(image.get()),
                                                        ::heif_image_get_primary_height(image.get())})
        detail::throw_fault(Errc::picture_undecided, source, "its header says two things of its size");

    Picture picture{header.stored.width, header.stored.height, has_alpha ? 4 : 3, {}};
    const auto row = static_cast<std::size_t>(picture.width * picture.channels);
    picture.pixels.resize(row * static_cast<std::size_t>(picture.height));
    for (std::int64_t y = 0; y < picture.height; ++y)
        std::memcpy(picture.pixels.data() + static_cast<std::size_t>(y) * row,
                    plane + (y + layout.top) * stride + layout.left * picture.channels, row);
    if (has_alpha && ::heif_image_handle_is_premultiplied_alpha(handle.get()) != 0)
        for (std::size_t i = 0; i < picture.pixels.size(); i += 4)
            for (std::size_t c = 0; c < 3; ++c)
                picture.pixels[i + c] = detail::without_alpha(picture.pixels[i + c], picture.pixels[i + 3]);
    return picture;
}

}  // namespace strata::pictures
