#pragma once
// strata/tokenizers/impl/sentence_pieces.ipp - sentencepiece's file read, text normalised by it, and Viterbi's search
// for the likeliest cut.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <strata/core/error.hpp>
#include <strata/tokenizers/detail/protobuf_fields.hpp>
#include <strata/tokenizers/impl/byte_pair_files.ipp>
#include <strata/tokenizers/sentence_pieces.hpp>

namespace strata::tokenizers {

namespace detail {

inline constexpr std::string_view space_piece = "\xE2\x96\x81";  // ▁

/// The bytes of the character that a text in UTF-8 begins with.
[[nodiscard]] inline std::size_t character_length(std::string_view text) noexcept {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return std::min(length, text.size());
}

}  // namespace detail

STRATA_INLINE SentencePieces::SentencePieces(std::string_view bytes, const std::string& file) {
    lowest_ = std::numeric_limits<float>::max();
    bool has_normaliser = false;
    detail::ProtobufFields model{bytes};  // ModelProto of sentencepiece_model.proto
    while (model.next()) {
        if (model.number == 1) read_piece(model.bytes, file);
        if (model.number == 2) read_trainer(model.bytes, file);
        if (model.number == 3) read_normaliser(model.bytes, file);
        has_normaliser = has_normaliser || model.number == 3;
    }
    if (scores_.empty()) detail::refuse_file(file, "is no sentencepiece model");
    if (model.broken()) detail::refuse_file(file, "is a sentencepiece model that breaks off");
    if (!has_normaliser)
        detail::refuse_file(file, "is a sentencepiece model that breaks off: it does not say how text is normalised");
    if (unknown_ < 0) detail::refuse_file(file, "has no piece for what is unknown");
}

STRATA_INLINE void SentencePieces::read_piece(std::string_view message, const std::string& file) {
    enum : std::uint64_t { is_normal = 1, is_unknown = 2, is_control = 3, is_unused = 5 };
    std::string_view piece;
    float score = 0;
    std::uint64_t type = is_normal;
    detail::ProtobufFields fields{message};
    while (fields.next()) {
        if (fields.number == 1) piece = fields.bytes;
        if (fields.number == 2) score = fields.real();
        if (fields.number == 3) type = fields.value;
    }
    const std::int64_t id = size();
    const auto where = [&] { return "piece " + std::to_string(id) + " "; };
    if (fields.broken() || piece.empty() || !std::isfinite(score))
        detail::refuse_file(file, scores_.empty() ? "is no sentencepiece model" : "is damaged: " + where() + "is none");
    scores_.push_back(score);
    if (type == is_unused) return;
    if (type == is_unknown || type == is_control) {
        if (!marks_.emplace(std::string{piece}, id).second) detail::refuse_file(file, "has " + where() + "twice");
        if (type == is_unknown) unknown_ = id;
        return;
    }
    if (type != is_normal)
        detail::refuse_file(
            file, "has " + where() + "of a kind that T5 has not: user-defined symbols and bytes are not read");
    lowest_ = std::min(lowest_, score);
    std::uint32_t node = 0;
    Step* last = nullptr;
    for (const char byte : piece) {
        last = &steps_[static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(byte)];
        if (last->node == 0) last->node = nodes_++;
        node = last->node;
    }
    if (last->piece >= 0) detail::refuse_file(file, "has " + where() + "twice");
    last->piece = static_cast<std::int32_t>(id);
}

STRATA_INLINE void SentencePieces::read_trainer(std::string_view message, const std::string& file) {
    constexpr std::uint64_t unigram = 1;
    detail::ProtobufFields fields{message};
    while (fields.next()) {
        if (fields.number == 3 && fields.value != unigram) detail::refuse_file(file, "is no unigram model, as T5's is");
        if ((fields.number == 24 || fields.number == 35) && fields.value != 0)
            detail::refuse_file(file, fields.number == 24 ? "ends words with spaces, which T5 begins with them"
                                                          : "spells what is unknown in bytes, which T5 does not");
    }
    if (fields.broken()) detail::refuse_file(file, "is a sentencepiece model that breaks off");
}

STRATA_INLINE void SentencePieces::read_normaliser(std::string_view message, const std::string& file) {
    std::string_view map;
    detail::ProtobufFields fields{message};
    while (fields.next()) {
        if (fields.number == 2) map = fields.bytes;
        if (fields.number == 3) adds_space_ = fields.value != 0;
        if (fields.number == 4) collapses_spaces_ = fields.value != 0;
        if (fields.number == 5 && fields.value == 0)
            detail::refuse_file(file, "keeps spaces as they are, which T5 does not");
    }
    if (fields.broken()) detail::refuse_file(file, "is a sentencepiece model that breaks off");
    if (map.empty()) return;
    // Four bytes say how long the double array is; behind it are the texts.
    const auto word = [&](std::size_t at) {
        std::uint32_t read = 0;
        for (std::size_t i = 4; i-- > 0;) read = read << 8 | static_cast<unsigned char>(map[at + i]);
        return read;
    };
    const std::size_t length = map.size() < 4 ? 0 : word(0);
    if (length == 0 || length % 4 != 0 || length >= map.size() - 4 || map.back() != '\0')
        detail::refuse_file(file, "has a damaged table of characters");
    for (std::size_t at = 4; at < 4 + length; at += 4) units_.push_back(word(at));
    mappings_ = map.substr(4 + length);
}

STRATA_INLINE std::int64_t SentencePieces::mark(std::string_view piece) const {
    const auto found = marks_.find(std::string{piece});
    return found == marks_.end() ? -1 : found->second;
}

STRATA_INLINE const SentencePieces::Step* SentencePieces::step(std::uint32_t node, char byte) const {
    const auto found = steps_.find(static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(byte));
    return found == steps_.end() ? nullptr : &found->second;
}

STRATA_INLINE std::size_t SentencePieces::mapped(std::string_view text, std::string_view& as) const {
    if (units_.empty()) return 0;
    // A unit of darts-clone: bits 0 to 7 the byte that leads to it, 8 whether a text ends here, 9 whether its offset
    // is in steps of 256, 10 to 30 the offset; or, with bit 31, what stands for the text that ends.
    const auto offset = [](std::uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); };
    std::size_t longest = 0;
    std::uint32_t at = offset(units_[0]);
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        at ^= byte;
        if (at >= units_.size()) break;
        const std::uint32_t unit = units_[at];
        if ((unit & (1U << 31 | 0xFFU)) != byte) break;
        at ^= offset(unit);
        if ((unit >> 8 & 1U) == 0) continue;
        if (at >= units_.size()) break;
        const std::uint32_t place = units_[at] & ~(1U << 31);
        if (place >= mappings_.size()) break;
        as = std::string_view{mappings_.c_str() + place};  // a zero byte is behind it, as was checked
        longest = i + 1;
    }
    return longest;
}

