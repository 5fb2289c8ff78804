#pragma once
// strata/storage/safetensors.hpp - tensors in files that every framework reads.
//
// The format: 8 bytes little-endian length N, N bytes of JSON, then the tensors' bytes without gaps.
// Written as the reference writer does (larger elements first, then by name; the header padded with
// spaces to a multiple of 8), so equal tensors give equal bytes. Read strictly: whatever the
// reference rejects is rejected, and duplicate names and white space before the header as well.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/storage/atomic_file.hpp>

namespace strata::storage {

/// Element types of safetensors files: all that the format has a name for. A file with any of them is read as a file;
/// whoever needs a tensor in a type of his own says so when he asks for it (SafetensorsHeader::at).
enum class Dtype : std::uint8_t {
    f32,
    f16,
    bf16,
    f64,
    i64,
    i32,
    i16,
    i8,
    u8,
    boolean,
    u64,
    u32,
    u16,
    c64,  // c64: two f32
    f8_e4m3,
    f8_e5m2,
    f8_e8m0,
    f8_e4m3fnuz,
    f8_e5m2fnuz,
    f6_e2m3,
    f6_e3m2,
    f4  // less than a byte: a tensor's bits fill whole bytes
};
inline constexpr int dtypes = 22;

/// Bits of one element.
constexpr std::size_t bits_of(Dtype dtype) noexcept {
    switch (dtype) {
        case Dtype::f64:
        case Dtype::i64:
        case Dtype::u64:
        case Dtype::c64:
            return 64;
        case Dtype::f32:
        case Dtype::i32:
        case Dtype::u32:
            return 32;
        case Dtype::f16:
        case Dtype::bf16:
        case Dtype::i16:
        case Dtype::u16:
            return 16;
        case Dtype::i8:
        case Dtype::u8:
        case Dtype::f8_e4m3:
        case Dtype::f8_e5m2:
        case Dtype::f8_e8m0:
        case Dtype::f8_e4m3fnuz:
        case Dtype::f8_e5m2fnuz:
        case Dtype::boolean:
            return 8;
        case Dtype::f6_e2m3:
        case Dtype::f6_e3m2:
            return 6;
        case Dtype::f4:
            return 4;
    }
    return 0;
}

/// The name in the file: "F32", "BF16", "BOOL", ...
constexpr std::string_view name_of(Dtype dtype) noexcept {
    constexpr std::string_view names[dtypes] = {
        "F32",     "F16",         "BF16",        "F64",     "I64",     "I32", "I16",     "I8",
        "U8",      "BOOL",        "U64",         "U32",     "U16",     "C64", "F8_E4M3", "F8_E5M2",
        "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3", "F6_E3M2", "F4"};
    return names[static_cast<std::size_t>(dtype)];
}
static_assert(name_of(Dtype::boolean) == "BOOL" && name_of(Dtype::f4) == "F4");

/// A tensor to be written, without its bytes.
struct TensorOutline {
    std::string name;
    Dtype dtype = Dtype::f32;
    std::vector<std::int64_t> shape;  ///< empty for a scalar
};

/// A tensor to be written: row-major, contiguous, little-endian; `bytes` is not owned.
struct TensorBytes {
    std::string name;
    Dtype dtype = Dtype::f32;
    std::vector<std::int64_t> shape;  ///< empty for a scalar
    std::span<const std::byte> bytes;
};

/// Where a tensor lies in a file.
struct SafetensorsEntry {
    std::string name;
    Dtype dtype = Dtype::f32;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0;  ///< first byte, counted from SafetensorsHeader::data_begin
    std::uint64_t end = 0;    ///< one past the last byte
};

using SafetensorsMetadata = std::map<std::string, std::string>;

/// What a file holds.
struct SafetensorsHeader {
    std::vector<SafetensorsEntry> tensors;  ///< in the order of their bytes
    SafetensorsMetadata metadata;
    std::uint64_t data_begin = 0;  ///< offset of the data section in the file

