#pragma once
// strata/storage/impl/safetensors.ipp - the header's grammar, checked while it is parsed.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include <strata/core/error.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/impl/atomic_file.ipp>
#include <strata/storage/safetensors.hpp>

namespace strata::storage {

namespace detail {

static_assert(std::endian::native == std::endian::little, "safetensors bytes are little-endian");

inline constexpr std::uint64_t largest_header = 100'000'000;  // bytes; the reference's limit

[[noreturn]] inline void throw_corrupt(std::string_view source, const std::string& why) {
    throw Error{Errc::corrupt_safetensors, std::string{source} + " is no intact safetensors file: " + why,
                "restore the file from where it came, or delete it if it is a cache"};
}

inline std::optional<Dtype> dtype_named(std::string_view name) noexcept {
    for (int i = 0; i < dtypes; ++i)
        if (name_of(static_cast<Dtype>(i)) == name) return static_cast<Dtype>(i);
    return std::nullopt;
}

/// Bytes of a tensor, or nullopt when the shape is negative, its bits do not fit 64 bits or fill no whole bytes.
inline std::optional<std::uint64_t> bytes_of_shape(std::span<const std::int64_t> shape, Dtype dtype) noexcept {
    std::uint64_t bits = bits_of(dtype);
    for (const std::int64_t extent : shape) {
        if (extent < 0) return std::nullopt;
        if (__builtin_mul_overflow(bits, static_cast<std::uint64_t>(extent), &bits)) return std::nullopt;
    }
    if (bits % 8 != 0) return std::nullopt;
    return bits / 8;
}

/// "F32, F16 and BF16"
inline std::string names_of(std::span<const Dtype> list) {
    std::string text;
    for (std::size_t i = 0; i < list.size(); ++i)
        text.append(i == 0 ? "" : i + 1 == list.size() ? " and " : ", ").append(name_of(list[i]));
    return text;
}

/// Reads the header's JSON as a stream of events, so that a hostile header cannot make a large tree:
/// {"__metadata__": {text: text}, name: {"dtype": text, "shape": [n...], "data_offsets": [n, n]}}.
/// A handler that returns false stops the parser; `why` then says what was wrong.
class HeaderReader {
public:
    using json = nlohmann::json;
    std::vector<SafetensorsEntry> tensors;
    SafetensorsMetadata metadata;
    std::string why;
    std::string unknown_dtype;  ///< if that is why: the tensor and its type in words

    bool start_object(std::size_t) {
        if (place_ == Place::outside) return go(Place::top);
        if (place_ == Place::name) return go(field_ == "__metadata__" ? Place::metadata : Place::tensor);
        return refuse("an object where none belongs");
    }
    bool key(std::string& text) {
        if (place_ == Place::top || place_ == Place::name) {
            field_ = text;
            if (!names_.insert(text).second) return refuse("the name '" + text + "' appears twice");
            if (text != "__metadata__") tensors.emplace_back().name = text;
            seen_ = {};
            place_ = Place::name;
            return true;
        }
        if (place_ == Place::metadata) {
            if (!metadata.emplace(text, "").second) return refuse("the metadata key '" + text + "' appears twice");
        } else {
            bool* const seen = text == "dtype"          ? &seen_.dtype
                               : text == "shape"        ? &seen_.shape
                               : text == "data_offsets" ? &seen_.offsets
                                                        : nullptr;
            if (seen == nullptr)
                return refuse("tensor '" + tensors.back().name + "' has an unknown field '" + text + "'");
            if (*seen) return refuse("tensor '" + tensors.back().name + "' has '" + text + "' twice");
            *seen = true;
        }
        field_ = text;
        return true;
    }
    bool string(std::string& text) {
        if (place_ == Place::metadata) {
            metadata[field_] = text;
            return true;
        }
        if (place_ != Place::tensor || field_ != "dtype") return refuse("text where none belongs");
        const std::optional<Dtype> dtype = dtype_named(text);
        if (!dtype) {
            unknown_dtype = "tensor '" + tensors.back().name + "' has the element type '" + text.substr(0, 60) + "'";
            return refuse(unknown_dtype);
        }
        tensors.back().dtype = *dtype;
        return true;
    }
    bool start_array(std::size_t) {
        if (place_ != Place::tensor || field_ == "dtype") return refuse("a list where none belongs");
        count_ = 0;
        return go(Place::list);
    }
    bool number_unsigned(json::number_unsigned_t value) {
        if (place_ != Place::list) return refuse("a number where none belongs");
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return refuse("a number is beyond 63 bits");
        SafetensorsEntry& tensor = tensors.back();
        if (field_ == "shape")
            tensor.shape.push_back(static_cast<std::int64_t>(value));
        else if (count_ == 0)
            tensor.begin = value;
        else if (count_ == 1)
            tensor.end = value;
        else
            return refuse("tensor '" + tensor.name + "' has more than two offsets");
        ++count_;
        return true;
    }
    bool end_array() {
        if (field_ == "data_offsets" && count_ != 2)
            return refuse("tensor '" + tensors.back().name + "' has not two offsets");
        return go(Place::tensor);
    }
    bool end_object() {
        if (place_ == Place::tensor && !(seen_.dtype && seen_.shape && seen_.offsets))
            return refuse("tensor '" + tensors.back().name + "' lacks dtype, shape or data_offsets");
        const bool inner = place_ == Place::tensor || place_ == Place::metadata;
        return go(inner ? Place::top : Place::outside);
    }
    bool null() { return refuse("null where none belongs"); }
    bool boolean(bool) { return refuse("a truth value where none belongs"); }
    bool number_integer(json::number_integer_t) { return refuse("a negative number"); }
    bool number_float(json::number_float_t, const std::string&) { return refuse("a number that is no integer"); }
    bool binary(json::binary_t&) { return refuse("binary data"); }
    bool parse_error(std::size_t position, const std::string&, const json::exception&) {
        return refuse("its header is no JSON (byte " + std::to_string(position) + ")");
    }

private:
    enum class Place { outside, top, name, metadata, tensor, list };
    struct Seen {
        bool dtype = false;
        bool shape = false;
        bool offsets = false;
    };
    bool go(Place place) {
        place_ = place;
        return true;
    }
    bool refuse(std::string reason) {
        if (why.empty()) why = std::move(reason);
        return false;
    }

