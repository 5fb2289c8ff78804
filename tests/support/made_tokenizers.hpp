#pragma once
// tests/support/made_tokenizers.hpp - small tokenizers in the files of the large ones.

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/storage/atomic_file.hpp>

namespace strata_test {

/// A byte as files of byte pairs spell it.
inline std::string spelled(unsigned byte) {
    unsigned c = byte;
    if (byte <= 32) c = 256 + byte;
    if (byte >= 127 && byte <= 160) c = 256 + 33 + byte - 127;
    if (byte == 173) c = 256 + 67;
    if (c < 128) return {static_cast<char>(c)};
    return {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 63))};
}
inline std::string spelled(const std::string& bytes) {
    std::string all;
    for (const char c : bytes) all += spelled(static_cast<unsigned char>(c));
    return all;
}

/// vocab.json and merges.txt of every byte and the merges that are given, each as the bytes of its two parts.
struct MadeClip {
    std::map<std::string, std::int64_t> vocabulary;
    std::string merges = "#version: 0.2\n";

    explicit MadeClip(const std::vector<std::pair<std::string, std::string>>& pairs) {
        const auto add = [&](const std::string& token) {
            vocabulary.emplace(token, static_cast<std::int64_t>(vocabulary.size()));
        };
        for (unsigned b = 0; b < 256; ++b) add(spelled(b));
        for (unsigned b = 0; b < 256; ++b) add(spelled(b) + "</w>");
        for (const auto& [left, right] : pairs) {
            add(left + right);
            merges += left + " " + right + "\n";
        }
        add("<|startoftext|>");
        add("<|endoftext|>");
    }
    void write(const std::filesystem::path& folder) const {
        strata::storage::write_file(folder / "vocab.json", nlohmann::json(vocabulary).dump());
        strata::storage::write_file(folder / "merges.txt", merges);
    }
    /// The numbers of tokens by their spelling.
    [[nodiscard]] std::vector<std::int64_t> ids(const std::vector<std::string>& tokens) const {
        std::vector<std::int64_t> numbers;
        for (const std::string& token : tokens) numbers.push_back(vocabulary.at(token));
        return numbers;
    }
};

/// Words for captions of cats and dogs.
inline MadeClip cats_and_dogs() {
    return MadeClip{{{"c", "a"},
                     {"ca", "t</w>"},
                     {"d", "o"},
                     {"do", "g</w>"},
                     {"a", "a"},
                     {"ca", "t"},
                     {"!", "!</w>"},
                     {"'", "s</w>"}}};
}

/// A message of Protocol Buffers.
struct Message {
    std::string bytes;
    Message& varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
        bytes.push_back(static_cast<char>(value));
        return *this;
    }
    Message& number(unsigned field, std::uint64_t value) { return varint(field << 3).varint(value); }
    Message& text(unsigned field, const std::string& value) {
        varint(field << 3 | 2).varint(value.size());
        bytes += value;
        return *this;
    }
    Message& real(unsigned field, float value) {
        varint(field << 3 | 5);
        char four[4];
        std::memcpy(four, &value, 4);
        bytes.append(four, 4);
        return *this;
    }
};

/// A sentencepiece model of T5's layout: <pad>, </s>, <unk>, and pieces with their scores. Bytes of its parts, in
/// their order.
struct MadeSentencePieces {
    std::vector<std::string> pieces;
    std::string trainer, normalizer;

    explicit MadeSentencePieces(const std::vector<std::pair<std::string, float>>& words) {
        constexpr std::uint64_t normal = 1, unknown = 2, control = 3;
        const auto add = [&](const std::string& piece, float score, std::uint64_t type) {
            Message message;
            message.text(1, piece).real(2, score).number(3, type);
            pieces.push_back(Message{}.text(1, message.bytes).bytes);
        };
        add("<pad>", 0, control);
        add("</s>", 0, control);
        add("<unk>", 0, unknown);
        for (const auto& [piece, score] : words) add(piece, score, normal);
        Message spec;  // unigram, and the numbers of special pieces
        spec.number(3, 1)
            .number(4, pieces.size())
            .number(40, 2)
            .number(41, ~std::uint64_t{0})
            .number(42, 1)
            .number(43, 0);
        trainer = Message{}.text(2, spec.bytes).bytes;
        normalizer = Message{}.text(3, Message{}.text(1, "identity").bytes).bytes;
    }
    [[nodiscard]] std::string bytes() const {
        std::string all;
        for (const std::string& piece : pieces) all += piece;
        return all + trainer + normalizer;
    }
};

/// "▁", which stands for a space.
inline const std::string space_piece = "\xE2\x96\x81";

inline MadeSentencePieces small_pieces() {
    return MadeSentencePieces{{{space_piece, -3},
                               {space_piece + "cat", -2},
                               {space_piece + "dog", -2.5F},
                               {"s", -3},
                               {"c", -6},
                               {"a", -6},
                               {"t", -6}}};
}

}  // namespace strata_test
