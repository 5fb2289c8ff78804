#pragma once
// strata/data/detail/source_texts.hpp - settings of a source as text, and what it made again as lines.

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/dataset_list.hpp>
#include <strata/core/inline.hpp>
#include <strata/data/source_options.hpp>
#include <strata/data/tensor_cache.hpp>
#include <strata/datasets/report.hpp>
#include <strata/pictures/conditioning.hpp>

namespace strata::data::detail {

/// Places of cache entries that were made again, by why.
using Remade = std::map<CacheOutcome, std::set<std::string>>;

/// All settings that decide what is trained on, as text. Folders may be others on another node, and are left out.
[[nodiscard]] std::string settings_text(const SourceOptions& options, const config::DatasetList& list);
/// Throws Errc::bad_conditioning: a data set has conditioning pictures of other kinds than the model takes.
[[noreturn]] void refuse_conditioning(const config::ImageDataset& settings,
                                      const std::vector<pictures::ConditioningKind>& given,
                                      const std::vector<pictures::ConditioningKind>& wanted);
[[nodiscard]] std::string epoch_folder(std::string_view dataset);  // of entries kept for one epoch

/// What a seeded number is for, beside those of the sample plan.
enum SourcePurpose : std::uint64_t { crop = 101, caption_dropout = 102, caption = 103, sample = 104, bucket = 105 };

/// What a failure to make a tensor says first where an entry is there and cannot be used; else nothing.
[[nodiscard]] std::string cannot_remake(CacheOutcome why, const std::string& place);
void add(datasets::CacheReport& report, const Remade& remade);
/// Of latents and of captions.
[[nodiscard]] std::string pack(const std::array<Remade, 2>& remade);
/// Lines for the end of a run, from pack() of all ranks, which may have met the same entry.
[[nodiscard]] std::vector<std::string> remade_while_training(const std::vector<std::string>& packed);

}  // namespace strata::data::detail

#ifndef STRATA_COMPILED
#include <strata/data/impl/source_texts.ipp>
#endif
