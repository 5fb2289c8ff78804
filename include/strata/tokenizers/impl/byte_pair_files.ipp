#pragma once
// strata/tokenizers/impl/byte_pair_files.ipp - vocabularies of byte pairs read from the files that models are
// published with.

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/core/error.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/content_hash.hpp>
#include <strata/storage/digest.hpp>
#include <strata/storage/gzip.hpp>
#include <strata/tokenizers/byte_pairs.hpp>
#include <strata/tokenizers/impl/unicode.ipp>

namespace strata::tokenizers {

namespace detail {

[[noreturn]] inline void refuse_file(const std::string& file, const std::string& what) {
    throw Error{
        Errc::bad_tokenizer, file + " " + what,
        "copy the tokenizer's files again from where they came, all of one model, and not as pointers of Git LFS"};
}

[[nodiscard]] inline std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// "0f1e...": 128 bits of what `text` holds.
[[nodiscard]] inline std::string hash_of(const std::vector<std::byte>& bytes) {
    return storage::to_hex(storage::content_hash(bytes).bytes);
}

/// The character that files spell a byte with: itself where it can be seen, else the first from U+0100 on that is free.
struct ByteSpelling {
    std::array<std::string, 256> of_byte;
    std::array<unsigned char, 256> in_order{};  ///< bytes as OpenAI's CLIP numbers them: those that can be seen first
};
[[nodiscard]] inline const ByteSpelling& byte_spelling() {
    static const ByteSpelling spelling = [] {
        ByteSpelling all;
        std::size_t numbered = 0;
        const auto is_seen = [](unsigned b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
        for (unsigned b = 0; b < 256; ++b)
            if (is_seen(b)) {
                append_utf8(all.of_byte[b], b);
                all.in_order[numbered++] = static_cast<unsigned char>(b);
            }
        char32_t free = 0x100;
        for (unsigned b = 0; b < 256; ++b)
            if (!is_seen(b)) {
                append_utf8(all.of_byte[b], free++);
                all.in_order[numbered++] = static_cast<unsigned char>(b);
            }
        return all;
    }();
    return spelling;
}

inline constexpr std::string_view end_of_word = "</w>";
inline constexpr std::size_t merges_of_clip = 49152 - 256 - 2;

}  // namespace detail

STRATA_INLINE void BytePairs::find_bytes() {
    for (std::size_t b = 0; b < 256; ++b) {
        const std::string& spelled = detail::byte_spelling().of_byte[b];
        byte_[b] = static_cast<std::int32_t>(find(spelled));
        last_byte_[b] = static_cast<std::int32_t>(find(spelled + std::string{detail::end_of_word}));
    }
}

STRATA_INLINE void BytePairs::take_merges(std::string_view text, const std::string& file) {
    std::size_t line = 0;
    for (std::size_t i = 0; i < text.size() && merges_.size() < detail::merges_of_clip; ++line) {
        const std::size_t end = std::min(text.find('\n', i), text.size());
        std::string_view words = text.substr(i, end - i);
        i = end + 1;
        if (words.ends_with('\r')) words.remove_suffix(1);
        if (line == 0) {
            if (words.find("#version") == std::string_view::npos)
                detail::refuse_file(file, "does not begin with a line '#version: 0.2', as files of merges do");
            continue;
        }
        const auto where = [&] { return "has in line " + std::to_string(line + 1) + " "; };
        if (words.empty() && text.find_first_not_of("\r\n", end) == std::string_view::npos) break;
        const std::size_t space = words.find(' ');
        const std::string left{words.substr(0, space)};
        const std::string right{space == std::string_view::npos ? "" : words.substr(space + 1)};
        if (left.empty() || right.empty() || right.find(' ') != std::string::npos)
            detail::refuse_file(file,
                                where() + "'" + std::string{words.substr(0, 60)} + "', which is no pair of two tokens");
        const std::int64_t a = find(left), b = find(right), made = find(left + right);
        if (a < 0 || b < 0 || made < 0)
            detail::refuse_file(file, where() + "the pair '" + left + " " + right + "', and '" +
                                          (a < 0   ? left
                                           : b < 0 ? right
                                                   : left + right) +
                                          "' is no token of the vocabulary");
        const std::uint64_t key = static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b);
        if (!merges_.emplace(key, Merge{static_cast<std::int32_t>(merges_.size()), static_cast<std::int32_t>(made)})
                 .second)
            detail::refuse_file(file, where() + "the pair '" + left + " " + right + "' once more");
    }
    if (merges_.empty()) detail::refuse_file(file, "has no merges");
}

STRATA_INLINE BytePairs BytePairs::of_files(const std::filesystem::path& vocabulary,
                                            const std::filesystem::path& merges) {
    const std::vector<std::byte> vocabulary_bytes = storage::read_file(vocabulary);
    const std::vector<std::byte> merges_bytes = storage::read_file(merges);
    const std::string file = vocabulary.string();
    BytePairs pairs;
    std::optional<std::string> twice;
    std::unordered_set<std::string> names;
    const nlohmann::json json = nlohmann::json::parse(
        detail::text_of(vocabulary_bytes),
        [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
            if (event == nlohmann::json::parse_event_t::key && depth == 1 &&
                !names.insert(parsed.get_ref<const std::string&>()).second && !twice)
                twice = parsed.get<std::string>();
            return true;
        },
        false);
    if (json.is_discarded() || !json.is_object() || json.empty())
        detail::refuse_file(file, "is no JSON object of tokens and their numbers");
    if (twice) detail::refuse_file(file, "has the token '" + *twice + "' twice");
    std::unordered_map<std::int64_t, std::string> by_number;
    for (const auto& [token, number] : json.items()) {
        if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= std::numeric_limits<std::int32_t>::max())
            detail::refuse_file(file, "gives the token '" + token + "' " + number.dump().substr(0, 40) +
                                          ", which is no number of a token");
        const auto id = number.get<std::int32_t>();
        if (const auto [other, is_new] = by_number.emplace(id, token); !is_new)
            detail::refuse_file(file, "gives " + std::to_string(id) + " to '" + std::min(other->second, token) +
                                          "' and to '" + std::max(other->second, token) + "'");
        pairs.tokens_.emplace(token, id);
        pairs.size_ = std::max<std::int64_t>(pairs.size_, id + 1);
    }
    pairs.take_merges(detail::text_of(merges_bytes), merges.string());
    pairs.find_bytes();
    pairs.content_ = detail::hash_of(vocabulary_bytes) + detail::hash_of(merges_bytes);
    return pairs;
}

