#pragma once
// strata/config/impl/load_json.ipp - a file as JSON, or one sentence that says where it is none.

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/value.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

namespace detail {

/// "line 3, column 14" of a byte, counted from 0. A character counts as one column, whatever bytes it has.
inline std::string place_in(std::string_view text, std::size_t position) {
    const std::string_view before = text.substr(0, position);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t newline = before.rfind('\n');
    const std::string_view on_line = before.substr(newline == std::string_view::npos ? 0 : newline + 1);
    const auto column = 1 + std::count_if(on_line.begin(), on_line.end(),
                                          [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
    return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

/// The first byte that belongs to no UTF-8 character (RFC 3629), if there is one.
inline std::optional<std::size_t> first_non_utf8(std::string_view text) {
    const auto byte = [&](std::size_t i) -> unsigned {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
    };
    for (std::size_t i = 0; i < text.size();) {
        const unsigned lead = byte(i);
        const std::size_t more = lead < 0x80        ? 0
                                 : lead >> 5U == 6  ? 1
                                 : lead >> 4U == 14 ? 2
                                 : lead >> 3U == 30 ? 3
                                                    : 4;
        if (more == 4) return i;
        for (std::size_t k = 1; k <= more; ++k)
            if ((byte(i + k) & 0xC0U) != 0x80) return i;
        // Longer than needed, a half of a UTF-16 pair, or beyond U+10FFFF.
        const unsigned second = byte(i + 1);
        if ((more == 1 && lead < 0xC2) || (more == 2 && lead == 0xE0 && second < 0xA0) ||
            (more == 2 && lead == 0xED && second > 0x9F) || (more == 3 && lead == 0xF0 && second < 0x90) ||
            (more == 3 && (lead > 0xF4 || (lead == 0xF4 && second > 0x8F))))
            return i;
        i += more + 1;
    }
    return std::nullopt;
}

/// Hands a text to the parser and tells how much of it was taken.
class CountedText {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;
    CountedText(const char* at, std::size_t* taken) : at_{at}, taken_{taken} {}
    reference operator*() const { return *at_; }
    CountedText& operator++() {
        ++at_;
        ++*taken_;
        return *this;
    }
    CountedText operator++(int) {
        const CountedText before = *this;
        ++*this;
        return before;
    }
    friend bool operator==(const CountedText& a, const CountedText& b) { return a.at_ == b.at_; }
    friend bool operator!=(const CountedText& a, const CountedText& b) { return a.at_ != b.at_; }

private:
    const char* at_;
    std::size_t* taken_;
};

/// Where the parser is: the keys and indices that lead there, and which keys each open object has had.
class JsonPlace {
public:
    void open(bool is_object) {
        count_value();
        open_.push_back({is_object, {}, -1, {}});
    }
    void close() { open_.pop_back(); }
    /// False: the object has had this key.
    bool key(const std::string& name) {
        open_.back().key = name;
        return open_.back().keys.insert(name).second;
    }
    void count_value() {
        if (!open_.empty() && !open_.back().is_object) ++open_.back().index;
    }
    /// Of the value that is being read: "crop_aspect_buckets[2].weight".
    [[nodiscard]] std::string text() const {
        std::string all;
        for (const Level& level : open_) {
            if (!level.is_object)
                all += "[" + std::to_string(level.index + (&level == &open_.back() ? 1 : 0)) + "]";
            else if (!level.key.empty())
                all += (all.empty() ? "" : ".") + level.key;
        }
        return all;
    }

private:
    struct Level {
        bool is_object;
        std::string key;
        std::ptrdiff_t index;
        std::set<std::string> keys;
    };
    std::vector<Level> open_;
};

/// The number that the parser has just read and could not keep: where it begins, and its digits.
inline std::pair<std::size_t, std::string_view> number_before(std::string_view text, std::size_t taken) {
    const auto is_of_number = [](char c) {
        return std::string_view{"+-.eE0123456789"}.find(c) != std::string_view::npos;
    };
    std::size_t end = std::min(taken, text.size());
    if (end > 0 && !is_of_number(text[end - 1])) --end;  // the parser looks at one character behind it
    std::size_t begin = end;
    while (begin > 0 && is_of_number(text[begin - 1])) --begin;
    return {begin, text.substr(begin, end - begin)};
}

STRATA_INLINE nlohmann::json parse_json(std::string_view text, const std::string& file) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    const auto refuse = [&](Errc code, const std::string& what, std::string_view fix) {
        throw Error{code, file + what, fix};
    };
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
        refuse(Errc::unreadable_config, " is UTF-16 text", "save it as UTF-8");
    if (const auto bad = first_non_utf8(text))
        refuse(Errc::unreadable_config, " is no UTF-8 text at " + place_in(text, *bad), "save it as UTF-8");
    if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)  // the parser would take it for the end
        refuse(Errc::unreadable_config, " has a NUL byte at " + place_in(text, nul),
               "write it anew: the file was damaged, or is no text");
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
        refuse(Errc::unreadable_config, " is empty", "write it as docs/configuration.md shows");

    // The parser would silently keep the last of two equal keys, and take any depth, which whoever walks the result
    // by recursion pays for with the stack.
    constexpr int deepest = 64;
    std::size_t taken = 0;
    JsonPlace place;
    const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
        using Event = nlohmann::json::parse_event_t;
        switch (event) {
            case Event::object_start:
            case Event::array_start:
                if (depth >= deepest)
                    refuse(Errc::unreadable_config,
                           " nests objects and lists more than " + std::to_string(deepest) + " deep at " +
                               place_in(text, taken - 1),
                           "write it as docs/configuration.md shows");
                place.open(event == Event::object_start);
                break;
            case Event::object_end:
            case Event::array_end:
                place.close();
                break;
            case Event::value:
                place.count_value();
                break;
            case Event::key: {
                const auto name = parsed.get<std::string>();
                if (name.find('\0') != std::string::npos)  // and messages would end there
                    refuse(Errc::bad_value, ": a key holds the character \\u0000 at " + place_in(text, taken),
                           "write the key without it");
                if (!place.key(name))
                    refuse(
                        Errc::bad_value,
                        ": key '" + name + "' appears twice in one object, the second time at " + place_in(text, taken),
                        "keep one of them");
                break;
            }
        }
        return true;
    };
    try {
        return nlohmann::json::parse(CountedText{text.data(), &taken}, CountedText{text.data() + text.size(), &taken},
                                     watch);
    } catch (const nlohmann::json::out_of_range&) {
        const auto [begin, digits] = number_before(text, taken);
        const std::string path = place.text();
        const std::string shown{digits.size() <= 40 ? digits : digits.substr(0, 37)};
        refuse(Errc::bad_value,
               ": " + (path.empty() ? "the number" : "key '" + path + "' at " + place_in(text, begin)) + " is " +
                   shown + (digits.size() <= 40 ? "" : "...") + ", which is larger than any number a computer keeps",
               "write a number between -1.7e308 and 1.7e308; docs/configuration.md and docs/dataset-keys.md have the "
               "range of each key");
    } catch (const nlohmann::json::parse_error& problem) {
        refuse(Errc::unreadable_config,
               " is no JSON: syntax error at " + place_in(text, problem.byte > 0 ? problem.byte - 1 : 0),
               "look for a missing or extra comma, quote or bracket there");
    } catch (const nlohmann::json::exception&) {
        refuse(Errc::unreadable_config, " is no JSON that can be read, at " + place_in(text, taken),
               "write it as docs/configuration.md shows");
    }
    return {};
}

}  // namespace detail

STRATA_INLINE nlohmann::json load_json(const std::filesystem::path& file) {
    std::ifstream stream{file, std::ios::binary};
    std::error_code error;
    if (!stream || std::filesystem::is_directory(file, error))
        throw Error{Errc::unreadable_config, "cannot read configuration file '" + file.string() + "'",
                    "check the path and its permissions"};
    const std::string text{std::istreambuf_iterator<char>{stream}, {}};
    return detail::parse_json(text, file.string());
}

}  // namespace strata::config
