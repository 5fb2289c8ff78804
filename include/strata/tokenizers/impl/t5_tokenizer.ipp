#pragma once
// strata/tokenizers/impl/t5_tokenizer.ipp - the marks of T5 around and in a text.

#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/text.hpp>
#include <strata/tokenizers/impl/byte_pair_files.ipp>
#include <strata/tokenizers/impl/sentence_pieces.ipp>
#include <strata/tokenizers/impl/unicode.ipp>
#include <strata/tokenizers/t5_tokenizer.hpp>

namespace strata::tokenizers {

namespace detail {

[[nodiscard]] inline std::string sentence_piece_file(const std::filesystem::path& place) {
    return (std::filesystem::is_directory(place) ? place / "spiece.model" : place).string();
}

}  // namespace detail

STRATA_INLINE T5Tokenizer::T5Tokenizer(const std::filesystem::path& place, const Options& options)
    : T5Tokenizer(detail::text_of(storage::read_file(detail::sentence_piece_file(place))),
                  detail::sentence_piece_file(place), options) {}

STRATA_INLINE T5Tokenizer::T5Tokenizer(const std::string& bytes, const std::string& file, const Options& options)
    : options_(options),
      content_(storage::to_hex(storage::content_hash(core::bytes_of(bytes)).bytes)),
      pieces_(bytes, file),
      eos_(pieces_.mark("</s>")),
      pad_(pieces_.mark("<pad>")) {
    if (options.max_length < 1)
        throw Error{Errc::bad_value,
                    "T5TokenizerOptions::max_length is " + std::to_string(options.max_length) +
                        ", and a text has its </s> at least",
                    "use 512, or 256 for Flux.1 schnell"};
    if (eos_ < 0 || pad_ < 0)
        detail::refuse_file(file, std::string{"has no piece for "} + (eos_ < 0 ? "the end of a text" : "padding") +
                                      ", so it is of another model than T5");
}

STRATA_INLINE std::vector<std::int64_t> T5Tokenizer::ids(std::string_view given) const {
    const std::string text = detail::utf8(detail::code_points(given));
    std::vector<std::int64_t> ids;
    if (!options_.marks_in_text) {
        pieces_.encode(text, ids);
        return ids;
    }
    // The number and the length of the mark that `at` begins with; a length of 0 if there is none.
    const auto mark = [&](std::string_view at) -> std::pair<std::int64_t, std::size_t> {
        if (at.starts_with("</s>")) return {eos_, 4};
        if (at.starts_with("<pad>")) return {pad_, 5};
        if (at.starts_with("<unk>")) return {pieces_.unknown(), 5};
        constexpr std::string_view name = "<extra_id_";
        if (!at.starts_with(name)) return {0, 0};
        const char* const first = at.data() + name.size();
        const char* const last = at.data() + at.size();
        std::int64_t number = extra;
        const auto [end, error] = std::from_chars(first, last, number);
        const bool is_spelled =
            error == std::errc{} && end != last && *end == '>' && number >= 0 && number < extra &&
            std::string_view(first, static_cast<std::size_t>(end - first)) == std::to_string(number);
        if (!is_spelled) return {0, 0};
        return {pieces_.size() + extra - 1 - number, static_cast<std::size_t>(end - at.data()) + 1};
    };
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size();) {
        const auto [id, length] =
            text[i] == '<' ? mark(std::string_view{text}.substr(i)) : std::pair<std::int64_t, std::size_t>{};
        if (length == 0) {
            ++i;
            continue;
        }
        pieces_.encode(std::string_view{text}.substr(begin, i - begin), ids);
        ids.push_back(id);
        begin = i += length;
    }
    pieces_.encode(std::string_view{text}.substr(begin), ids);
    return ids;
}

STRATA_INLINE Tokens T5Tokenizer::encode(std::string_view text) const {
    Tokens tokens;
    tokens.ids = ids(text);
    const auto room = static_cast<std::size_t>(options_.max_length - 1);
    if (tokens.ids.size() > room) {
        tokens.cut = static_cast<std::int64_t>(tokens.ids.size() - room);
        tokens.ids.resize(room);
    }
    tokens.ids.push_back(eos_);
    tokens.length = static_cast<std::int64_t>(tokens.ids.size());
    tokens.ids.resize(static_cast<std::size_t>(options_.max_length), pad_);
    return tokens;
}

STRATA_INLINE std::string T5Tokenizer::id() const {
    return "t5-tokenizer-v1-" + content_ + "-" + std::to_string(options_.max_length) +
           (options_.marks_in_text ? "-marks" : "");
}

}  // namespace strata::tokenizers
