#pragma once
// strata/models/impl/unet_options.ipp - the family's two known members, what fits, and the blocks that follow.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <strata/models/unet_options.hpp>

namespace strata::models {

STRATA_INLINE UnetOptions sdxl_unet_options() {
    UnetOptions options;
    options.levels = {{320, 5, 1, false}, {640, 10, 2, true}, {1280, 20, 10, true}};
    options.cross_attention_dim = 2048;
    options.linear_projection = true;
    options.addition_time_dim = 256;
    options.addition_input_dim = 2816;
    return options;
}

STRATA_INLINE UnetOptions sd15_unet_options() {
    UnetOptions options;
    options.levels = {{320, 8, 1, true}, {640, 8, 1, true}, {1280, 8, 1, true}, {1280, 8, 1, false}};
    return options;
}

STRATA_INLINE std::vector<std::string> unet_problems(const UnetOptions& options) {
    std::vector<std::string> problems;
    const auto positive = [&](std::int64_t value, const std::string& what) {
        if (value < 1) problems.push_back(what + " is " + std::to_string(value) + ", and must be 1 at least");
        return value >= 1;
    };
    const auto divides = [&](std::int64_t part, std::int64_t whole, const std::string& what) {
        if (part >= 1 && whole >= 1 && whole % part != 0)
            problems.push_back(what + ": " + std::to_string(whole) + " is no multiple of " + std::to_string(part));
    };
    positive(options.in_channels, "the number of channels that it takes");
    positive(options.out_channels, "the number of channels that it gives");
    positive(options.layers_per_block, "the number of residual blocks of a level");
    positive(options.cross_attention_dim, "the width of a text token");
    positive(options.norm_groups, "the number of groups of norms");
    if (!(options.norm_eps > 0)) problems.push_back("the epsilon of norms is not above 0");
    if (options.levels.empty()) problems.emplace_back("it has no level");
    for (std::size_t i = 0; i < options.levels.size(); ++i) {
        const UnetOptions::Level& level = options.levels[i];
        const std::string of_level = " of level " + std::to_string(i);
        positive(level.channels, "the number of channels" + of_level);
        divides(options.norm_groups, level.channels, "groups do not divide the channels" + of_level);
        if (!level.has_attention && i + 1 < options.levels.size()) continue;
        positive(level.depth, "the number of transformer blocks" + of_level);
        positive(level.heads, "the number of heads" + of_level);
        divides(level.heads, level.channels, "heads do not divide the channels" + of_level);
    }
    if (!options.levels.empty() && options.levels.front().channels % 2 != 0)
        problems.emplace_back("the number of channels of level 0, which is the width of the features of time, is odd");
    if ((options.addition_time_dim == 0) != (options.addition_input_dim == 0)) {
        problems.emplace_back("of the two widths of time ids one is 0 and the other is not");
    } else if (options.addition_time_dim < 0 || options.addition_time_dim % 2 != 0) {
        problems.push_back("the width of a time id's features is " + std::to_string(options.addition_time_dim) +
                           ", and must be even");
    } else if (options.addition_time_dim > 0 && options.pooled_dim() < 1) {
        problems.push_back("six time ids have " + std::to_string(6 * options.addition_time_dim) +
                           " features, which of " + std::to_string(options.addition_input_dim) +
                           " leaves none for the pooled text");
    }
    return problems;
}

STRATA_INLINE std::vector<UnetBlockShape> down_block_shapes(const UnetOptions& options) {
    std::vector<UnetBlockShape> blocks;
    std::int64_t in = options.levels.front().channels;
    for (const UnetOptions::Level& level : options.levels) {
        UnetBlockShape block{.resnets = {},
                             .heads = level.heads,
                             .depth = level.has_attention ? level.depth : 0,
                             .resamples = blocks.size() + 1 < options.levels.size()};
        for (std::int64_t i = 0; i < options.layers_per_block; ++i) {
            block.resnets.emplace_back(in, level.channels);
            in = level.channels;
        }
        blocks.push_back(std::move(block));
    }
    return blocks;
}

STRATA_INLINE UnetBlockShape mid_block_shape(const UnetOptions& options) {
    const UnetOptions::Level& level = options.levels.back();
    return {.resnets = {{level.channels, level.channels}, {level.channels, level.channels}},
            .heads = level.heads,
            .depth = level.depth,
            .resamples = false};
}

STRATA_INLINE std::vector<UnetBlockShape> up_block_shapes(const UnetOptions& options) {
    std::vector<std::int64_t> skips{options.levels.front().channels};  // what the way down leaves, the last on top
    for (const UnetBlockShape& block : down_block_shapes(options)) {
        for (const auto& [taken, given] : block.resnets) skips.push_back(given);
        if (block.resamples) skips.push_back(block.channels());
    }
    std::vector<UnetBlockShape> blocks;
    std::int64_t in = options.levels.back().channels;
    for (auto level = options.levels.rbegin(); level != options.levels.rend(); ++level) {
        UnetBlockShape block{.resnets = {},
                             .heads = level->heads,
                             .depth = level->has_attention ? level->depth : 0,
                             .resamples = blocks.size() + 1 < options.levels.size()};
        for (std::int64_t i = 0; i <= options.layers_per_block; ++i) {
            block.resnets.emplace_back(in + skips.back(), level->channels);
            skips.pop_back();
            in = level->channels;
        }
        blocks.push_back(std::move(block));
    }
    return blocks;
}

}  // namespace strata::models
