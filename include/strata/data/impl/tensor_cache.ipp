#pragma once
// strata/data/impl/tensor_cache.ipp - entries as bytes, and their names.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <ATen/ops/empty.h>

#include <strata/core/crc32c.hpp>
#include <strata/core/fnv1a.hpp>
#include <strata/data/impl/cache_memory.ipp>
#include <strata/data/impl/named_tensors.ipp>
#include <strata/data/tensor_cache.hpp>
#include <strata/storage/gzip.hpp>
#include <strata/storage/safetensors.hpp>

namespace strata::data {

namespace detail {

inline constexpr std::string_view hex_digits = "0123456789abcdef";

/// The identity as ASCII, because metadata is UTF-8 and file names need not be.
inline std::string ascii_of(std::string_view text) {
    std::string ascii;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7F && c != '\\') {
            ascii += c;
        } else {
            ascii += "\\x";
            ascii += hex_digits[byte >> 4];
            ascii += hex_digits[byte & 15];
        }
    }
    return ascii;
}

/// How the JSON of an entry begins: the check sum stands first, so it is found without reading what it protects.
inline constexpr std::string_view sum_opening = R"({"__metadata__":{"crc32c":")";
inline constexpr std::size_t sum_at = 8 + sum_opening.size();  // behind the 8 bytes of the length
using SumDigits = std::array<char, 8>;
inline constexpr SumDigits no_sum{'0', '0', '0', '0', '0', '0', '0', '0'};

/// The digits that must stand at sum_at, whatever does; nothing if the file does not begin as an entry with a sum.
inline std::optional<SumDigits> sum_of(std::span<const std::byte> file) {
    if (file.size() < sum_at + no_sum.size()) return std::nullopt;
    if (std::memcmp(file.data() + 8, sum_opening.data(), sum_opening.size()) != 0) return std::nullopt;
    std::uint32_t sum = core::crc32c(file.first(sum_at));
    sum = core::crc32c(std::as_bytes(std::span{no_sum}), sum);
    sum = core::crc32c(file.subspan(sum_at + no_sum.size()), sum);
    SumDigits digits{};
    for (std::size_t i = 0; i < digits.size(); ++i) digits[i] = hex_digits[sum >> (28 - 4 * i) & 15U];
    return digits;
}

struct ElementType {
    storage::Dtype in_file;
    at::ScalarType in_memory;
};
/// The element types that tensors and safetensors files have in common.
inline constexpr std::array<ElementType, 11> element_types{{{storage::Dtype::f32, at::kFloat},
                                                            {storage::Dtype::bf16, at::kBFloat16},
                                                            {storage::Dtype::f16, at::kHalf},
                                                            {storage::Dtype::f64, at::kDouble},
                                                            {storage::Dtype::i64, at::kLong},
                                                            {storage::Dtype::i32, at::kInt},
                                                            {storage::Dtype::i16, at::kShort},
                                                            {storage::Dtype::i8, at::kChar},
                                                            {storage::Dtype::u8, at::kByte},
                                                            {storage::Dtype::boolean, at::kBool},
                                                            {storage::Dtype::c64, at::kComplexFloat}}};

inline storage::Dtype file_type_of(const std::string& name, at::ScalarType type) {
    for (const ElementType& one : element_types)
        if (one.in_memory == type) return one.in_file;
    throw Error{Errc::unsupported_dtype,
                "tensor '" + name + "' is of type " + at::toString(type) + ", which a cache entry cannot hold",
                "convert it in the recipe, to float32 or bfloat16 say"};
}

}  // namespace detail

STRATA_INLINE std::string cache_name(std::string_view identity, bool compress) {
    std::string hex;
    for (const std::uint64_t half : core::fnv1a_128(identity))
        for (int shift = 60; shift >= 0; shift -= 4) hex += detail::hex_digits[(half >> shift) & 15];
    return hex.substr(0, 2) + "/" + hex.substr(2) + (compress ? ".safetensors.gz" : ".safetensors");
}

STRATA_INLINE std::vector<std::byte> pack_entry(const NamedTensors& tensors, std::string_view identity, bool compress) {
    std::vector<storage::TensorBytes> list;
    NamedTensors contiguous;  // owns what the list points to
    for (const auto& [name, tensor] : tensors) {
        const at::Tensor& kept = contiguous[name] = tensor.detach().cpu().contiguous();
        list.push_back({name,
                        detail::file_type_of(name, kept.scalar_type()),
                        kept.sizes().vec(),
                        {static_cast<const std::byte*>(kept.data_ptr()), kept.nbytes()}});
    }
    std::vector<std::byte> file = storage::encode_safetensors(
        list, {{"crc32c", {detail::no_sum.begin(), detail::no_sum.end()}}, {"identity", detail::ascii_of(identity)}});
    const detail::SumDigits sum = detail::sum_of(file).value();  // "crc32c" sorts before "identity"
    std::memcpy(file.data() + detail::sum_at, sum.data(), sum.size());
    if (!compress) return file;
    const std::vector<std::byte> packed = storage::gzip_compress(file);
    return packed.size() <= file.size() / 10 * 9 ? packed : storage::gzip_compress(file, 0);
}

STRATA_INLINE NamedTensors unpack_entry(std::span<const std::byte> bytes, std::string_view identity, bool compress,
                                        std::string_view place) {
    const auto refuse = [&](std::string_view why) {
        throw Error{Errc::bad_cache_entry, "cache entry '" + std::string{place} + "' is damaged: " + std::string{why},
                    "delete the file; it is made again"};
    };
    NamedTensors tensors;
    try {
        std::vector<std::byte> unpacked;
        if (compress) {
            unpacked = storage::gzip_decompress(bytes, most_entry_bytes);
            bytes = unpacked;
        }
        const std::optional<detail::SumDigits> sum = detail::sum_of(bytes);
        if (sum && std::memcmp(bytes.data() + detail::sum_at, sum->data(), sum->size()) != 0)
            refuse("its bytes do not have the check sum they were written with");
        const storage::SafetensorsHeader header = storage::parse_safetensors(bytes, place);
        const auto found = header.metadata.find("identity");
        if (found == header.metadata.end() || found->second != detail::ascii_of(identity))
            refuse("it was made from something else");
        if (!sum && header.metadata.size() != 1)
            refuse("its metadata is not as it was written");  // "crc32c" itself, say
        for (const storage::SafetensorsEntry& entry : header.tensors) {
            const auto* const type =
                std::find_if(detail::element_types.begin(), detail::element_types.end(),
                             [&](const detail::ElementType& one) { return one.in_file == entry.dtype; });
            if (type == detail::element_types.end())
                refuse("tensor '" + entry.name + "' is of type " + std::string{storage::name_of(entry.dtype)} +
                       ", which no tensor has");
            const auto data = storage::tensor_bytes(bytes, header, entry.name);
            const at::Tensor tensor = at::empty(entry.shape, type->in_memory);
            if (!data.empty()) std::memcpy(tensor.data_ptr(), data.data(), data.size());
            tensors.emplace(entry.name, tensor);
        }
        if (!sum)
            throw Error{Errc::unsummed_cache_entry,
                        "cache entry '" + std::string{place} + "' has no check sum: an earlier version wrote it",
                        "delete the file; it is made again"};
    } catch (const Error& error) {
        if (error.code() == Errc::bad_cache_entry || error.code() == Errc::unsummed_cache_entry) throw;
        refuse(error.problem());
    }
    return tensors;
}

}  // namespace strata::data
