#pragma once
// strata/tables/impl/parquet_values.ipp - one ValueReader for each encoding.

#include <bit>
#include <utility>

#include <strata/tables/detail/parquet_encodings.hpp>

namespace strata::tables::detail::parquet {

inline std::string_view as_text(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The bits of a number as ValueReader gives them. `bytes` has format.width bytes.
inline std::uint64_t widened(const ColumnFormat& format, const std::byte* bytes) noexcept {
    if (format.width == 8) {
        std::uint64_t number;
        std::memcpy(&number, bytes, 8);
        return number;
    }
    std::uint32_t number;
    std::memcpy(&number, bytes, 4);
    if (format.type == PhysicalType::float32)
        return std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(number)));
    if (format.is_unsigned) return number;
    return static_cast<std::uint64_t>(std::int64_t{std::bit_cast<std::int32_t>(number)});
}

class PlainNumbers final : public ValueReader<std::uint64_t> {
public:
    PlainNumbers(std::span<const std::byte> bytes, const ColumnFormat& format, const Place& place)
        : in_{bytes, place}, format_{format} {}
    void read(std::span<std::uint64_t> out) override {
        const std::byte* next = in_.take(std::uint64_t{format_.width} * out.size()).data();
        for (std::uint64_t& number : out) {
            number = widened(format_, next);
            next += format_.width;
        }
    }

private:
    ByteCursor in_;
    const ColumnFormat& format_;
};

class PlainBits final : public ValueReader<std::uint64_t> {
public:
    PlainBits(std::span<const std::byte> bytes, const Place& place) : bytes_{bytes}, place_{place} {}
    void read(std::span<std::uint64_t> out) override {
        if (at_ + out.size() > bytes_.size() * 8) place_.damaged("its values end too early");
        for (std::uint64_t& bit : out) bit = bits_at(bytes_, at_++, 1);
    }

private:
    std::span<const std::byte> bytes_;
    std::uint64_t at_ = 0;
    const Place& place_;
};

/// Booleans as runs, behind their length.
class RunBits final : public ValueReader<std::uint64_t> {
public:
    explicit RunBits(ByteCursor in) : runs_{in.take(in.little<std::uint32_t>()), 1, in.place()} {}
    void read(std::span<std::uint64_t> out) override { runs_.read(out); }

private:
    RunReader runs_;
};

class DeltaNumbers final : public ValueReader<std::uint64_t> {
public:
    DeltaNumbers(std::span<const std::byte> bytes, const ColumnFormat& format, const Place& place)
        : numbers_{bytes, place}, format_{format} {}
    void read(std::span<std::uint64_t> out) override {
        numbers_.read(out);
        if (format_.width == 4)
            for (std::uint64_t& number : out) {
                const auto bits = static_cast<std::uint32_t>(number);
                number = widened(format_, reinterpret_cast<const std::byte*>(&bits));
            }
    }

private:
    DeltaReader numbers_;
    const ColumnFormat& format_;
};

/// BYTE_STREAM_SPLIT: the first bytes of all values, then the second ones, ...
class SplitNumbers final : public ValueReader<std::uint64_t> {
public:
    SplitNumbers(std::span<const std::byte> bytes, const ColumnFormat& format, const Place& place)
        : bytes_{bytes}, count_{bytes.size() / format.width}, format_{format}, place_{place} {
        if (bytes.size() % format.width != 0) place.damaged("its split values end too early");
    }
    void read(std::span<std::uint64_t> out) override {
        if (out.size() > count_ - at_) place_.damaged("its values end too early");
        for (std::uint64_t& number : out) {
            std::byte value[8];
            for (std::size_t i = 0; i < format_.width; ++i) value[i] = bytes_[i * count_ + at_];
            number = widened(format_, value);
            ++at_;
        }
    }

private:
    std::span<const std::byte> bytes_;
    std::size_t count_;
    std::size_t at_ = 0;
    const ColumnFormat& format_;
    const Place& place_;
};

