#pragma once
// strata/tokenizers/tokenizer.hpp - Tokenizer: what turns a caption into the numbers that a text encoder reads.

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata::tokenizers {

/// A text as a text encoder takes it: exactly as many numbers as the tokenizer was made for.
struct Tokens {
    std::vector<std::int64_t> ids;  ///< of the text between its marks, then padding
    std::int64_t length = 0;        ///< how many of them are before the padding, marks included
    std::int64_t cut = 0;           ///< how many tokens of the text did not fit; 0: nothing is lost
};

/// Semantic requirements (not checked by the compiler):
///   * id() names everything that ids depend on: files and options
///   * encode() takes any bytes: what is no UTF-8 is read as U+FFFD, as Python's errors="replace" does; it never throws for a text
///   * encode().ids has max_length() elements, each in [0, vocabulary_size())
///   * equal text, equal ids; several threads may call at once
template <class T>
concept Tokenizer = requires(const T& tokenizer, std::string_view text) {
    { tokenizer.id() } -> std::convertible_to<std::string>;
    { tokenizer.max_length() } -> std::convertible_to<std::int64_t>;
    { tokenizer.vocabulary_size() } -> std::convertible_to<std::int64_t>;
    { tokenizer.encode(text) } -> std::same_as<Tokens>;
};

namespace archetype {

/// The least a Tokenizer may be.
struct Tokenizer {
    Tokenizer() = delete;
    Tokenizer(Tokenizer&&) = delete;
    [[nodiscard]] std::string id() const;
    [[nodiscard]] std::int64_t max_length() const;
    [[nodiscard]] std::int64_t vocabulary_size() const;
    [[nodiscard]] Tokens encode(std::string_view text) const;
};

}  // namespace archetype
static_assert(Tokenizer<archetype::Tokenizer>);

}  // namespace strata::tokenizers