    Place place_ = Place::outside;
    std::string field_;
    Seen seen_;
    int count_ = 0;
    std::set<std::string> names_;
};

/// Length of the JSON part, from the first 8 bytes of a file of `file_size` bytes.
inline std::uint64_t header_length(std::span<const std::byte> first_eight, std::uint64_t file_size,
                                   std::string_view source) {
    if (file_size < 8) throw_corrupt(source, "it has fewer than 8 bytes");
    std::uint64_t length = 0;
    std::memcpy(&length, first_eight.data(), sizeof length);
    if (length > largest_header) throw_corrupt(source, "its header claims " + std::to_string(length) + " bytes");
    if (length > file_size - 8) throw_corrupt(source, "its header is longer than the file");
    return length;
}

/// Parses and checks the JSON part of a file of `file_size` bytes.
inline SafetensorsHeader parse_header(std::string_view text, std::uint64_t file_size, std::string_view source) {
    if (!text.starts_with('{')) throw_corrupt(source, "its header does not begin with '{'");
    HeaderReader reader;
    if (text.find('\0') != std::string_view::npos)  // the parser would take it for the end
        throw_corrupt(source, "its header holds a NUL byte");
    if (!nlohmann::json::sax_parse(text, &reader)) {
        if (!reader.unknown_dtype.empty())
            throw Error{Errc::unsupported_dtype,
                        std::string{source} + ": " + reader.unknown_dtype + ", which safetensors files do not have",
                        "write the file anew with a type such as F32, F16 or BF16"};
        throw_corrupt(source, reader.why);
    }
    SafetensorsHeader header;
    header.tensors = std::move(reader.tensors);
    header.metadata = std::move(reader.metadata);
    header.data_begin = 8 + text.size();
    std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
        return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    std::uint64_t end = 0;
    for (const SafetensorsEntry& tensor : header.tensors) {
        const std::optional<std::uint64_t> bytes = bytes_of_shape(tensor.shape, tensor.dtype);
        if (!bytes)
            throw_corrupt(source, "the size of tensor '" + tensor.name + "' overflows" +
                                      (bits_of(tensor.dtype) < 8 ? " or is no whole number of bytes" : ""));
        if (tensor.begin != end)
            throw_corrupt(source, "the bytes of tensor '" + tensor.name + "' overlap others or leave a gap");
        if (tensor.end < tensor.begin || tensor.end - tensor.begin != *bytes)
            throw_corrupt(source, "tensor '" + tensor.name + "' has another number of bytes than its shape needs");
        end = tensor.end;
    }
    if (end != file_size - header.data_begin)
        throw_corrupt(source, "its tensors take " + std::to_string(end) + " bytes and it has " +
                                  std::to_string(file_size - header.data_begin));
    return header;
}

/// The tensors in the order of their bytes, checked, and the bytes before the data section.
struct WritePlan {
    std::vector<std::size_t> order;
    std::vector<std::uint64_t> sizes;  // in that order
    std::string head;
};

/// Outlines of tensors whose bytes are at hand.
inline std::vector<TensorOutline> outlines_of(std::span<const TensorBytes> tensors) {
    std::vector<TensorOutline> outlines;
    for (const TensorBytes& tensor : tensors) outlines.push_back({tensor.name, tensor.dtype, tensor.shape});
    return outlines;
}

inline void check_size(const std::string& name, std::uint64_t expected, std::size_t given) {
    if (given != expected)
        throw_corrupt("what is to be written",
                      "tensor '" + name + "' has another number of bytes than its shape needs");
}

inline WritePlan plan_safetensors(std::span<const TensorOutline> tensors, const SafetensorsMetadata& metadata) {
    constexpr std::string_view source = "what is to be written";
    WritePlan plan;
    plan.order.resize(tensors.size());
    std::iota(plan.order.begin(), plan.order.end(), std::size_t{0});
    std::sort(plan.order.begin(), plan.order.end(), [&](std::size_t a, std::size_t b) {
        const std::size_t size_a = bits_of(tensors[a].dtype);
        const std::size_t size_b = bits_of(tensors[b].dtype);
        return size_a != size_b ? size_a > size_b : tensors[a].name < tensors[b].name;
    });
    std::set<std::string_view> names;
    // ordered_json keeps the order of insertion: metadata first, then the order of the bytes.
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    if (!metadata.empty()) json["__metadata__"] = metadata;
    std::uint64_t offset = 0;
    for (const std::size_t index : plan.order) {
        const TensorOutline& tensor = tensors[index];
        if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
            throw_corrupt(source, "the name '" + tensor.name + "' is taken");
        const auto bytes = bytes_of_shape(tensor.shape, tensor.dtype);
        if (!bytes) throw_corrupt(source, "tensor '" + tensor.name + "' has an impossible shape");
        plan.sizes.push_back(*bytes);
        nlohmann::ordered_json entry;
        entry["dtype"] = name_of(tensor.dtype);
        entry["shape"] = tensor.shape;
        entry["data_offsets"] = {offset, offset + plan.sizes.back()};
        // push_back on the underlying vector: operator[] would search all names for each new one.
        json.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(tensor.name, std::move(entry));
        offset += plan.sizes.back();
    }
    std::string text;
    try {
        text = json.dump();
    } catch (const nlohmann::json::exception&) {
        throw_corrupt(source, "a name or the metadata is no UTF-8 text");
    }
    text.append((8 - text.size() % 8) % 8, ' ');
    if (text.size() > largest_header) throw_corrupt(source, "its header is beyond 100 MB");
    const std::uint64_t length = text.size();
    plan.head.assign(reinterpret_cast<const char*>(&length), sizeof length);
    plan.head += text;
    return plan;
}

}  // namespace detail

STRATA_INLINE const SafetensorsEntry* SafetensorsHeader::find(std::string_view name) const noexcept {
    for (const SafetensorsEntry& tensor : tensors)
        if (tensor.name == name) return &tensor;
    return nullptr;
}

STRATA_INLINE const SafetensorsEntry& SafetensorsHeader::at(std::string_view name) const {
    const SafetensorsEntry* const entry = find(name);
    if (entry == nullptr) detail::throw_corrupt("the file", "it has no tensor '" + std::string{name} + "'");
    return *entry;
}

STRATA_INLINE const SafetensorsEntry& SafetensorsHeader::at(std::string_view name, std::span<const Dtype> taken,
                                                            std::string_view source) const {
    const SafetensorsEntry* const entry = find(name);
    if (entry == nullptr) detail::throw_corrupt(source, "it has no tensor '" + std::string{name} + "'");
    if (std::find(taken.begin(), taken.end(), entry->dtype) == taken.end())
        throw Error{Errc::unsupported_dtype,
                    std::string{source} + ": tensor '" + entry->name + "' is of type " +
                        std::string{name_of(entry->dtype)} + ", and " + detail::names_of(taken) +
                        (taken.size() == 1 ? " is" : " are") + " taken here",
                    "convert the tensor, or use a file that has it in one of these types"};
    return *entry;
}

STRATA_INLINE std::vector<std::byte> encode_safetensors(std::span<const TensorBytes> tensors,
                                                        const SafetensorsMetadata& metadata) {
    const detail::WritePlan plan = detail::plan_safetensors(detail::outlines_of(tensors), metadata);
    const auto head = std::as_bytes(std::span{plan.head});
    std::vector<std::byte> file{head.begin(), head.end()};
    for (std::size_t i = 0; i < plan.order.size(); ++i) {
        const TensorBytes& tensor = tensors[plan.order[i]];
        detail::check_size(tensor.name, plan.sizes[i], tensor.bytes.size());
        file.insert(file.end(), tensor.bytes.begin(), tensor.bytes.end());
    }
    return file;
}

STRATA_INLINE SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view source) {
    const std::uint64_t length = detail::header_length(file, file.size(), source);
    const std::string_view text{reinterpret_cast<const char*>(file.data()) + 8, static_cast<std::size_t>(length)};
    return detail::parse_header(text, file.size(), source);
}

