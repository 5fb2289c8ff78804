#pragma once
// strata/tokenizers/byte_pairs.hpp - BytePairs: a vocabulary of byte pairs, and how a word is put together from it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::tokenizers {

/// Byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909) over bytes (Radford et al. 2019), with an end of word:
/// a word begins as its bytes, the last one marked, and the pair that was merged first in training is merged first,
/// everywhere in the word from left to right, until no pair is left that was.
///
/// Read from files as CLIP's: tokens are spelled in 256 printable characters, one a byte, and "</w>" marks the end of
/// a word.
class BytePairs {
public:
    /// Of vocab.json and merges.txt. Merges behind the 48,894th are left, as transformers leaves them.
    ///
    /// Throws Errc::not_found, Errc::io_failed, and Errc::bad_tokenizer: no JSON object of tokens and numbers, a
    /// number twice, a merge that is no pair, stands twice, or takes or makes what is no token.
    static BytePairs of_files(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

    /// Of bpe_simple_vocab_16e6.txt, packed by gzip or not: the first 48,894 merges, numbered as OpenAI's CLIP
    /// numbers them: 256 bytes, 256 bytes at the end of a word, merges, <|startoftext|>, <|endoftext|>. Throws as
    /// of_files(), and Errc::corrupt_gzip.
    static BytePairs of_merges(const std::filesystem::path& file);

    BytePairs(BytePairs&& other) noexcept;

    /// Appends the tokens of a word, a run of bytes without spaces; a byte that is no token is `unknown`. Cost: n log
    /// n in the word's bytes; words up to 64 bytes are remembered. Several threads may call at once.
    void encode(std::string_view word, std::int64_t unknown, std::vector<std::int64_t>& ids) const;

    /// The number of a token as the file spells it; -1 if there is none.
    [[nodiscard]] std::int64_t find(std::string_view spelled) const;
    /// One more than the largest number.
    [[nodiscard]] std::int64_t size() const noexcept { return size_; }
    /// Of the bytes of all files.
    [[nodiscard]] const std::string& content() const noexcept { return content_; }

private:
    struct Merge {
        std::int32_t rank = 0;
        std::int32_t made = 0;
    };
    BytePairs() = default;
    void take_merges(std::string_view text, const std::string& file);
    void find_bytes();
    [[nodiscard]] std::vector<std::int32_t> merged(std::string_view word, std::int64_t unknown) const;

    std::unordered_map<std::string, std::int32_t> tokens_;
    std::unordered_map<std::uint64_t, Merge> merges_;     // by left << 32 | right
    std::array<std::int32_t, 256> byte_{}, last_byte_{};  // -1: no token
    std::int64_t size_ = 0;
    std::string content_;

    static constexpr std::size_t longest_kept = 64;     // bytes of a word
    static constexpr std::size_t most_kept = 1U << 16;  // words
    mutable std::shared_mutex lock_;
    mutable std::unordered_map<std::string, std::vector<std::int32_t>> kept_;
};

}  // namespace strata::tokenizers

#ifndef STRATA_COMPILED
#include <strata/tokenizers/impl/byte_pair_files.ipp>
#include <strata/tokenizers/impl/byte_pairs.ipp>
#endif
