#pragma once
// strata/storage/impl/tar.ipp - blocks of 512 bytes: a header, then what it says, filled up to whole blocks.

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include <strata/core/inline.hpp>
#include <strata/storage/tar.hpp>

namespace strata::storage {

namespace detail {

class TarReader {
public:
    using Read = std::function<std::vector<std::byte>(std::uint64_t, std::uint64_t)>;
    TarReader(const Read& read, std::uint64_t size, std::string_view place) : read_{read}, size_{size}, place_{place} {}

    std::vector<TarMember> members() {
        std::vector<TarMember> found;
        while (true) {
            if (at_ == size_ && at_ > 0) break;  // some writers leave the empty blocks at the end out
            const std::string_view header = bytes(at_, block);
            if (at_ == 0) refuse_compressed(header);
            if (header.find_first_not_of('\0') == std::string_view::npos) break;
            check_sum(header);
            member(std::string{header}, found);
        }
        return found;
    }

private:
    static constexpr std::uint64_t block = 512;
    static constexpr std::uint64_t most_text = 1 << 20;  // of a long name, or of a pax header

    [[noreturn]] void bad(const std::string& why, const std::string& fix) const {
        throw Error{Errc::bad_tar, "tar file '" + std::string{place_} + "', byte " + std::to_string(at_) + ": " + why,
                    fix};
    }
    [[noreturn]] void damaged(const std::string& why) const {
        bad(why, "copy the tar file again from where it came, or write it again");
    }

    /// Bytes [begin, begin + length), from a window that goes on behind them.
    std::string_view bytes(std::uint64_t begin, std::uint64_t length) {
        if (begin > size_ || length > size_ - begin) damaged("the file ends in the middle of a member");
        if (begin < window_begin_ || begin + length > window_begin_ + window_.size()) {
            constexpr std::uint64_t ahead = 16 << 10;
            window_ = read_(begin, std::min(std::max(length, ahead), size_ - begin));
            window_begin_ = begin;
            if (window_.size() < length) damaged("the file is shorter than its store says");
        }
        return {reinterpret_cast<const char*>(window_.data()) + (begin - window_begin_),
                static_cast<std::size_t>(length)};
    }

    void refuse_compressed(std::string_view head) const {
        constexpr std::pair<std::string_view, std::string_view> kinds[] = {{"\x1F\x8B", "gzip"},
                                                                           {"BZh", "bzip2"},
                                                                           {"\xFD\x37zXZ", "xz"},
                                                                           {"\x28\xB5\x2F\xFD", "zstd"},
                                                                           {"\x04\x22\x4D\x18", "lz4"}};
        for (const auto& [magic, name] : kinds)
            if (head.starts_with(magic))
                bad("it is compressed with " + std::string{name} + ", and members cannot be read in place",
                    "unpack it: pictures do not get smaller by it");
    }

    void check_sum(std::string_view header) const {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < header.size(); ++i)
            sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
        std::int64_t as_signed = 0;  // some old writers summed signed bytes
        for (std::size_t i = 0; i < header.size(); ++i)
            as_signed += i >= 148 && i < 156 ? ' ' : static_cast<signed char>(header[i]);
        const auto said = number(header.substr(148, 8));
        if (!said || (static_cast<std::int64_t>(*said) != sum && static_cast<std::int64_t>(*said) != as_signed))
            damaged(at_ == 0 ? "it is no tar file" : "the check sum of a header is wrong");
    }

    /// Octal digits, or, with the high bit set, 8 bytes or more with the high one first.
    [[nodiscard]] static std::optional<std::uint64_t> number(std::string_view field) {
        if ((static_cast<unsigned char>(field[0]) & 0x80U) != 0) {
            std::uint64_t value = static_cast<unsigned char>(field[0]) & 0x7FU;
            for (const char c : field.substr(1)) {
                if (value >> 55 != 0) return std::nullopt;
                value = value << 8 | static_cast<unsigned char>(c);
            }
            return value;
        }
        std::uint64_t value = 0;
        const std::size_t begin = std::min(field.find_first_not_of(' '), field.size());
        const std::size_t end = std::min(field.find_first_of(std::string_view{" \0", 2}, begin), field.size());
        for (const char c : field.substr(begin, end - begin)) {
            if (c < '0' || c > '7') return std::nullopt;
            value = value * 8 + static_cast<std::uint64_t>(c - '0');
        }
        return value;
    }
    [[nodiscard]] static std::string_view text(std::string_view field) { return field.substr(0, field.find('\0')); }

    void member(const std::string& header, std::vector<TarMember>& found) {
        const std::string_view all{header};
        const char type = header[156];
        std::optional<std::uint64_t> size = number(all.substr(124, 12));
        const bool describes_next = type == 'x' || type == 'g' || type == 'L' || type == 'K';
        if (!describes_next)
            if (const auto said = pax("size")) size = decimal(*said);
        if (!size) damaged("the size of a member is no number");
        // What a link's or a folder's size says is not there.
        const std::uint64_t stored = std::string_view{"123456"}.find(type) != std::string_view::npos ? 0 : *size;
        const std::uint64_t begin = at_ + block;
        if (stored > size_ || begin > size_ - stored) damaged("a member would go on behind the end of the file");
        const std::uint64_t next = std::min(begin + (stored + block - 1) / block * block, size_);
        if (describes_next) {
            if (stored > most_text) damaged("the description of a member is larger than 1 MiB");
            const std::string told{bytes(begin, stored)};
            if (type == 'L') long_name_ = std::string{text(told)};
            if (type == 'x') read_pax(told, next_);
            if (type == 'g') read_pax(told, all_);
            at_ = next;
            return;
        }
        if (type == 'S' || pax("GNU.sparse.major") || pax("GNU.sparse.map") || pax("GNU.sparse.size"))
            bad("it has sparse members, which cannot be read in place", "write it without --sparse");
        if (type == 'M' || type == 'V' || type == 'N')
            bad("it is a part of several volumes, or of a kind that is no longer written",
                "write it as one plain tar file");
        if (type == '0' || type == '\0' || type == '7') {
            std::string name = name_of(all);
            while (name.starts_with("./")) name.erase(0, 2);
            const bool is_folder = name.ends_with('/');  // of writers before ustar
            if (!is_folder && !name.empty()) {
                check_name(name);
                found.push_back({std::move(name), begin, *size});
            }
        }
        long_name_.reset();
        next_.clear();
        at_ = next;
    }