STRATA_INLINE std::span<const std::byte> tensor_bytes(std::span<const std::byte> file, const SafetensorsHeader& header,
                                                      std::string_view name) {
    const SafetensorsEntry& entry = header.at(name);
    return file.subspan(static_cast<std::size_t>(header.data_begin + entry.begin),
                        static_cast<std::size_t>(entry.end - entry.begin));
}

STRATA_INLINE void write_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors,
                                     const SafetensorsMetadata& metadata) {
    SafetensorsWriter file{path, detail::outlines_of(tensors), metadata};
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        detail::check_size(tensors[i].name, *detail::bytes_of_shape(tensors[i].shape, tensors[i].dtype),
                           tensors[i].bytes.size());
        file.write(i, tensors[i].bytes);
    }
    file.publish();
}

STRATA_INLINE SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                                   std::span<const TensorOutline> tensors,
                                                   const SafetensorsMetadata& metadata)
    : file_{path}, extents_(tensors.size()) {
    const detail::WritePlan plan = detail::plan_safetensors(tensors, metadata);
    file_.write_at(0, std::as_bytes(std::span{plan.head}));
    std::uint64_t at = plan.head.size();
    for (std::size_t i = 0; i < plan.order.size(); ++i) {
        extents_[plan.order[i]] = {at, plan.sizes[i]};
        at += plan.sizes[i];
        missing_ += plan.sizes[i];
    }
}

