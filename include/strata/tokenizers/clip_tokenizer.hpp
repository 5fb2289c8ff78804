#pragma once
// strata/tokenizers/clip_tokenizer.hpp - ClipTokenizer: captions as the text encoders of CLIP read them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/tokenizers/byte_pairs.hpp>
#include <strata/tokenizers/tokenizer.hpp>

namespace strata::tokenizers {

/// What is done to a text before it is cut into words. Captions of plain words and punctuation come out the same.
enum class ClipCleaning : std::uint8_t {
    /// OpenAI's CLIP, ftfy's repairs left out: HTML's character references resolved twice, white space collapsed,
    /// lower case. What transformers' CLIPTokenizer does beside ftfy, to a text that ftfy leaves as it is.
    openai,
    /// transformers' CLIPTokenizerFast: normal form C, white space collapsed, lower case character by character.
    transformers_fast,
    /// transformers' CLIPTokenizer where ftfy is not installed: control characters taken away, a space around every
    /// ideograph, normal form C, lower case.
    transformers_slow,
};

struct ClipTokenizerOptions {
    std::int64_t max_length = 77;     ///< numbers of a text, both marks included
    std::optional<std::int64_t> pad;  ///< none: what the folder says (below), else <|endoftext|>
    ClipCleaning cleaning = ClipCleaning::openai;
};

/// The byte-pair tokenizer of CLIP (Radford et al. 2021, arXiv:2103.00020): <|startoftext|>, the text, <|endoftext|>,
/// padding.
///
/// A text that is too long loses its end, and <|endoftext|> stays last; Tokens::cut says how much. A mark that stands
/// in a text is that token, as everywhere in this ecosystem; by openai's rules not behind other punctuation. A
/// Tokenizer; thread-safe.
class ClipTokenizer {
public:
    using Options = ClipTokenizerOptions;

    /// Of a folder with vocab.json and merges.txt, or a file bpe_simple_vocab_16e6.txt.gz. The folder's
    /// tokenizer_config.json and special_tokens_map.json are asked for the token that pads: SDXL's second tokenizer
    /// pads with `!`, which is 0.
    ///
    /// Throws what BytePairs throws; Errc::bad_tokenizer for a vocabulary without both marks, a padding that is no token, or
    /// an added_tokens.json with tokens that the vocabulary does not have; Errc::bad_value for a max_length below 2.
    explicit ClipTokenizer(const std::filesystem::path& place, const Options& options = {});

    [[nodiscard]] Tokens encode(std::string_view text) const;
    /// The tokens of the text alone, all of them, without marks.
    [[nodiscard]] std::vector<std::int64_t> ids(std::string_view text) const;

    [[nodiscard]] std::int64_t vocabulary_size() const noexcept { return pairs_.size(); }
    [[nodiscard]] std::int64_t max_length() const noexcept { return options_.max_length; }
    [[nodiscard]] std::int64_t bos() const noexcept { return bos_; }  ///< <|startoftext|>, 49406
    [[nodiscard]] std::int64_t eos() const noexcept { return eos_; }  ///< <|endoftext|>, 49407
    [[nodiscard]] std::int64_t pad() const noexcept { return *options_.pad; }
    [[nodiscard]] std::string id() const;

private:
    void append_words(std::u32string_view clean, std::vector<std::int64_t>& ids) const;

    Options options_;
    BytePairs pairs_;
    std::int64_t bos_ = 0, eos_ = 0;
};
static_assert(Tokenizer<ClipTokenizer>);

}  // namespace strata::tokenizers

#ifndef STRATA_COMPILED
#include <strata/tokenizers/impl/clip_tokenizer.ipp>
#endif
