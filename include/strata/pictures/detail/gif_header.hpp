#pragma once
// strata/pictures/detail/gif_header.hpp - the beginning of a GIF file (CompuServe, GIF89a).

#include <strata/pictures/detail/header_bytes.hpp>
#include <strata/pictures/header_fields.hpp>

namespace strata::pictures::detail {

/// The size is that of the canvas. Whether it has transparency stands further behind.
inline ImageHeader read_gif_header(HeaderBytes& bytes) {
    const Bytes head = bytes.all_at(0, 13);
    ImageHeader header;
    header.format = ImageFormat::gif;
    header.stored = {little_endian(head, 6, 2), little_endian(head, 8, 2)};
    if (header.stored.width < 1 || header.stored.height < 1) throw_bad_picture(bytes.source(), "its header is damaged");
    return header;
}

}  // namespace strata::pictures::detail
