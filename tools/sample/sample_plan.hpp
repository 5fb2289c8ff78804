#pragma once
// tools/sample/sample_plan.hpp - which pictures there will be, what their files are called, and what these say of themselves.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <strata/pictures/picture.hpp>
#include <strata/pictures/png.hpp>

namespace strata::tools {

struct PlannedPicture {
    std::size_t prompt = 0;  ///< its number
    std::uint64_t seed = 0;
    std::string file;  ///< "003_a-red-apple.png"
};

/// `count` pictures of each prompt, whose seeds follow one another from `seed` on.
[[nodiscard]] std::vector<PlannedPicture> plan_pictures(const std::vector<std::string>& prompts, std::int64_t count,
                                                        std::int64_t seed);

/// Letters and digits of a text, with '-' for what is between them, in at most 48 bytes: part of a name on any file system.
[[nodiscard]] std::string name_part(std::string_view prompt);

inline constexpr const char* grid_file = "grid.png";

/// Of the grid: as asked for, else so many that all `count` pictures of a prompt are in one row, and one of each in nearly a square.
[[nodiscard]] std::int64_t grid_columns(std::int64_t asked, std::size_t pictures, std::int64_t count);

/// What a picture was drawn by.
struct PictureFacts {
    std::string prompt;
    std::string negative;
    std::uint64_t seed = 0;
    std::int64_t steps = 0;
    double guidance = 0;
    double guidance_rescale = 0;
    double real_guidance = 1;
    std::string solver;   ///< as --solver names it; "model's own"
    std::string model;    ///< in words
    std::string weights;  ///< in words: a file, or a checkpoint with its step; empty: the model's own
    pictures::PictureSize size;
};

/// "parameters", as tools of this world write and read it; "strata", all of it as JSON; and "Software".
[[nodiscard]] std::vector<pictures::PngText> texts_of(const PictureFacts& facts);

}  // namespace strata::tools
