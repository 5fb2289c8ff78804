#pragma once
// strata/pictures/detail/tiff_rows.hpp - rows of a TIFF file's samples, as 8-bit RGB or RGBA.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <strata/pictures/colour_profile.hpp>

namespace strata::pictures::detail {

/// What the samples of a page mean.
struct TiffSamples {
    enum Meaning { grey, inverted_grey, palette, colours, inks };
    Meaning meaning = grey;
    std::size_t count = 1;          // a pixel
    int bits = 8;                   // a sample; 1, 2, 4, 8 or 16, these in the byte order of this machine
    int alpha = 0;                  // 0 none, 1 multiplied into the colours, 2 on its own
    std::vector<std::uint8_t> map;  // of a palette: red, green, blue of each number

    /// Samples of colour; alpha comes after them.
    [[nodiscard]] std::size_t colour_samples() const noexcept {
        return meaning == inks ? 4 : meaning == colours ? 3 : 1;
    }
};

/// Rows of samples to rows of pixels.
class TiffRows {
public:
    TiffRows(const TiffSamples& samples, std::int64_t width, const ToSrgb& to_srgb)
        : samples_{samples}, to_srgb_{to_srgb}, bytes_(static_cast<std::size_t>(width) * samples.count) {
        if (samples.meaning == TiffSamples::inks || samples.alpha != 0)
            rgb_.resize(static_cast<std::size_t>(width) * 3);
        if (samples.meaning == TiffSamples::inks) inks_.resize(static_cast<std::size_t>(width) * 4);
    }

    /// Takes `count` samples of a row, each to the `step`-th place from `first` on: all samples, or those of a plane.
    void take(const std::uint8_t* row, std::size_t count, std::size_t first, std::size_t step) {
        const bool whole = samples_.meaning != TiffSamples::palette;
        std::uint8_t* out = bytes_.data() + first;
        for (std::size_t i = 0; i < count; ++i, out += step) {
            if (samples_.bits == 8) {
                *out = row[i];
            } else if (samples_.bits == 16) {
                std::uint16_t value = 0;
                std::memcpy(&value, row + i * 2, 2);
                *out = static_cast<std::uint8_t>(value >> 8);
            } else {
                const std::size_t bits = static_cast<std::size_t>(samples_.bits);
                const unsigned most = (1U << bits) - 1;
                const unsigned value = (row[i * bits / 8] >> (8 - bits - i * bits % 8)) & most;
                *out = static_cast<std::uint8_t>(whole ? value * 255 / most : value);
            }
        }
    }
    /// All samples of a row. Alpha is taken out of colours of 16 bits before they become 8, so `row` changes.
    void take_pixels(std::uint8_t* row, std::size_t pixels) {
        if (samples_.bits == 16 && samples_.alpha == 1) {
            const std::size_t colours = samples_.colour_samples();
            for (std::size_t x = 0; x < pixels; ++x) {
                std::array<std::uint16_t, 8> values{};
                std::uint8_t* const at = row + x * samples_.count * 2;
                std::memcpy(values.data(), at, (colours + 1) * 2);
                for (std::size_t c = 0; c < colours; ++c)
                    values[c] = divided<std::uint16_t>(values[c], values[colours]);
                std::memcpy(at, values.data(), colours * 2);
            }
        }
        take(row, pixels * samples_.count, 0, 1);
    }

    /// What was taken, to `out`: 3 bytes a pixel, or 4 with alpha.
    void give(std::size_t pixels, bool alpha_is_divided, std::uint8_t* out) {
        const std::size_t colours = samples_.colour_samples();
        const bool has_alpha = samples_.alpha != 0;
        const std::size_t count = samples_.count;
        if (samples_.alpha == 1 && !alpha_is_divided && samples_.meaning != TiffSamples::palette)
            for (std::size_t x = 0; x < pixels; ++x) {
                std::uint8_t* const at = bytes_.data() + x * count;
                for (std::size_t c = 0; c < colours; ++c) at[c] = divided<std::uint8_t>(at[c], at[colours]);
            }
        std::uint8_t* const rgb = has_alpha ? rgb_.data() : out;
        switch (samples_.meaning) {
            case TiffSamples::grey:
            case TiffSamples::inverted_grey: {
                const unsigned turn = samples_.meaning == TiffSamples::grey ? 0 : 255;
                for (std::size_t x = 0; x < pixels; ++x)
                    std::fill_n(rgb + x * 3, 3, static_cast<std::uint8_t>(bytes_[x * count] ^ turn));
                break;
            }
            case TiffSamples::palette:
                for (std::size_t x = 0; x < pixels; ++x)
                    std::memcpy(rgb + x * 3, samples_.map.data() + std::size_t{bytes_[x * count]} * 3, 3);
                break;
            case TiffSamples::colours:
                for (std::size_t x = 0; x < pixels; ++x) std::memcpy(rgb + x * 3, bytes_.data() + x * count, 3);
                break;
            case TiffSamples::inks:
                for (std::size_t x = 0; x < pixels; ++x)
                    std::memcpy(inks_.data() + x * 4, bytes_.data() + x * count, 4);
                to_srgb_.inks_to_rgb(inks_.data(), rgb, pixels, false);
                break;
        }
        if (!has_alpha) return;
        for (std::size_t x = 0; x < pixels; ++x) {
            std::memcpy(out + x * 4, rgb + x * 3, 3);
            out[x * 4 + 3] = bytes_[x * count + colours];
        }
    }

private:
    /// A colour that alpha was multiplied into, without it.
    template <class Number>
    [[nodiscard]] static Number divided(Number colour, Number alpha) noexcept {
        constexpr std::uint32_t most = static_cast<Number>(-1);
        if (alpha == 0) return 0;
        return static_cast<Number>(std::min((std::uint32_t{colour} * most + alpha / 2) / alpha, most));
    }

    const TiffSamples& samples_;
    const ToSrgb& to_srgb_;
    std::vector<std::uint8_t> bytes_;
    std::vector<std::uint8_t> rgb_;
    std::vector<std::uint8_t> inks_;
};

}  // namespace strata::pictures::detail
