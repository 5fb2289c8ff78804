#pragma once
// strata/tokenizers/impl/t5_tokenizer.ipp - sentencepiece's processor, and a look at its file before it is trusted.

#include <sentencepiece_processor.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/tokenizers/impl/byte_pair_files.ipp>
#include <strata/tokenizers/impl/unicode.ipp>
#include <strata/tokenizers/t5_tokenizer.hpp>

namespace strata::tokenizers {

struct T5Tokenizer::Model {
    ::sentencepiece::SentencePieceProcessor processor;
};

namespace detail {

/// Fields of a message of Protocol Buffers, one after the other; false at its end or where it breaks off.
class ProtobufFields {
public:
    explicit ProtobufFields(std::string_view message) : left_(message) {}
    [[nodiscard]] bool next() {
        if (left_.empty()) return false;
        const std::optional<std::uint64_t> tag = varint();
        if (!tag || (*tag >> 3) == 0) return fail();
        number = static_cast<int>(std::min<std::uint64_t>(*tag >> 3, 1 << 29));
        bytes = {};
        value = 0;
        switch (*tag & 7) {
            case 0: {
                const std::optional<std::uint64_t> read = varint();
                if (!read) return fail();
                value = *read;
                return true;
            }
            case 1:
                return take(8);
            case 2: {
                const std::optional<std::uint64_t> length = varint();
                return length ? take(*length) : fail();
            }
            case 5:
                return take(4);
            default:
                return fail();
        }
    }
    [[nodiscard]] bool broken() const noexcept { return broken_; }

    int number = 0;
    std::uint64_t value = 0;  ///< of a number
    std::string_view bytes;   ///< of text or a message

private:
    bool fail() {
        broken_ = true;
        return false;
    }
    bool take(std::uint64_t length) {
        if (length > left_.size()) return fail();
        bytes = left_.substr(0, length);
        left_.remove_prefix(length);
        return true;
    }
    std::optional<std::uint64_t> varint() {
        std::uint64_t number_read = 0;
        for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(left_.front());
            left_.remove_prefix(1);
            number_read |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80) return number_read;
        }
        return std::nullopt;
    }
    std::string_view left_;
    bool broken_ = false;
};

/// What is wrong with a file of sentencepiece (sentencepiece_model.proto), empty if nothing is. sentencepiece takes a file that breaks off
/// between two pieces for a smaller model.
[[nodiscard]] inline std::string fault_of_sentencepiece(std::string_view bytes) {
    constexpr int pieces_field = 1, trainer_field = 2, normalizer_field = 3, vocabulary_size_field = 4;
    std::uint64_t pieces = 0;
    std::optional<std::uint64_t> promised;
    bool has_normalizer = false;
    ProtobufFields model{bytes};
    while (model.next()) {
        pieces += model.number == pieces_field ? 1 : 0;
        has_normalizer = has_normalizer || model.number == normalizer_field;
        if (model.number != trainer_field) continue;
        ProtobufFields trainer{model.bytes};
        while (trainer.next())
            if (trainer.number == vocabulary_size_field) promised = trainer.value;
    }
    if (model.broken()) return pieces == 0 ? "is no sentencepiece model" : "is a sentencepiece model that breaks off";
    if (pieces == 0) return "is no sentencepiece model";
    if (!has_normalizer) return "is a sentencepiece model that breaks off: it does not say how text is normalised";
    if (promised && *promised != pieces)
        return "is a sentencepiece model of " + std::to_string(*promised) + " pieces, and has " +
               std::to_string(pieces);
    return {};
}

}  // namespace detail

STRATA_INLINE T5Tokenizer::T5Tokenizer(const std::filesystem::path& place, const Options& options) : options_(options) {
    if (options.max_length < 1)
        throw Error{Errc::bad_value,
                    "T5TokenizerOptions::max_length is " + std::to_string(options.max_length) +
                        ", and a text has its </s> at least",
                    "use 512, or 256 for Flux.1 schnell"};
    const std::filesystem::path file = std::filesystem::is_directory(place) ? place / "spiece.model" : place;
    const std::vector<std::byte> bytes = storage::read_file(file);
    const std::string text = detail::text_of(bytes);
    if (const std::string fault = detail::fault_of_sentencepiece(text); !fault.empty())
        detail::refuse_file(file.string(), fault);
    auto model = std::make_shared<Model>();
    if (const auto status = model->processor.LoadFromSerializedProto(text); !status.ok())
        detail::refuse_file(file.string(),
                            "is no sentencepiece model that can be used: " + std::string{status.message()});
    pieces_ = model->processor.GetPieceSize();
    eos_ = model->processor.eos_id();
    pad_ = model->processor.pad_id();
    unknown_ = model->processor.unk_id();
    if (eos_ < 0 || pad_ < 0)
        detail::refuse_file(file.string(), std::string{"has no piece for "} +
                                               (eos_ < 0 ? "the end of a text" : "padding") +
                                               ", so it is of another model than T5");
    model_ = std::move(model);
    content_ = detail::hash_of(bytes);
}

STRATA_INLINE void T5Tokenizer::append(std::string_view text, std::vector<std::int64_t>& ids) const {
    std::vector<int> read;
    const auto status = model_->processor.Encode(text, &read);
    if (!status.ok())
        throw Error{Errc::bad_tokenizer,
                    "sentencepiece gave up on a text of " + std::to_string(text.size()) +
                        " bytes: " + std::string{status.message()},
                    "report this with the text: the model took every other"};
    ids.insert(ids.end(), read.begin(), read.end());
}

STRATA_INLINE std::vector<std::int64_t> T5Tokenizer::ids(std::string_view given) const {
    const std::string text = detail::utf8(detail::code_points(given));
    std::vector<std::int64_t> ids;
    if (!options_.marks_in_text) {
        append(text, ids);
        return ids;
    }
    /// The number and the length of the mark that `at` begins with; a length of 0 if there is none.
    const auto mark = [&](std::string_view at) -> std::pair<std::int64_t, std::size_t> {
        if (at.starts_with("</s>")) return {eos_, 4};
        if (at.starts_with("<pad>")) return {pad_, 5};
        if (at.starts_with("<unk>")) return {unknown_, 5};
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
        return {pieces_ + extra - 1 - number, static_cast<std::size_t>(end - at.data()) + 1};
    };
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size();) {
        const auto [id, length] =
            text[i] == '<' ? mark(std::string_view{text}.substr(i)) : std::pair<std::int64_t, std::size_t>{};
        if (length == 0) {
            ++i;
            continue;
        }
        append(std::string_view{text}.substr(begin, i - begin), ids);
        ids.push_back(id);
        begin = i += length;
    }
    append(std::string_view{text}.substr(begin), ids);
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
