#pragma once
// strata/config/impl/dataset_findings.ipp - what became of each key of a dataset list.

#include <algorithm>
#include <optional>
#include <string>

#include <strata/config/dataset_list.hpp>
#include <strata/config/findings.hpp>
#include <strata/config/problems.hpp>
#include <strata/config/trainer_config.hpp>

namespace strata::config::detail {

/// "data.json:4:7: key '[1].repeats' is ..." as a finding.
inline Finding finding_in_list(const Error& problem, const Document& document) {
    Finding finding;
    finding.effect = Effect::refused;
    finding.code = problem.code();
    finding.fix = problem.fix();
    finding.words = problem.problem();
    if (!finding.words.starts_with(document.source)) return finding;
    const std::size_t end = finding.words.find(": ", document.source.size());
    if (end == std::string::npos) return finding;
    finding.place = finding.words.substr(0, end);
    finding.words.erase(0, end + 2);
    constexpr std::string_view mark = "key '";
    const std::size_t close = finding.words.find("' ", mark.size());
    if (!finding.words.starts_with(mark) || close == std::string::npos) return finding;
    finding.key = finding.words.substr(mark.size(), close - mark.size());
    finding.words.erase(0, close + 2);
    for (const char c : "/" + finding.key) {
        if (c == ']') continue;
        const bool is_step = c == '[' || c == '.';
        if (!is_step)
            finding.pointer += c;
        else if (!finding.pointer.ends_with('/'))
            finding.pointer += '/';
    }
    return finding;
}

template <class Settings>
void find_keys(const Node& entry, const Schema<Settings>& schema, Findings& findings) {
    for (const Node::Member& member : entry.members()) {
        if (findings.of(member.value.pointer()) != nullptr) continue;
        const auto is_named = [&](const auto& one) { return one.key == member.key; };
        if (member.key.starts_with('_')) {
            findings.no_effect(member.value, "a note for people");
            continue;
        }
        if (member.key == "target_downsample_size" && entry.find("maximum_image_size") == nullptr) {
            findings.warn_no_effect(member.value, "no picture is larger than a `maximum_image_size` that is not given");
            continue;
        }
        const auto idle = std::find_if(schema.idle().begin(), schema.idle().end(), is_named);
        if (idle != schema.idle().end())
            findings.warn_no_effect(member.value, std::string{idle->why});
        else
            findings.acts(member.value, member.key);
    }
}

/// The list, where nothing of it is refused; every key of every entry is among the findings.
inline std::optional<DatasetList> look_at_datasets(const Document& document, const ImageDataset& defaults,
                                                   Findings& findings) {
    Problems problems;
    std::optional<DatasetList> list;
    problems.during([&] { list = read_datasets(document, defaults); });
    for (const Remark& remark : document.remarks)
        if (!remark.refused) findings.take({document.source, {}, {remark}});
    for (const Error& problem : problems.all()) findings.add(finding_in_list(problem, document));
    for (const Node& entry : document.root.elements()) {
        const Node* const type = entry.find("dataset_type");
        const std::string kind = type == nullptr ? "image" : type->scalar();
        if (const Node* const off = entry.find("disabled"); off != nullptr && off->flag().value_or(false)) {
            findings.no_effect(*off, "the entry is left out");
        } else if (kind == "text_embeds") {
            find_keys(entry, text_embeds_schema(), findings);
        } else if (kind == "image_embeds") {
            find_keys(entry, image_embeds_schema(), findings);
        } else if (kind == "conditioning") {
            find_keys(entry, conditioning_schema(), findings);
        } else {
            find_keys(entry, image_schema(), findings);
        }
    }
    return list;
}

}  // namespace strata::config::detail
