#pragma once
// strata/tokenizers/impl/clip_tokenizer.ipp - texts cleaned, cut into words, and put together from byte pairs.

#include <algorithm>
#include <cstddef>

#include <nlohmann/json.hpp>

#include <strata/core/error.hpp>
#include <strata/tokenizers/clip_tokenizer.hpp>
#include <strata/tokenizers/impl/byte_pair_files.ipp>
#include <strata/tokenizers/impl/byte_pairs.ipp>
#include <strata/tokenizers/impl/html_entities.ipp>
#include <strata/tokenizers/impl/unicode.ipp>

namespace strata::tokenizers {

namespace detail {

inline constexpr std::u32string_view start_of_text = U"<|startoftext|>";
inline constexpr std::u32string_view end_of_text = U"<|endoftext|>";

/// The Greek iota below: a mark whose capital is a letter. Where a regular expression ignores case it is neither a
/// letter nor anything else, so that no word takes it.
inline constexpr char32_t lost_mark = 0x345;

/// Characters between which transformers' slow tokenizer puts spaces: ideographs, not syllables.
[[nodiscard]] constexpr bool is_ideograph(char32_t c) noexcept {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B820 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

[[nodiscard]] inline std::u32string with_spaced_ideographs(std::u32string_view text) {
    std::u32string out;
    out.reserve(text.size());
    for (const char32_t c : text) {
        if (c == U'\t' || c == U'\n' || c == U'\r' || is_blank(c)) {
            out.push_back(U' ');
        } else if (is_ideograph(c)) {
            out += {U' ', c, U' '};
        } else if (c != 0xFFFD && !is_control(c)) {
            out.push_back(c);
        }
    }
    return out;
}

[[nodiscard]] inline std::u32string cleaned(std::u32string_view text, ClipCleaning cleaning) {
    switch (cleaning) {
        case ClipCleaning::transformers_fast:
            return lower_case(with_single_spaces(composed(text)), Sigma::everywhere_the_same);
        case ClipCleaning::transformers_slow:
            return lower_case(composed(with_spaced_ideographs(text)), Sigma::by_place);
        case ClipCleaning::openai:
            break;
    }
    const std::u32string plain = unescaped(unescaped(text));
    const std::u32string spaced = with_single_spaces(stripped(plain));
    return lower_case(stripped(spaced), Sigma::by_place);
}

/// Whether `text`, which is in lower case, goes on with this word.
///
///   ignores_case  a long s is an s, as it is where a regular expression ignores case
[[nodiscard]] inline bool goes_on(std::u32string_view text, std::u32string_view word, bool ignores_case) {
    if (text.size() < word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i)
        if (text[i] != word[i] && !(ignores_case && text[i] == 0x17F && word[i] == U's')) return false;
    return true;
}

/// How long the word at the beginning of `text` is, which does not begin with white space: a mark, an English ending,
/// a run of letters, one digit, or a run of anything else.
[[nodiscard]] inline std::size_t word_length(std::u32string_view text, bool ignores_case) {
    constexpr std::u32string_view whole[] = {start_of_text, end_of_text, U"'s",  U"'t", U"'re",
                                             U"'ve",        U"'m",       U"'ll", U"'d"};
    for (const std::u32string_view word : whole)
        if (goes_on(text, word, ignores_case)) return word.size();
    if (is_number(text.front())) return 1;
    const auto is_other = [&](char32_t c) {
        return !is_letter(c) && !is_number(c) && !is_white_space(c) && !(ignores_case && c == lost_mark);
    };
    const bool letters = is_letter(text.front());
    std::size_t length = 1;
    while (length < text.size() && (letters ? is_letter(text[length]) : is_other(text[length]))) ++length;
    return length;
}

/// Cuts `text` before and behind every mark in it, and calls `with` for each piece.
template <class Call>
void at_marks(std::u32string_view text, Call&& with) {
    while (!text.empty()) {
        const std::size_t start = std::min(text.find(start_of_text), text.find(end_of_text));
        if (start != 0) with(text.substr(0, start));
        if (start == std::u32string_view::npos) return;
        text.remove_prefix(start);
        const std::size_t mark = text.starts_with(start_of_text) ? start_of_text.size() : end_of_text.size();
        with(text.substr(0, mark));
        text.remove_prefix(mark);
    }
}

/// The token that a folder's files pad with, as they spell it; empty if they do not say.
[[nodiscard]] inline std::string padding_of(const std::filesystem::path& folder) {
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
        const std::filesystem::path file = folder / name;
        if (!std::filesystem::exists(file)) continue;
        const nlohmann::json json = nlohmann::json::parse(text_of(storage::read_file(file)), nullptr, false);
        if (!json.is_object()) refuse_file(file.string(), "is no JSON object");
        const auto pad = json.find("pad_token");
        if (pad == json.end() || pad->is_null()) continue;
        if (pad->is_string()) return pad->get<std::string>();
        if (pad->is_object() && pad->contains("content") && pad->at("content").is_string())
            return pad->at("content").get<std::string>();
        refuse_file(file.string(), "has a 'pad_token' that is no text and no token");
    }
    return {};
}

/// Words that were learnt after a model was published, as textual inversion does, have a file of their own. A text that has one would be cut into
/// other tokens than it was trained with.
inline void refuse_added_tokens(const std::filesystem::path& folder, const BytePairs& pairs) {
    const std::filesystem::path file = folder / "added_tokens.json";
    if (!std::filesystem::exists(file)) return;
    const nlohmann::json json = nlohmann::json::parse(text_of(storage::read_file(file)), nullptr, false);
    if (!json.is_object()) refuse_file(file.string(), "is no JSON object");
    std::string added;
    for (const auto& [token, id] : json.items())
        if (pairs.find(token) < 0) added += (added.empty() ? "" : ", ") + token;
    if (!added.empty())
        throw Error{Errc::bad_tokenizer, file.string() + " has tokens that vocab.json has not: " + added,
                    "remove the file if no caption has these words: they are not read here"};
}

}  // namespace detail

STRATA_INLINE ClipTokenizer::ClipTokenizer(const std::filesystem::path& place, const Options& options)
    : options_(options),
      pairs_(std::filesystem::is_directory(place) ? BytePairs::of_files(place / "vocab.json", place / "merges.txt")
                                                  : BytePairs::of_merges(place)) {
    if (options.max_length < 2)
        throw Error{Errc::bad_value,
                    "ClipTokenizerOptions::max_length is " + std::to_string(options.max_length) +
                        ", and a text has two marks at least",
                    "use 77, which CLIP was trained with"};
    if (std::filesystem::is_directory(place)) detail::refuse_added_tokens(place, pairs_);
    const auto token = [&](std::u32string_view name) {
        const std::int64_t id = pairs_.find(detail::utf8(name));
        if (id < 0) detail::refuse_file(place.string(), "has no token '" + detail::utf8(name) + "'");
        return id;
    };
    bos_ = token(detail::start_of_text);
    eos_ = token(detail::end_of_text);
    if (!options_.pad) {
        const std::string spelled = std::filesystem::is_directory(place) ? detail::padding_of(place) : "";
        const std::int64_t id = spelled.empty() ? eos_ : pairs_.find(spelled);
        if (id < 0)
            detail::refuse_file(place.string(), "pads with '" + spelled + "', which is no token of its vocabulary");
        options_.pad = id;
    }
    if (*options_.pad < 0 || *options_.pad >= pairs_.size())
        throw Error{Errc::bad_value,
                    "ClipTokenizerOptions::pad is " + std::to_string(*options_.pad) + ", and tokens are 0 to " +
                        std::to_string(pairs_.size() - 1),
                    "leave it out for <|endoftext|>, or use 0 for the second tokenizer of SDXL"};
}

STRATA_INLINE void ClipTokenizer::append_words(std::u32string_view clean, std::vector<std::int64_t>& ids) const {
    const bool ignores_case = options_.cleaning != ClipCleaning::transformers_fast;
    std::string word;
    while (!clean.empty()) {
        if (detail::is_white_space(clean.front()) || (ignores_case && clean.front() == detail::lost_mark)) {
            clean.remove_prefix(1);
            continue;
        }
        const std::u32string_view characters = clean.substr(0, detail::word_length(clean, ignores_case));
        clean.remove_prefix(characters.size());
        if (characters == detail::start_of_text) {
            ids.push_back(bos_);
        } else if (characters == detail::end_of_text) {
            ids.push_back(eos_);
        } else {
            word.clear();
            for (const char32_t c : characters) detail::append_utf8(word, c);
            pairs_.encode(word, eos_, ids);
        }
    }
}

STRATA_INLINE std::vector<std::int64_t> ClipTokenizer::ids(std::string_view text) const {
    const std::u32string read = detail::code_points(text);
    std::vector<std::int64_t> ids;
    switch (options_.cleaning) {
        case ClipCleaning::openai:
            append_words(detail::cleaned(read, options_.cleaning), ids);
            break;
        case ClipCleaning::transformers_fast:  // marks are looked for in the clean text
            detail::at_marks(detail::cleaned(read, options_.cleaning),
                             [&](std::u32string_view piece) { append_words(piece, ids); });
            break;
        case ClipCleaning::transformers_slow:  // and here in the text as it was given
            detail::at_marks(
                read, [&](std::u32string_view piece) { append_words(detail::cleaned(piece, options_.cleaning), ids); });
            break;
    }
    return ids;
}

STRATA_INLINE Tokens ClipTokenizer::encode(std::string_view text) const {
    Tokens tokens;
    tokens.ids = ids(text);
    const auto room = static_cast<std::size_t>(options_.max_length - 2);
    if (tokens.ids.size() > room) {
        tokens.cut = static_cast<std::int64_t>(tokens.ids.size() - room);
        tokens.ids.resize(room);
    }
    tokens.ids.insert(tokens.ids.begin(), bos_);
    tokens.ids.push_back(eos_);
    tokens.length = static_cast<std::int64_t>(tokens.ids.size());
    tokens.ids.resize(static_cast<std::size_t>(options_.max_length), pad());
    return tokens;
}

STRATA_INLINE std::string ClipTokenizer::id() const {
    constexpr const char* cleanings[] = {"openai", "transformers-fast", "transformers-slow"};
    return "clip-tokenizer-v1-" + pairs_.content() + "-" + std::to_string(options_.max_length) + "-pad" +
           std::to_string(pad()) + "-" + cleanings[static_cast<std::size_t>(options_.cleaning)];
}

}  // namespace strata::tokenizers