    [[nodiscard]] std::string name_of(std::string_view header) const {
        if (const auto path = pax("path")) return *path;
        if (long_name_) return *long_name_;
        const std::string_view name = text(header.substr(0, 100));
        const bool is_posix = header.substr(257, 6) == std::string_view{"ustar\0", 6};
        const std::string_view prefix = is_posix ? text(header.substr(345, 155)) : std::string_view{};
        return prefix.empty() ? std::string{name} : std::string{prefix}.append("/").append(name);
    }

    void check_name(std::string_view name) const {
        bool is_key = name.size() <= 4096 && name.find('\0') == std::string_view::npos;
        for (std::string_view rest = name; is_key;) {
            const std::size_t slash = rest.find('/');
            const std::string_view part = rest.substr(0, slash);
            is_key = !part.empty() && part != "." && part != "..";
            if (slash == std::string_view::npos) break;
            rest.remove_prefix(slash + 1);
        }
        if (!is_key)
            bad("a member has the name '" + std::string{name.substr(0, 200)} + "', which is no relative path",
                "write it with relative names, as 'tar -C folder -cf shard.tar .' does");
    }

    using Records = std::map<std::string, std::string, std::less<>>;
    [[nodiscard]] std::optional<std::string> pax(std::string_view key) const {
        for (const Records* const records : {&next_, &all_})
            if (const auto found = records->find(key); found != records->end()) return found->second;
        return std::nullopt;
    }
    [[nodiscard]] static std::optional<std::uint64_t> decimal(std::string_view digits) {
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return error == std::errc{} && end == digits.data() + digits.size() ? std::optional{value} : std::nullopt;
    }
    /// "27 path=a/b/c\n": the length counts itself.
    void read_pax(std::string_view records, Records& into) const {
        while (!records.empty() && records[0] != '\0') {
            const std::size_t blank = records.find(' ');
            const auto length = blank == std::string_view::npos ? std::nullopt : decimal(records.substr(0, blank));
            if (!length || *length <= blank + 1 || *length > records.size() || records[*length - 1] != '\n')
                damaged("a pax header is damaged");
            const std::string_view record = records.substr(blank + 1, static_cast<std::size_t>(*length) - blank - 2);
            const std::size_t equals = record.find('=');
            if (equals == std::string_view::npos) damaged("a pax header is damaged");
            into.insert_or_assign(std::string{record.substr(0, equals)}, std::string{record.substr(equals + 1)});
            records.remove_prefix(static_cast<std::size_t>(*length));
        }
    }

    const Read& read_;
    std::uint64_t size_;
    std::string_view place_;
    std::uint64_t at_ = 0;
    std::vector<std::byte> window_;
    std::uint64_t window_begin_ = 0;
    std::optional<std::string> long_name_;  // of the next member
    Records next_;                          // of the next member
    Records all_;
};

inline bool matches_from(std::string_view name, std::string_view pattern) {
    while (!pattern.empty()) {
        if (pattern[0] == '*') {
            const std::string_view rest = pattern.substr(1);
            for (std::size_t taken = 0;; ++taken) {
                if (matches_from(name.substr(taken), rest)) return true;
                if (taken == name.size() || name[taken] == '/') return false;
            }
        }
        const std::size_t dots = pattern.find("..");
        const std::size_t close = pattern.find('}');
        if (pattern[0] == '{' && dots != std::string_view::npos && close != std::string_view::npos && dots < close) {
            const auto value = [](std::string_view digits) -> std::optional<std::uint64_t> {
                std::uint64_t number = 0;
                const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
                const bool whole = error == std::errc{} && end == digits.data() + digits.size() && !digits.empty();
                return whole ? std::optional{number} : std::nullopt;
            };
            const std::string_view first = pattern.substr(1, dots - 1);
            const std::string_view last = pattern.substr(dots + 2, close - dots - 2);
            const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
            const std::string_view given = name.substr(0, digits);
            const auto from = value(first);
            const auto to = value(last);
            const auto number = value(given);
            if (!from || !to || !number || *number < *from || *number > *to) return false;
            const bool filled = first.size() > 1 && first[0] == '0';
            const std::size_t width = std::max(first.size(), std::to_string(*number).size());
            if (filled ? given.size() != width : given.size() != std::to_string(*number).size()) return false;
            name.remove_prefix(digits);
            pattern.remove_prefix(close + 1);
            continue;
        }
        if (name.empty() || name[0] != pattern[0]) return false;
        name.remove_prefix(1);
        pattern.remove_prefix(1);
    }
    return name.empty();
}

}  // namespace detail

STRATA_INLINE std::vector<TarMember> tar_members(
    const std::function<std::vector<std::byte>(std::uint64_t offset, std::uint64_t length)>& read, std::uint64_t size,
    std::string_view place) {
    return detail::TarReader{read, size, place}.members();
}

STRATA_INLINE bool matches_shard_pattern(std::string_view name, std::string_view pattern) {
    return detail::matches_from(name, pattern);
}

}  // namespace strata::storage
