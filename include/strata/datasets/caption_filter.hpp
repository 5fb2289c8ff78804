#pragma once
// strata/datasets/caption_filter.hpp - CaptionFilter: what `caption_filter_list` takes out of captions and replaces.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace strata::datasets {

/// The entries of a `caption_filter_list`, in their order, each on what the one before left:
///
///   * `s/search/replace/` (or without the last '/') puts `replace` where the regular expression `search` matches;
///     `\1` and `\g<name>` in it are groups, `\/` a '/', and behind the last '/' may stand `i`: any case;
///   * any other entry is taken out wherever it stands as it is written, and then wherever it matches as a regular
///     expression. White space at its ends counts.
///
/// Expressions are Perl's (PCRE2), which for nearly all that people write are Python's; of UTF-8, each match anew, with
/// '^' and '$' the ends of the caption. White space at the ends of what is left is taken away.
///
/// Thread-safe; copies share the compiled expressions.
class CaptionFilter {
public:
    CaptionFilter() = default;
    /// Throws Errc::bad_caption_filter for an expression that is none, naming it, the data set and where it ends to be one.
    ///
    ///   dataset  id, for messages
    CaptionFilter(const std::vector<std::string>& entries, std::string_view dataset);

    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

    /// What is left of a caption; may be empty. Cost: about 0.1 us an entry and 100 bytes.
    /// Throws Errc::bad_caption_filter for an expression that is not done within ten million steps.
    [[nodiscard]] std::string filtered(std::string_view caption) const;

    /// The same of several: those of which something is left, or if there is none, one empty caption.
    [[nodiscard]] std::vector<std::string> filtered(const std::vector<std::string>& captions) const;

private:
    struct Entry;
    std::vector<std::shared_ptr<const Entry>> entries_;
    std::string dataset_;
};

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/caption_filter.ipp>
#endif