/// Texts behind their length, or, of a fixed width, one after the other.
class PlainTexts final : public ValueReader<std::string_view> {
public:
    PlainTexts(std::span<const std::byte> bytes, const ColumnFormat& format, const Place& place)
        : in_{bytes, place}, width_{format.width} {}
    void read(std::span<std::string_view> out) override {
        for (std::string_view& text : out) text = as_text(in_.take(width_ > 0 ? width_ : in_.little<std::uint32_t>()));
    }

private:
    ByteCursor in_;
    std::uint32_t width_;
};

/// BYTE_STREAM_SPLIT of texts of a fixed width: put together once.
class SplitTexts final : public ValueReader<std::string_view> {
public:
    SplitTexts(std::span<const std::byte> bytes, const ColumnFormat& format, const Place& place)
        : width_{format.width}, whole_(bytes.size()), in_{whole_, place} {
        if (bytes.size() % width_ != 0) place.damaged("its split values end too early");
        const std::size_t count = bytes.size() / width_;
        for (std::size_t i = 0; i < width_; ++i)
            for (std::size_t at = 0; at < count; ++at) whole_[at * width_ + i] = bytes[i * count + at];
    }
    void read(std::span<std::string_view> out) override {
        for (std::string_view& text : out) text = as_text(in_.take(width_));
    }

private:
    std::size_t width_;
    std::vector<std::byte> whole_;
    ByteCursor in_;
};

/// How many bits an index has, then indices into the dictionary.
template <class Value>
class DictionaryValues final : public ValueReader<Value> {
public:
    DictionaryValues(const ValueBytes<Value>& from, const Place& place)
        : DictionaryValues{*from.dictionary, ByteCursor{from.bytes, place}} {}
    void read(std::span<Value> out) override {
        std::uint32_t indices[256];
        while (!out.empty()) {
            const std::span<std::uint32_t> some{indices, std::min<std::size_t>(out.size(), 256)};
            runs_.read(some);
            for (std::size_t i = 0; i < some.size(); ++i) {
                if (some[i] >= dictionary_.size())
                    place_.damaged("it asks for entry " + std::to_string(some[i]) + " of a dictionary of " +
                                   std::to_string(dictionary_.size()));
                out[i] = dictionary_[some[i]];
            }
            out = out.subspan(some.size());
        }
    }

private:
    DictionaryValues(const std::vector<Value>& dictionary, ByteCursor in)
        : DictionaryValues{dictionary, in.byte(), in} {}
    DictionaryValues(const std::vector<Value>& dictionary, unsigned width, ByteCursor in)
        : dictionary_{dictionary}, place_{in.place()}, runs_{in.take(in.left()), width, in.place()} {}
    const std::vector<Value>& dictionary_;
    const Place& place_;
    RunReader runs_;
};

/// Lengths in delta encoding, then the texts without anything between them.
class DeltaLengthTexts final : public ValueReader<std::string_view> {
public:
    DeltaLengthTexts(std::span<const std::byte> bytes, const Place& place)
        : lengths_{bytes, place}, texts_{bytes.subspan(lengths_.end()), place} {}
    void read(std::span<std::string_view> out) override {
        std::uint64_t lengths[256];
        while (!out.empty()) {
            const std::span<std::uint64_t> some{lengths, std::min<std::size_t>(out.size(), 256)};
            lengths_.read(some);
            for (std::size_t i = 0; i < some.size(); ++i) out[i] = as_text(texts_.take(some[i]));
            out = out.subspan(some.size());
        }
    }

private:
    DeltaReader lengths_;
    ByteCursor texts_;
};

/// DELTA_BYTE_ARRAY: how much of the text before stays, in delta encoding; then the rest of each as above.
class DeltaTexts final : public ValueReader<std::string_view> {
public:
    DeltaTexts(const ValueBytes<std::string_view>& from, const Place& place)
        : prefixes_{from.bytes, place},
          suffixes_{from.bytes.subspan(prefixes_.end()), place},
          most_{from.most},
          place_{place} {}

