#pragma once
// strata/config/impl/simpletuner.ipp - the table of SimpleTuner's keys, and its files by their names.

#include <algorithm>
#include <cctype>

#include <strata/config/impl/document.ipp>
#include <strata/config/impl/shell_arithmetic.ipp>
#include <strata/config/impl/simpletuner_env.ipp>
#include <strata/config/impl/simpletuner_keys.ipp>
#include <strata/config/impl/simpletuner_learning_keys.ipp>
#include <strata/config/impl/simpletuner_optimizers.ipp>
#include <strata/config/impl/text_checks.ipp>
#include <strata/config/simpletuner.hpp>
#include <strata/config/toml.hpp>

namespace strata::config {

STRATA_INLINE bool ForeignKey::is_fine(const Node& value) const {
    if (value.is(NodeKind::null)) return true;
    if (value.is(NodeKind::list)) return value.elements().empty();
    if (value.is(NodeKind::object)) return value.members().empty();
    if (value.is(NodeKind::text) && value.scalar().empty()) return true;
    for (std::size_t begin = 0; begin < fine.size();) {
        const std::size_t end = std::min(fine.find('|', begin), fine.size());
        const std::string_view word = fine.substr(begin, end - begin);
        begin = end + 1;
        if (value.scalar() == word) return true;
        if (const auto wanted = detail::flag_of(word); wanted && value.flag() == wanted) return true;
        if (const auto wanted = detail::number_of(word); wanted && value.number() == wanted) return true;
    }
    return false;
}

STRATA_INLINE const std::vector<ForeignKey>& simpletuner_keys() {
    static const std::vector<ForeignKey> keys = [] {
        detail::ForeignKeyList list;
        detail::add_composition_keys(list);
        detail::add_learning_keys(list);
        detail::add_data_keys(list);
        detail::add_output_keys(list);
        std::vector<ForeignKey> all = std::move(list).all();
        std::stable_partition(all.begin(), all.end(), [](const ForeignKey& one) { return !one.key.ends_with('*'); });
        return all;
    }();
    return keys;
}

STRATA_INLINE const ForeignKey* find_simpletuner_key(std::string_view key) {
    const ForeignKey* family = nullptr;
    for (const ForeignKey& one : simpletuner_keys()) {
        if (one.key == key) return &one;
        const bool is_of = one.key.ends_with('*') && key.starts_with(one.key.substr(0, one.key.size() - 1));
        if (is_of && (family == nullptr || one.key.size() > family->key.size())) family = &one;
    }
    return family;
}

namespace detail {

/// A text that begins with NAME=, export, or a comment of a shell's before one of them.
inline bool looks_like_env(std::string_view text) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        while (line.starts_with(' ') || line.starts_with('\t') || line.starts_with("\xEF\xBB\xBF"))
            line.remove_prefix(1);
        if (line.empty() || line.starts_with('#') || line.starts_with('\r')) continue;
        if (line.starts_with("export ")) return true;
        std::size_t name = 0;
        while (name < line.size() && is_name_part(line[name])) ++name;
        return name > 0 && name < line.size() && line[name] == '=' &&
               std::none_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(name),
                            [](unsigned char c) { return std::islower(c) != 0; });
    }
    return false;
}

}  // namespace detail

STRATA_INLINE Document load_trainer_document(const std::filesystem::path& file) {
    const std::string text = detail::read_text(file);
    const std::string extension = file.extension().string();
    if (extension == ".toml") return parse_toml(detail::checked_text(text, file.string()), file.string());
    if (extension == ".env" || extension == ".sh" || detail::looks_like_env(text))
        return parse_env(text, file.string());
    return parse_json(text, file.string(), JsonDialect::relaxed);
}

}  // namespace strata::config
