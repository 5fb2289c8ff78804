#pragma once
// strata/tables/impl/parquet.ipp - opening a file, and keeping the columns of a batch in step.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <strata/tables/detail/parquet_rows.hpp>
#include <strata/tables/parquet.hpp>

namespace strata::tables {

namespace detail::parquet {

/// One column that is being read.
struct Selected {
    Leaf leaf;
    ParquetValues values;
    std::unique_ptr<RowReader> reader;  // of the row group
};

struct Reading {
    std::shared_ptr<const File> file;
    std::vector<Selected> columns;
    std::size_t group = 0;  // next to be opened
    std::size_t last = 0;
    std::uint64_t group_left = 0;  // rows of the open one
    std::uint64_t first_row = 0;
    std::size_t rows = 0;  // of the batch

    bool next();
};

/// Turns real numbers into integers or back, where that is what was asked for.
inline void convert(Selected& selected, const File& file, std::uint64_t first_row) {
    ParquetValues& values = selected.values;
    const ParquetKind stored = selected.leaf.column.kind;
    if (values.kind() == stored) return;
    for (std::size_t slot = 0; slot < values.present().size(); ++slot) {
        std::uint64_t& bits = values.numbers()[slot];
        if (values.present()[slot] == 0) continue;
        if (stored == ParquetKind::integer) {
            bits = std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<std::int64_t>(bits)));
            continue;
        }
        const double number = std::bit_cast<double>(bits);
        if (std::isnan(number)) {
            values.present()[slot] = 0;
            bits = 0;
            continue;
        }
        constexpr double largest = 9007199254740992.0;  // 2^53: beyond, neighbours are the same number
        if (std::abs(number) > largest || number != std::trunc(number))
            throw Error{Errc::wrong_column_type,
                        file.source + ", column '" + shown(selected.leaf.column.name) + "': row " +
                            std::to_string(first_row + values.row_of(slot)) + " holds " + std::to_string(number) +
                            ", which is no integer",
                        "write whole numbers into the column, or name another one"};
        bits = std::bit_cast<std::uint64_t>(static_cast<std::int64_t>(number));
    }
}

STRATA_INLINE bool Reading::next() {
    first_row += rows;
    rows = 0;
    while (group_left == 0) {
        for (Selected& selected : columns) selected.reader.reset();
        if (group >= last) return false;
        group_left = file->footer.groups[group].rows;
        if (group_left > 0)
            for (Selected& selected : columns)
                selected.reader = make_row_reader(*file, group, selected.leaf, first_row);
        ++group;
    }
    std::uint64_t count = std::min<std::uint64_t>(group_left, std::max<std::size_t>(file->limits.batch_rows, 1));
    for (Selected& selected : columns) count = std::min(count, selected.reader->rows_ready());
    for (Selected& selected : columns) {
        selected.reader->read(static_cast<std::size_t>(count), selected.values);
        convert(selected, *file, first_row);
    }
    rows = static_cast<std::size_t>(count);
    group_left -= count;
    return true;
}

[[noreturn]] inline void throw_no_such_column(const File& file, const std::string& what) {
    constexpr std::size_t most = 30;
    std::string names;
    const std::vector<ParquetColumn>& columns = file.footer.schema.columns();
    for (std::size_t i = 0; i < std::min(most, columns.size()); ++i)
        names += (i > 0 ? ", " : "") + shown(columns[i].name);
    if (columns.size() > most) names += ", ...";
    throw Error{Errc::no_such_column, file.source + " " + what,
                names.empty() ? "write a table with columns" : "name one of its columns: " + names};
}

inline Selected select(const File& file, const ParquetRequest& request) {
    Selected selected;
    selected.leaf = file.footer.schema.find(request.name);
    const ParquetColumn& found = selected.leaf.column;
    if (found.refusal.empty() && selected.leaf.format.chunk == file.footer.schema.leaves())
        throw_no_such_column(file, "has no column '" + request.name + "'");
    const Place place{file.source, found.name};
    if (!found.refusal.empty()) place.unsupported("it cannot be read: " + found.refusal);
    const ParquetKind kind = request.kind.value_or(found.kind);
    const auto is_number = [](ParquetKind k) { return k == ParquetKind::integer || k == ParquetKind::real; };
    const bool is_kind = kind == found.kind || (is_number(kind) && is_number(found.kind));
    if (!is_kind || (found.is_list && !request.lists))
        throw Error{Errc::wrong_column_type,
                    place.text() + " holds " + (found.is_list ? "lists of " : "") + std::string{name_of(found.kind)} +
                        " where " + std::string{name_of(kind)} + " are needed",
                    "name a column of " + std::string{name_of(kind)} + ", or write this one as such"};
    selected.values.set_kind(kind);
    return selected;
}