STRATA_INLINE BytePairs BytePairs::of_merges(const std::filesystem::path& file) {
    std::vector<std::byte> bytes = storage::read_file(file);
    if (bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B})
        bytes = storage::gzip_decompress(bytes, std::uint64_t{64} << 20);
    const std::string text = detail::text_of(bytes);
    BytePairs pairs;
    const auto add = [&](const std::string& token) {
        if (!pairs.tokens_.emplace(token, static_cast<std::int32_t>(pairs.size_)).second)
            detail::refuse_file(file.string(), "makes the token '" + token + "' twice");
        ++pairs.size_;
    };
    const detail::ByteSpelling& spelling = detail::byte_spelling();
    for (const unsigned char b : spelling.in_order) add(spelling.of_byte[b]);
    for (const unsigned char b : spelling.in_order) add(spelling.of_byte[b] + std::string{detail::end_of_word});
    std::size_t line = 0;
    for (std::size_t i = 0; i < text.size() && line <= detail::merges_of_clip; ++line) {
        const std::size_t end = std::min(text.find('\n', i), text.size());
        std::string made = text.substr(i, end - i);
        i = end + 1;
        if (line == 0) continue;
        std::erase_if(made, [](char c) { return c == ' ' || c == '\r'; });
        if (!made.empty()) add(made);
    }
    if (line <= detail::merges_of_clip)
        detail::refuse_file(file.string(), "has " + std::to_string(line == 0 ? 0 : line - 1) +
                                               " merges, and CLIP takes the first " +
                                               std::to_string(detail::merges_of_clip));
    add("<|startoftext|>");
    add("<|endoftext|>");
    pairs.take_merges(text, file.string());
    pairs.find_bytes();
    pairs.content_ = detail::hash_of(bytes);
    return pairs;
}

}  // namespace strata::tokenizers
