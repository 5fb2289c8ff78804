#pragma once
// strata/tables/impl/table.ipp - one row reader for each format.

#include <strata/core/inline.hpp>
#include <strata/tables/impl/table_csv.ipp>
#include <strata/tables/impl/table_json_lines.ipp>
#include <strata/tables/parquet.hpp>
#include <strata/tables/table.hpp>

namespace strata::tables {

namespace detail {

inline void read_parquet_rows(const TableFile& file, const std::vector<TableColumn>& columns,
                              const std::function<void(std::span<const TableCell>)>& visit) {
    const ParquetFile parquet{file.read, file.size, file.place};
    std::vector<ParquetRequest> request;
    for (const TableColumn& column : columns) switch (column.use) {
            case CellUse::name:  // some data sets call their pictures by numbers
                request.push_back({column.name, std::nullopt});
                break;
            case CellUse::texts:
                request.push_back({column.name, ParquetKind::text, true});
                break;
            case CellUse::number:
                request.push_back({column.name, ParquetKind::integer});
                break;
        }
    std::vector<TableCell> cells(columns.size());
    for (ParquetBatches batches = parquet.read(request); batches.next();)
        for (std::size_t row = 0; row < batches.rows(); ++row) {
            for (std::size_t i = 0; i < columns.size(); ++i) {
                const ParquetValues& values = batches.column(i);
                TableCell& cell = cells[i];
                cell.texts.clear();
                cell.number.reset();
                if (columns[i].use == CellUse::number) {
                    cell.number = values.integer(row);
                } else if (columns[i].use == CellUse::name && values.kind() == ParquetKind::integer) {
                    const std::optional<std::int64_t> number = values.integer(row);
                    if (!number) continue;
                    cell.digits = std::to_string(*number);
                    cell.texts.push_back(cell.digits);
                } else {
                    for (std::size_t entry = 0; entry < values.entries(row); ++entry)
                        if (const auto text = values.text(row, entry)) cell.texts.push_back(*text);
                }
            }
            visit(cells);
        }
}

}  // namespace detail

STRATA_INLINE TableFormat table_format(std::string_view name) noexcept {
    if (name.ends_with(".jsonl")) return TableFormat::json_lines;
    if (name.ends_with(".csv")) return TableFormat::csv;
    if (name.ends_with(".tsv")) return TableFormat::tsv;
    return TableFormat::parquet;
}

STRATA_INLINE void read_rows(const TableFile& file, TableFormat format, const std::vector<TableColumn>& columns,
                             const std::function<void(std::span<const TableCell>)>& visit) {
    switch (format) {
        case TableFormat::parquet:
            return detail::read_parquet_rows(file, columns, visit);
        case TableFormat::json_lines:
            return detail::read_json_lines(file, columns, visit);
        case TableFormat::csv:
            return detail::read_csv(file, ',', columns, visit);
        case TableFormat::tsv:
            return detail::read_csv(file, '\t', columns, visit);
    }
}

}  // namespace strata::tables
