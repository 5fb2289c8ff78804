#pragma once
// strata/datasets/impl/caption_filter.ipp - entries compiled once by PCRE2, and run over captions.

// Code of eight bits a unit; the header wants it said, and another part of a program may have said it already.
#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/text.hpp>
#include <strata/datasets/caption_filter.hpp>

namespace strata::datasets {

namespace detail {

struct FreeRegex {
    void operator()(::pcre2_code_8* code) const noexcept { ::pcre2_code_free_8(code); }
};
struct FreeMatch {
    void operator()(::pcre2_match_data_8* data) const noexcept { ::pcre2_match_data_free_8(data); }
};

inline const unsigned char* units(std::string_view text) noexcept {
    return reinterpret_cast<const unsigned char*>(text.data());
}

inline std::string regex_message(int code) {
    std::array<unsigned char, 256> text{};
    ::pcre2_get_error_message_8(code, text.data(), text.size());
    return reinterpret_cast<const char*>(text.data());
}

/// "search", "replace" and what stands behind them of s/search/replace/i; nullopt where no '/' is behind search.
struct Replacement {
    std::string_view search;
    std::string_view replace;
    std::string_view flags;
};
inline std::optional<Replacement> replacement_in(std::string_view entry) {
    if (!entry.starts_with("s/")) return std::nullopt;
    const auto slash = [&](std::size_t from) {  // the next that no backslash is before
        for (std::size_t i = from; i < entry.size(); ++i) {
            if (entry[i] == '/') return i;
            if (entry[i] == '\\') ++i;
        }
        return std::string_view::npos;
    };
    const std::size_t middle = slash(2);
    if (middle == std::string_view::npos) return std::nullopt;
    const std::size_t end = slash(middle + 1);
    const std::string_view replace = entry.substr(middle + 1, end == std::string_view::npos ? end : end - middle - 1);
    return Replacement{entry.substr(2, middle - 2), replace,
                       end == std::string_view::npos ? std::string_view{} : entry.substr(end + 1)};
}

/// Python's template as PCRE2's: "\1" -> "${1}", "\g<name>" -> "${name}", "\n" -> a line end, "$" -> "$$".
inline std::string pcre_template(std::string_view python) {
    std::string text;
    for (std::size_t i = 0; i < python.size(); ++i) {
        const char c = python[i];
        if (c == '$') {
            text += "$$";
        } else if (c != '\\' || i + 1 == python.size()) {
            text += c;
        } else if (const char next = python[++i]; next >= '0' && next <= '9') {
            std::string number{next};
            if (i + 1 < python.size() && python[i + 1] >= '0' && python[i + 1] <= '9') number += python[++i];
            text += "${" + number + "}";
        } else if (next == 'g' && python.substr(i + 1).starts_with('<') && python.find('>', i) != python.npos) {
            const std::size_t end = python.find('>', i);
            text.append("${").append(python.substr(i + 2, end - i - 2)).append("}");
            i = end;
        } else {
            text += next == 'n' ? '\n' : next == 't' ? '\t' : next;
        }
    }
    return text;
}

inline bool is_plain(std::string_view entry) noexcept {
    return entry.find_first_of(R"(\^$.|?*+()[]{})") == std::string_view::npos;
}

}  // namespace detail

struct CaptionFilter::Entry {
    std::string written;
    std::string term;  // taken out as it is; empty for a replacement
    std::string replacement;
    std::unique_ptr<::pcre2_code_8, detail::FreeRegex> regex;  // none: the term says all
};

STRATA_INLINE CaptionFilter::CaptionFilter(const std::vector<std::string>& entries, std::string_view dataset)
    : dataset_{dataset} {
    for (const std::string& written : entries) {
        const auto refuse = [&](const std::string& what, const std::string& fix) {
            throw Error{Errc::bad_caption_filter,
                        "entry '" + written + "' of caption_filter_list of data set '" + dataset_ + "' " + what, fix};
        };
        const auto entry = std::make_shared<Entry>();
        entry->written = written;
        std::string_view search = written;
        std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF;
        if (const auto replacement = detail::replacement_in(written)) {
            search = replacement->search;
            entry->replacement = detail::pcre_template(replacement->replace);
            for (const char flag : replacement->flags) {
                if (flag != 'g' && flag != 'i')  // g is what is done anyway
                    refuse("has '" + std::string{flag} + "' behind its last '/'",
                           "write s/search/replace/ or s/search/replace/i, and \\/ for a '/' that is meant");
                if (flag == 'i') options |= PCRE2_CASELESS;
            }
            if (search.empty()) refuse("searches for nothing", "write s/search/replace/");
        } else {
            entry->term = written;
            if (detail::is_plain(written)) {
                entries_.push_back(entry);
                continue;
            }
        }
        int code = 0;
        std::size_t at = 0;
        entry->regex.reset(::pcre2_compile_8(detail::units(search), search.size(), options, &code, &at, nullptr));
        if (!entry->regex)
            refuse(
                "is no regular expression: " + detail::regex_message(code) + ", at character " + std::to_string(at + 1),
                "correct it; a character that is meant as it is has a backslash in front: \\( for a parenthesis");
        ::pcre2_jit_compile_8(entry->regex.get(), PCRE2_JIT_COMPLETE);  // where it cannot, the interpreter runs
        entries_.push_back(entry);
    }
}

STRATA_INLINE std::string CaptionFilter::filtered(std::string_view caption) const {
    std::string text{caption};
    std::string out;
    for (const std::shared_ptr<const Entry>& entry : entries_) {
        if (!entry->term.empty())
            for (std::size_t at = text.find(entry->term); at != std::string::npos; at = text.find(entry->term, at))
                text.erase(at, entry->term.size());
        if (!entry->regex) continue;
        const std::unique_ptr<::pcre2_match_data_8, detail::FreeMatch> match{
            ::pcre2_match_data_create_from_pattern_8(entry->regex.get(), nullptr)};
        int found = 0;
        std::size_t length = text.size() + 256;
        for (std::uint32_t how = 0;;) {  // again with more room, or without the machine's stack
            out.resize(length);
            std::size_t written = out.size();
            found = ::pcre2_substitute_8(entry->regex.get(), detail::units(text), text.size(), 0,
                                         PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_OVERFLOW_LENGTH | how, match.get(),
                                         nullptr, detail::units(entry->replacement), entry->replacement.size(),
                                         reinterpret_cast<unsigned char*>(out.data()), &written);
            if (found >= 0) out.resize(written);
            if (found == PCRE2_ERROR_NOMEMORY && written > length) {
                length = written;
            } else if (found == PCRE2_ERROR_JIT_STACKLIMIT && how == 0) {
                how = PCRE2_NO_JIT;
            } else {
                break;
            }
        }
        if (found < 0)
            throw Error{Errc::bad_caption_filter,
                        "entry '" + entry->written + "' of caption_filter_list of data set '" + dataset_ +
                            "' cannot be applied to the caption '" + text.substr(0, 100) +
                            "': " + detail::regex_message(found),
                        "write it with fewer '.*' and nested repetitions, and only groups that it has"};
        if (found > 0) text.swap(out);
    }
    return std::string{core::trimmed(text)};
}

STRATA_INLINE std::vector<std::string> CaptionFilter::filtered(const std::vector<std::string>& captions) const {
    std::vector<std::string> left;
    for (const std::string& caption : captions)
        if (std::string one = filtered(caption); !one.empty()) left.push_back(std::move(one));
    if (left.empty()) left.emplace_back();
    return left;
}

}  // namespace strata::datasets