STRATA_INLINE void SafetensorsWriter::write(std::size_t tensor, std::span<const std::byte> bytes,
                                            std::uint64_t offset) {
    const Extent& extent = extents_.at(tensor);
    if (offset > extent.bytes || bytes.size() > extent.bytes - offset || bytes.size() > missing_)
        detail::throw_corrupt("what is to be written",
                              "tensor number " + std::to_string(tensor) + " got more bytes than it has");
    file_.write_at(extent.begin + offset, bytes);
    missing_ -= bytes.size();
}

STRATA_INLINE void SafetensorsWriter::publish() {
    if (missing_ > 0)
        detail::throw_corrupt("what is to be written", std::to_string(missing_) + " bytes of its tensors never came");
    file_.publish();
}

STRATA_INLINE SafetensorsFile::SafetensorsFile(std::filesystem::path path) : path_{std::move(path)} {
    detail::Descriptor file{detail::open_for_reading(path_)};
    const std::string source = "'" + path_.string() + "'";
    const std::uint64_t size = detail::size_of(file.get(), path_);
    std::array<std::byte, 8> first{};
    detail::read_fully(file.get(), 0, first, path_);
    std::string text(static_cast<std::size_t>(detail::header_length(first, size, source)), '\0');
    if (detail::read_fully(file.get(), 8, std::as_writable_bytes(std::span{text}), path_) != text.size())
        detail::throw_corrupt(source, "it became shorter while it was read");
    header_ = detail::parse_header(text, size, source);
    descriptor_ = file.release();
}

STRATA_INLINE SafetensorsFile::~SafetensorsFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

STRATA_INLINE void SafetensorsFile::read(const SafetensorsEntry& entry, std::span<std::byte> out,
                                         std::uint64_t offset) const {
    const std::uint64_t size = entry.end - entry.begin;
    if (offset > size || out.size() > size - offset)
        detail::throw_corrupt("'" + path_.string() + "'",
                              "tensor '" + entry.name + "' has only " + std::to_string(size) + " bytes");
    if (detail::read_fully(descriptor_, header_.data_begin + entry.begin + offset, out, path_) != out.size())
        detail::throw_corrupt("'" + path_.string() + "'", "it became shorter while it was read");
}

}  // namespace strata::storage
