#pragma once
// strata/datasets/captions.hpp - what is found beside a picture, and the captions the picture is shown with.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/dataset.hpp>
#include <strata/datasets/caption_filter.hpp>
#include <strata/datasets/sample.hpp>

namespace strata::datasets {

/// The captions of a caption file: every line with text, without white space at its ends. A byte order mark is left
/// out.
///
///   split  false (`disable_multiline_split`): all lines with text are one caption, with '\n' between
[[nodiscard]] std::vector<std::string> captions_in_text(std::string_view text, bool split = true);

/// All captions of a sample, at least one: the lines of its caption file (`textfile`), otherwise what was found.
[[nodiscard]] std::vector<std::string> found_captions(const Sample& sample, const config::ImageDataset& dataset);

/// The orders that caption_shuffle makes of a caption, in the order in which they are counted: the caption as it is
/// with `include_original`, then `count` orders that follow from seed and caption. The first `position_start` tags
/// stay. A caption of fewer than position_start + 2 tags has one order, itself.
///
/// Tags are what stands between the separators, without white space at their ends; empty ones are left out. An order
/// joins them with ", ", " " or ". "; a period at the caption's end stays there.
///
///   seed  `caption_shuffle.seed`, else the trainer's
class ShuffledCaption {
public:
    ShuffledCaption(std::string_view caption, const config::CaptionShuffle& shuffle, std::uint64_t seed);
    [[nodiscard]] std::int64_t count() const noexcept { return orders_ + originals_; }  ///< >= 1
    /// number in [0, count())
    [[nodiscard]] std::string at(std::int64_t number) const;

private:
    std::string caption_;
    std::vector<std::string> tags_;
    std::size_t fixed_ = 0;  // tags in front that stay
    std::string separator_;  // between tags of another order
    bool has_last_period_ = false;
    std::uint64_t seed_ = 0;
    std::int64_t originals_ = 1;
    std::int64_t orders_ = 0;
};

/// How a data set's captions are made of what was found with its pictures.
///
/// With `only_instance_prompt` there is one caption, `instance_prompt`. Otherwise `caption_filter_list` is applied to all
/// that were found (CaptionFilter), and those of which nothing is left are left out; where nothing is left of any, the
/// caption is empty. Of several one is drawn for each visit, evenly; of its shuffled orders one is drawn, evenly; and with `prepend_instance_prompt`,
/// `instance_prompt` and a space are put in front, so that it is never shuffled. (Not with `caption_strategy`
/// instanceprompt, where the caption is `instance_prompt` already.)
class CaptionRule {
public:
    ///   seed  the trainer's
    /// Throws Errc::bad_caption_filter.
    CaptionRule(const config::ImageDataset& dataset, std::uint64_t seed);

    /// The caption of one visit.
    ///
    ///   found   at least one
    ///   random  of the visit
    [[nodiscard]] std::string caption(const std::vector<std::string>& found, std::uint64_t random) const;

    /// All captions that caption() may give, without repetition, sorted.
    [[nodiscard]] std::vector<std::string> all(const std::vector<std::string>& found) const;

private:
    [[nodiscard]] std::string drawn(const std::vector<std::string>& left, std::uint64_t random) const;

    config::CaptionShuffle shuffle_;
    std::uint64_t seed_;
    CaptionFilter filter_;
    std::string only_;    // the one caption, if it is not empty
    std::string prefix_;  // with the space
};

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/captions.ipp>
#endif