    [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const noexcept;  ///< nullptr if absent
    [[nodiscard]] const SafetensorsEntry& at(std::string_view name) const;             ///< throws corrupt_safetensors

    /// The tensor of that name, in an element type that the caller takes.
    ///
    ///   source  named in messages
    /// Throws corrupt_safetensors when there is no such tensor, and unsupported_dtype, naming the tensor, its type and those
    /// that are taken.
    [[nodiscard]] const SafetensorsEntry& at(std::string_view name, std::span<const Dtype> taken,
                                             std::string_view source) const;
};

/// A whole file in memory. Deterministic: the order of `tensors` does not matter.
///
/// Throws Errc::corrupt_safetensors for tensors that could not be read back: a name twice or
/// "__metadata__", a byte count that is not shape x element size, text that is no UTF-8.
[[nodiscard]] std::vector<std::byte> encode_safetensors(std::span<const TensorBytes> tensors,
                                                        const SafetensorsMetadata& metadata = {});

/// The header of a file that is in memory as a whole. Throws Errc::corrupt_safetensors, and unsupported_dtype for an
/// element type that the format has no name for, naming the tensor.
///
///   source  named in messages: a path or an object's place
[[nodiscard]] SafetensorsHeader parse_safetensors(std::span<const std::byte> file,
                                                  std::string_view source = "safetensors bytes");

/// The bytes of one tensor of a file that is in memory as a whole.
[[nodiscard]] std::span<const std::byte> tensor_bytes(std::span<const std::byte> file, const SafetensorsHeader& header,
                                                      std::string_view name);

/// encode_safetensors straight to disk without a second copy in memory; appears whole or not at all
/// (AtomicFile). Throws as both do.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors,
                       const SafetensorsMetadata& metadata = {});

/// write_safetensors() for tensors that are not in memory at the same time: their bytes come in any order.
class SafetensorsWriter {
public:
    /// Throws as write_safetensors() does.
    SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorOutline> tensors,
                      const SafetensorsMetadata& metadata = {});

    /// Bytes of one tensor. Throws corrupt_safetensors when they go beyond its end.
    ///
    ///   tensor  its index in what the constructor got
    ///   offset  of the first of these bytes in the tensor
    void write(std::size_t tensor, std::span<const std::byte> bytes, std::uint64_t offset = 0);

    /// Once, after all bytes of all tensors; the file is visible when this returns. Throws corrupt_safetensors before.
    void publish();

private:
    struct Extent {
        std::uint64_t begin = 0;  // in the file
        std::uint64_t bytes = 0;
    };
    AtomicFile file_;
    std::vector<Extent> extents_;  // by tensor
    std::uint64_t missing_ = 0;    // bytes that have not come yet
};

/// A file on disk, read tensor by tensor. read() may be called from several threads.
class SafetensorsFile {
public:
    /// Reads and checks the header. Throws Errc::not_found, io_failed, corrupt_safetensors, unsupported_dtype.
    explicit SafetensorsFile(std::filesystem::path path);
    SafetensorsFile(const SafetensorsFile&) = delete;
    SafetensorsFile& operator=(const SafetensorsFile&) = delete;
    ~SafetensorsFile();

    [[nodiscard]] const SafetensorsHeader& header() const noexcept { return header_; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

    /// Fills `out` with the bytes of `entry` from `offset` on, all of them when out is that large.
    ///
    ///   offset  bytes from the tensor's first; offset + out.size() <= entry.end - entry.begin
    void read(const SafetensorsEntry& entry, std::span<std::byte> out, std::uint64_t offset = 0) const;

private:
    std::filesystem::path path_;
    SafetensorsHeader header_;
    int descriptor_ = -1;
};

}  // namespace strata::storage

#ifndef STRATA_COMPILED
#include <strata/storage/impl/safetensors.ipp>
#endif
