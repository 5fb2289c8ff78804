#pragma once
// strata/tables/detail/text_window.hpp - the lines and quoted records of a text file, read a window at a time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/tables/table_file.hpp>

namespace strata::tables::detail {

class TextWindow {
public:
    static constexpr std::size_t longest = 16 << 20;  ///< bytes of a line

    explicit TextWindow(const TableFile& file) : file_{file} {}

    /// The next line without its end; nothing after the last. The view lives until the next call.
    ///
    ///   ends_line  called with each part between line ends, in order; false: the line goes on behind the line end,
    ///   which is
    ///              in a quoted field
    ///   too_long   makes the Error of a line that is
    template <class EndsLine, class TooLong>
    [[nodiscard]] std::optional<std::string_view> next(const EndsLine& ends_line, const TooLong& too_long) {
        number_ = next_number_;
        std::size_t part = 0;      // of the line, where what ends_line() has not seen begins
        std::size_t searched = 0;  // of the line, without a line end behind `part`
        while (true) {
            const std::size_t end = buffer_.find('\n', begin_ + searched);
            if (end == std::string::npos && offset_ < file_.size) {
                searched = buffer_.size() - begin_;
                if (searched > longest) throw too_long();
                buffer_.erase(0, begin_);
                begin_ = 0;
                read_on();
                continue;
            }
            if (begin_ == buffer_.size()) return std::nullopt;
            const bool is_last = end == std::string::npos;
            const std::size_t length = (is_last ? buffer_.size() : end) - begin_;
            if (length > longest) throw too_long();
            ++next_number_;
            const std::string_view line = std::string_view{buffer_}.substr(begin_, length);
            if (!ends_line(line.substr(part)) && !is_last) {
                part = searched = length + 1;
                continue;
            }
            begin_ += is_last ? length : length + 1;
            return line;
        }
    }
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }  ///< of the line, from 1

private:
    void read_on() {
        constexpr std::uint64_t window = 1 << 20;
        const std::vector<std::byte> more = file_.read(offset_, std::min(window, file_.size - offset_));
        if (more.empty())
            throw Error{Errc::io_failed, "table '" + file_.place + "' ended before its size", "start again"};
        buffer_.append(reinterpret_cast<const char*>(more.data()), more.size());
        offset_ += more.size();
    }

    const TableFile& file_;
    std::string buffer_;
    std::size_t begin_ = 0;     // of the next line in the buffer
    std::uint64_t offset_ = 0;  // in the file, behind the buffer
    std::uint64_t number_ = 0;
    std::uint64_t next_number_ = 1;
};

[[nodiscard]] inline Error wrong_cell(const TextWindow& lines, const TableFile& file, const std::string& column,
                                      std::string_view wanted) {
    return {Errc::wrong_column_type,
            "line " + std::to_string(lines.number()) + " of table '" + file.place + "' has no " + std::string{wanted} +
                " in '" + column + "'",
            "write " + std::string{wanted} + " or nothing there, or name another column"};
}

}  // namespace strata::tables::detail
