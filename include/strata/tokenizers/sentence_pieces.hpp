#pragma once
// strata/tokenizers/sentence_pieces.hpp - SentencePieces: a unigram model in sentencepiece's file, and the likeliest
// cut of a text.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::tokenizers {

/// A unigram language model over pieces of words (Kudo 2018, arXiv:1804.10959) with its normalisation of text, as
/// sentencepiece writes it (Kudo & Richardson 2018, arXiv:1808.06226): T5's `spiece.model`.
///
/// Written here and not linked: Debian's libsentencepiece has an older Protocol Buffers inside of it, with the names
/// of the one that libtorch loads, and a program with both does not start.
class SentencePieces {
public:
    /// Of a file's bytes; `file` names it in messages. Throws Errc::bad_tokenizer: bytes that are no such model or
    /// break off, also between two pieces; a model that is no unigram model, or has byte pieces, user-defined symbols
    /// or other spaces than T5's.
    SentencePieces(std::string_view bytes, const std::string& file);

    /// Appends the pieces of a text in UTF-8: normalised, cut so that the sum of the pieces' scores is largest, what
    /// is no piece as one unknown() for each run of it. Cost: the text's bytes times the longest piece's.
    void encode(std::string_view text, std::vector<std::int64_t>& ids) const;

    /// The text as it is cut: characters mapped as the file says, white space collapsed, every space "▁", one more in
    /// front.
    [[nodiscard]] std::string normalised(std::string_view text) const;

    [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(scores_.size()); }
    [[nodiscard]] std::int64_t unknown() const noexcept { return unknown_; }
    /// The number of a piece that stands in no text, "</s>" say; -1 if there is none.
    [[nodiscard]] std::int64_t mark(std::string_view piece) const;

private:
    struct Step {
        std::uint32_t node = 0;
        std::int32_t piece = -1;  ///< that ends here
    };
    void read_piece(std::string_view message, const std::string& file);
    void read_trainer(std::string_view message, const std::string& file);
    void read_normaliser(std::string_view message, const std::string& file);
    [[nodiscard]] const Step* step(std::uint32_t node, char byte) const;
    /// What the longest beginning of `text` that the file maps becomes, and its bytes; 0 bytes if there is none.
    [[nodiscard]] std::size_t mapped(std::string_view text, std::string_view& as) const;

    std::vector<float> scores_;
    std::unordered_map<std::uint64_t, Step> steps_;  // of a trie of pieces, by node << 8 | byte
    std::uint32_t nodes_ = 1;
    std::unordered_map<std::string, std::int64_t> marks_;
    std::vector<std::uint32_t>
        units_;             // of a double array (Aoe 1989), as darts-clone packs it: what characters are mapped to
    std::string mappings_;  // texts, a zero byte behind each
    float lowest_ = 0;      // score
    std::int64_t unknown_ = -1;
    bool adds_space_ = true, collapses_spaces_ = true;
};

}  // namespace strata::tokenizers

#ifndef STRATA_COMPILED
#include <strata/tokenizers/impl/sentence_pieces.ipp>
#endif
