#pragma once
// strata/tokenizers/t5_tokenizer.hpp - T5Tokenizer: captions as the encoder of T5 reads them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/tokenizers/sentence_pieces.hpp>
#include <strata/tokenizers/tokenizer.hpp>

namespace strata::tokenizers {

struct T5TokenizerOptions {
    std::int64_t max_length = 512;  ///< numbers of a text, </s> included. Flux.1 dev takes 512, schnell 256
    /// What `</s>`, `<pad>`, `<unk>` and `<extra_id_0>` to `<extra_id_99>` in a text are: text as any other, as
    /// sentencepiece has it; or those tokens, as transformers has it, whose tokenizers know them beside the model's
    /// file.
    bool marks_in_text = false;
};

/// The sentencepiece tokenizer of T5 (Kudo & Richardson 2018, arXiv:1808.06226; Raffel et al. 2020,
/// arXiv:1910.10683): the text, </s>, padding with 0.
///
/// The model's file says how text is normalised (nmt_nfkc: control characters away, compatibility forms folded, white
/// space collapsed) and which pieces there are; the likeliest cut into pieces wins. A text that is too long loses its
/// end, and </s> stays last; Tokens::cut says how much. A Tokenizer; thread-safe.
class T5Tokenizer {
public:
    using Options = T5TokenizerOptions;

    /// Of spiece.model, or of a folder that has it.
    ///
    /// Throws Errc::not_found, Errc::io_failed; Errc::bad_tokenizer for what SentencePieces refuses, or a model
    /// without </s> and padding; Errc::bad_value for a max_length below 1.
    explicit T5Tokenizer(const std::filesystem::path& place, const Options& options = {});

    [[nodiscard]] Tokens encode(std::string_view text) const;
    /// The tokens of the text alone, all of them, without </s>.
    [[nodiscard]] std::vector<std::int64_t> ids(std::string_view text) const;

    /// Pieces of the file and the 100 extra ones behind them. An encoder may have room for more: T5's has 32,128 rows.
    [[nodiscard]] std::int64_t vocabulary_size() const noexcept { return pieces_.size() + extra; }
    [[nodiscard]] std::int64_t max_length() const noexcept { return options_.max_length; }
    [[nodiscard]] std::int64_t eos() const noexcept { return eos_; }  ///< 1
    [[nodiscard]] std::int64_t pad() const noexcept { return pad_; }  ///< 0
    [[nodiscard]] std::string id() const;

private:
    static constexpr std::int64_t extra = 100;
    T5Tokenizer(const std::string& bytes, const std::string& file, const Options& options);

    Options options_;
    std::string content_;
    SentencePieces pieces_;
    std::int64_t eos_ = 0, pad_ = 0;
};
static_assert(Tokenizer<T5Tokenizer>);

}  // namespace strata::tokenizers

#ifndef STRATA_COMPILED
#include <strata/tokenizers/impl/t5_tokenizer.ipp>
#endif
