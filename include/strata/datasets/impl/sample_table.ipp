#pragma once
// strata/datasets/impl/sample_table.ipp - a row of a table becomes what it says of a picture.

#include <algorithm>
#include <optional>
#include <utility>

#include <strata/core/inline.hpp>
#include <strata/core/text.hpp>
#include <strata/datasets/sample_table.hpp>

namespace strata::datasets {

namespace detail {

/// Which columns are read, each once, and which of them is what.
struct TableColumns {
    std::vector<tables::TableColumn> all;
    std::size_t key;
    std::optional<std::size_t> width;
    std::optional<std::size_t> height;
    std::vector<std::size_t> captions;
    std::vector<std::size_t> fallbacks;

    TableColumns(const config::ParquetColumns& columns, bool sizes, bool with_captions)
        : key{add(columns.filename_column, tables::CellUse::name)} {
        if (sizes) {
            width = add(columns.width_column, tables::CellUse::number);
            height = add(columns.height_column, tables::CellUse::number);
        }
        if (!with_captions) return;
        for (const std::string& name : columns.caption_column) captions.push_back(add(name, tables::CellUse::texts));
        for (const std::string& name : columns.fallback_caption_column)
            fallbacks.push_back(add(name, tables::CellUse::texts));
    }

private:
    std::size_t add(const std::string& name, tables::CellUse use) {
        const auto found = std::find_if(
            all.begin(), all.end(), [&](const tables::TableColumn& one) { return one.name == name && one.use == use; });
        const auto at = static_cast<std::size_t>(found - all.begin());
        if (at == all.size()) all.push_back({name, use});
        return at;
    }
};

}  // namespace detail

STRATA_INLINE void read_table(const tables::TableFile& file, const config::ParquetColumns& columns, bool sizes,
                              bool captions, const std::function<void(TableRow&&)>& visit) {
    const detail::TableColumns wanted{columns, sizes, captions};
    tables::read_rows(
        file, tables::table_format(columns.path), wanted.all, [&](std::span<const tables::TableCell> cells) {
            if (cells[wanted.key].texts.empty() || cells[wanted.key].texts[0].empty()) return;
            TableRow row;
            row.key = cells[wanted.key].texts[0];
            if (!columns.identifier_includes_extension) row.key += ".png";
            if (wanted.width)
                row.size = {cells[*wanted.width].number.value_or(0), cells[*wanted.height].number.value_or(0)};
            if (row.size.width < 1 || row.size.height < 1) row.size = {};
            for (const std::vector<std::size_t>* const some : {&wanted.captions, &wanted.fallbacks}) {
                if (!row.captions.empty()) break;
                for (const std::size_t column : *some)
                    for (const std::string_view text : cells[column].texts)
                        if (const std::string_view caption = core::trimmed(text); !caption.empty())
                            row.captions.emplace_back(caption);
            }
            visit(std::move(row));
        });
}

}  // namespace strata::datasets