STRATA_INLINE std::string SentencePieces::normalised(std::string_view text) const {
    const auto next = [&](std::string_view& as) {
        std::size_t length = mapped(text, as);
        if (length == 0) as = text.substr(0, length = detail::character_length(text));
        return length;
    };
    std::string_view as;
    while (collapses_spaces_ && !text.empty()) {
        const std::size_t length = next(as);
        if (as != " ") break;
        text.remove_prefix(length);
    }
    std::string out;
    if (text.empty()) return out;
    out.reserve(text.size() + text.size() / 2);
    if (adds_space_) out += detail::space_piece;
    bool behind_space = collapses_spaces_;
    while (!text.empty()) {
        const std::size_t length = next(as);
        while (behind_space && as.starts_with(' ')) as.remove_prefix(1);
        for (const char c : as) {
            if (c == ' ') {
                out += detail::space_piece;
            } else {
                out.push_back(c);
            }
        }
        if (!as.empty()) behind_space = collapses_spaces_ && as.ends_with(' ');
        text.remove_prefix(length);
    }
    while (collapses_spaces_ && out.ends_with(detail::space_piece)) out.resize(out.size() - detail::space_piece.size());
    return out;
}

STRATA_INLINE void SentencePieces::encode(std::string_view text, std::vector<std::int64_t>& ids) const {
    const std::string line = normalised(text);
    struct Cut {
        std::int64_t piece = -1;  // the best that ends here
        std::size_t begin = 0;
        float score = 0;  // of all up to here
    };
    constexpr double unknown_penalty = 10;
    const auto unknown_score = static_cast<float>(static_cast<double>(lowest_) - unknown_penalty);
    std::vector<Cut> cuts(line.size() + 1);
    // Sums as sentencepiece takes them: in double, kept as float. So equal scores are equal there and here.
    const auto offer = [&](std::size_t begin, std::size_t end, std::int64_t piece, float score) {
        const double all = static_cast<double>(score) + static_cast<double>(cuts[begin].score);
        Cut& cut = cuts[end];
        if (cut.piece < 0 || all > static_cast<double>(cut.score)) cut = {piece, begin, static_cast<float>(all)};
    };
    for (std::size_t begin = 0; begin < line.size();) {
        const std::size_t one = detail::character_length(std::string_view{line}.substr(begin));
        bool has_one = false;
        std::uint32_t node = 0;
        for (std::size_t end = begin; end < line.size();) {
            const Step* const next = step(node, line[end]);
            if (next == nullptr) break;
            node = next->node;
            ++end;
            if (next->piece < 0) continue;
            offer(begin, end, next->piece, scores_[static_cast<std::size_t>(next->piece)]);
            has_one = has_one || end - begin == one;
        }
        if (!has_one) offer(begin, begin + one, unknown_, unknown_score);
        begin += one;
    }
    const auto first = static_cast<std::ptrdiff_t>(ids.size());
    for (std::size_t end = line.size(); end > 0; end = cuts[end].begin) {
        const std::int64_t piece = cuts[end].piece;
        const bool goes_on =
            piece == unknown_ && ids.size() > static_cast<std::size_t>(first) && ids.back() == unknown_;
        if (!goes_on) ids.push_back(piece);
    }
    std::reverse(ids.begin() + first, ids.end());
}

}  // namespace strata::tokenizers