/// Reads the end of a file: the footer, its length, the magic number.
inline std::shared_ptr<const File> open(ParquetFile::ReadRange read, std::uint64_t size, std::string source,
                                        const ParquetLimits& limits) {
    constexpr std::uint64_t closing = 8;           // bytes: length of the footer, magic number
    constexpr std::uint64_t first_read = 1 << 16;  // holds most footers
    auto file = std::make_shared<File>();
    file->read = std::move(read);
    file->size = size;
    file->source = std::move(source);
    file->limits = limits;
    const Place place{file->source};
    if (size < 4 + closing) place.damaged("it has " + std::to_string(size) + " bytes, and the smallest has 12");
    std::vector<std::byte> end = file->fetch(size - std::min(size, first_read), std::min(size, first_read));
    const std::string_view magic{reinterpret_cast<const char*>(end.data() + end.size() - 4), 4};
    if (magic == "PARE") place.unsupported("it is encrypted");
    if (magic != "PAR1") place.damaged("it does not end in 'PAR1': no Parquet file, or its end is missing");
    std::uint32_t length = 0;
    std::memcpy(&length, end.data() + end.size() - closing, sizeof length);
    if (length == 0 || length > size - closing - 4)
        place.damaged("its footer would have " + std::to_string(length) + " bytes, the file has " +
                      std::to_string(size));
    if (length > limits.footer_bytes) place.too_large("its footer", length, limits.footer_bytes, "footer_bytes");
    file->footer_begin = size - closing - length;
    if (length + closing > end.size()) end = file->fetch(file->footer_begin, length + closing);
    file->footer = parse_footer(std::span{end}.last(length + closing).first(length), place);
    return file;
}

}  // namespace detail::parquet

STRATA_INLINE ParquetBatches::ParquetBatches(std::unique_ptr<detail::parquet::Reading> reading)
    : reading_{std::move(reading)} {}
STRATA_INLINE ParquetBatches::ParquetBatches(ParquetBatches&&) noexcept = default;
STRATA_INLINE ParquetBatches& ParquetBatches::operator=(ParquetBatches&&) noexcept = default;
STRATA_INLINE ParquetBatches::~ParquetBatches() = default;
STRATA_INLINE bool ParquetBatches::next() { return reading_->next(); }
STRATA_INLINE std::size_t ParquetBatches::rows() const noexcept { return reading_->rows; }
STRATA_INLINE std::uint64_t ParquetBatches::first_row() const noexcept { return reading_->first_row; }
STRATA_INLINE const ParquetValues& ParquetBatches::column(std::size_t index) const {
    return reading_->columns.at(index).values;
}

STRATA_INLINE ParquetFile::ParquetFile(ReadRange read, std::uint64_t size, std::string source,
                                       const ParquetLimits& limits)
    : file_{detail::parquet::open(std::move(read), size, std::move(source), limits)} {}

STRATA_INLINE ParquetFile::ParquetFile(std::vector<std::byte> bytes, std::string source, const ParquetLimits& limits) {
    const auto held = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    auto read = [held](std::uint64_t offset, std::uint64_t length) {
        const auto begin = held->begin() + static_cast<std::ptrdiff_t>(offset);
        return std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(length));
    };
    file_ = detail::parquet::open(std::move(read), held->size(), std::move(source), limits);
}

STRATA_INLINE const std::vector<ParquetColumn>& ParquetFile::columns() const noexcept {
    return file_->footer.schema.columns();
}

STRATA_INLINE std::optional<ParquetColumn> ParquetFile::find(std::string_view name) const {
    detail::parquet::Leaf leaf = file_->footer.schema.find(name);
    if (leaf.column.refusal.empty() && leaf.format.chunk == file_->footer.schema.leaves()) return std::nullopt;
    return std::move(leaf.column);
}

STRATA_INLINE std::uint64_t ParquetFile::rows() const noexcept { return file_->footer.rows; }
STRATA_INLINE std::size_t ParquetFile::row_groups() const noexcept { return file_->footer.groups.size(); }
STRATA_INLINE std::uint64_t ParquetFile::rows_of(std::size_t row_group) const {
    return file_->footer.groups.at(row_group).rows;
}

STRATA_INLINE ParquetBatches ParquetFile::read(const std::vector<ParquetRequest>& columns, std::size_t first,
                                               std::size_t last) const {
    if (columns.empty()) detail::parquet::throw_no_such_column(*file_, "was asked for no column");
    auto reading = std::make_unique<detail::parquet::Reading>();
    reading->file = file_;
    for (const ParquetRequest& request : columns) reading->columns.push_back(detail::parquet::select(*file_, request));
    const auto& groups = file_->footer.groups;
    reading->last = std::min(last, groups.size());
    reading->group = std::min(first, reading->last);
    for (std::size_t i = 0; i < reading->group; ++i) reading->first_row += groups[i].rows;
    return ParquetBatches{std::move(reading)};
}

}  // namespace strata::tables
