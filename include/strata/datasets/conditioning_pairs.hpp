#pragma once
// strata/datasets/conditioning_pairs.hpp - Partners: the pictures of a conditioning data set, found by the names of others.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/config/dataset.hpp>
#include <strata/core/inline.hpp>
#include <strata/datasets/discovered.hpp>
#include <strata/datasets/sample.hpp>
#include <strata/pictures/conditioning.hpp>

namespace strata::datasets {

/// What pictures of that type are to a model.
[[nodiscard]] constexpr pictures::ConditioningKind kind_of(config::ConditioningType type) noexcept {
    return type == config::ConditioningType::mask ? pictures::ConditioningKind::mask
                                                  : pictures::ConditioningKind::picture;
}

/// The pictures of a conditioning data set that can be used. A name is what stands below the data set's folder, without
/// extension: "a/b.jpg" of one data set and "a/b.png" of another are a pair.
class Partners {
public:
    ///   set      index in config::DatasetList::conditioning
    ///   samples  as discover() gives them
    ///   place    of the data set, for messages
    Partners(std::size_t set, const config::ImageDataset& dataset, std::vector<Sample> samples, std::string place);
    Partners(const Partners&) = delete;
    Partners(Partners&&) noexcept = default;

    /// The picture that has the name of another; of several the one with its extension, too. nullptr: there is none.
    /// Throws Errc::ambiguous_pair where several have the name and none the extension.
    ///
    ///   key  of the other picture
    [[nodiscard]] const Sample* find(std::string_view key);
    /// One that was found, as a part of a sample.
    [[nodiscard]] ConditioningPicture part(const Sample& found) const;

    [[nodiscard]] const std::string& id() const noexcept { return id_; }
    /// In words, for a message about nothing found: where the pictures are, and how the first is called.
    [[nodiscard]] std::string place() const;
    /// How many were found by somebody.
    [[nodiscard]] std::int64_t used() const noexcept {
        return static_cast<std::int64_t>(std::count(is_found_.begin(), is_found_.end(), 1));
    }
    /// A line, if some were never found: how many, and the first.
    [[nodiscard]] std::vector<std::string> unused() const;

private:
    std::size_t set_;
    std::string id_;
    pictures::ConditioningKind kind_;
    std::vector<Sample> samples_;
    std::string place_;
    std::vector<std::pair<std::string_view, std::size_t>> names_;  // of samples_, sorted
    std::vector<char> is_found_;
};

/// Gives each sample its conditioning picture of one data set, behind those that it has. Samples without one are skipped,
/// and named by where(key); pairs whose aspect ratios differ beyond rounding to whole pixels are counted in a note, because
/// the conditioning picture is stretched. Local: a pure function of what was discovered. Throws Errc::ambiguous_pair, and
/// no_pairs where no sample is left.
///
///   found  of `dataset`
void pair_conditioning(Discovered& found, const config::ImageDataset& dataset, Partners& partners,
                       const std::function<std::string(const std::string& key)>& where);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/conditioning_pairs.ipp>
#endif