    void read(std::span<std::string_view> out) override {
        kept_.resize(out.size());
        prefixes_.read(kept_);
        suffixes_.read(out);
        std::uint64_t bytes = 0;
        std::uint64_t before = last_.size();
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (kept_[i] > before) place_.damaged("a text begins with more of the one before it than that has");
            before = kept_[i] + out[i].size();
            bytes += before;
            if (bytes > most_) place_.too_large("the text of some rows", bytes, most_, "page_bytes");
        }
        std::vector<char> made(static_cast<std::size_t>(bytes));
        char* next = made.data();
        for (std::size_t i = 0; i < out.size(); ++i) {
            char* const begin = next;
            next = std::copy_n(last_.data(), static_cast<std::size_t>(kept_[i]), next);
            next = std::copy_n(out[i].data(), out[i].size(), next);
            last_ = out[i] = {begin, static_cast<std::size_t>(next - begin)};
        }
        made_.swap(made);  // the text before the first is in the old one
    }

private:
    DeltaReader prefixes_;
    DeltaLengthTexts suffixes_;
    std::uint64_t most_;
    const Place& place_;
    std::vector<std::uint64_t> kept_;
    std::vector<char> made_;  // the texts of the last call
    std::string_view last_;   // the last of them
};

[[noreturn]] inline void wrong_encoding(Encoding encoding, const Place& place) {
    place.unsupported("its encoding has the number " + std::to_string(static_cast<std::int32_t>(encoding)) +
                      ", which is unknown or not for its type");
}

STRATA_INLINE std::unique_ptr<ValueReader<std::uint64_t>> make_value_reader(Encoding encoding,
                                                                            const ColumnFormat& format,
                                                                            const ValueBytes<std::uint64_t>& from,
                                                                            const Place& place) {
    const bool is_boolean = format.type == PhysicalType::boolean;
    const bool is_integer = format.type == PhysicalType::int32 || format.type == PhysicalType::int64;
    switch (encoding) {
        case Encoding::plain:
            if (is_boolean) return std::make_unique<PlainBits>(from.bytes, place);
            return std::make_unique<PlainNumbers>(from.bytes, format, place);
        case Encoding::plain_dictionary:
        case Encoding::rle_dictionary:
            if (from.dictionary == nullptr) place.damaged("it needs a dictionary, and there is none");
            return std::make_unique<DictionaryValues<std::uint64_t>>(from, place);
        case Encoding::rle:
            if (!is_boolean) break;
            return std::make_unique<RunBits>(ByteCursor{from.bytes, place});
        case Encoding::delta_binary_packed:
            if (!is_integer) break;
            return std::make_unique<DeltaNumbers>(from.bytes, format, place);
        case Encoding::byte_stream_split:
            if (is_boolean) break;
            return std::make_unique<SplitNumbers>(from.bytes, format, place);
        default:
            break;
    }
    wrong_encoding(encoding, place);
}

STRATA_INLINE std::unique_ptr<ValueReader<std::string_view>> make_value_reader(Encoding encoding,
                                                                               const ColumnFormat& format,
                                                                               const ValueBytes<std::string_view>& from,
                                                                               const Place& place) {
    switch (encoding) {
        case Encoding::plain:
            return std::make_unique<PlainTexts>(from.bytes, format, place);
        case Encoding::plain_dictionary:
        case Encoding::rle_dictionary:
            if (from.dictionary == nullptr) place.damaged("it needs a dictionary, and there is none");
            return std::make_unique<DictionaryValues<std::string_view>>(from, place);
        case Encoding::delta_length_byte_array:
            if (format.type == PhysicalType::fixed) break;
            return std::make_unique<DeltaLengthTexts>(from.bytes, place);
        case Encoding::delta_byte_array:
            return std::make_unique<DeltaTexts>(from, place);
        case Encoding::byte_stream_split:
            if (format.width == 0) break;
            return std::make_unique<SplitTexts>(from.bytes, format, place);
        default:
            break;
    }
    wrong_encoding(encoding, place);
}

}  // namespace strata::tables::detail::parquet
