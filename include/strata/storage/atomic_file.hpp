#pragma once
// strata/storage/atomic_file.hpp - a file that appears whole or not at all.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>

namespace strata::storage {

/// What a published file survives.
enum class Durability : std::uint8_t {
    power_loss,   ///< fsync of file and folder: milliseconds each; for what cannot be made again
    process_end,  ///< left to the system: after a power loss the file may be torn; for caches whose readers check them
};

/// Writes a file beside its final place and moves it there when it is complete.
///
/// The bytes go to a hidden file `.<name>.<kernel>-<random>.tmp` in the same folder, locked by its writer; publish() makes them
/// durable (fsync), renames and makes the name durable (fsync of the folder), unless Durability says otherwise. An AtomicFile that is
/// destroyed unpublished removes its temporary file, so a failure leaves what was there before.
/// Only a process that is killed can leave a `.tmp` file behind; nothing ever reads those, and remove_leftovers() removes them.
///
/// Throws Errc::no_space when the disk or a quota is full, Errc::io_failed for other failures, both
/// with the path.
class AtomicFile {
public:
    /// Creates missing parent folders and the temporary file.
    explicit AtomicFile(std::filesystem::path path, Durability durability = Durability::power_loss);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile();

    void write(std::span<const std::byte> bytes);
    /// Bytes for another place than behind those written before; what lies in front of them must come as well.
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
    void publish();  ///< once; the file is visible under its name when this returns

private:
    std::filesystem::path path_;
    std::filesystem::path temporary_;
    Durability durability_;
    int descriptor_ = -1;
    bool published_ = false;
};

/// AtomicFile for bytes that are at hand.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes,
                Durability durability = Durability::power_loss);
void write_file(const std::filesystem::path& path, std::string_view text);

/// The whole file. Throws Errc::not_found or Errc::io_failed with the path.
[[nodiscard]] std::vector<std::byte> read_file(const std::filesystem::path& path);

/// Eight hexadecimal digits of the running kernel, the same for all processes whose locks meet, on one machine from one
/// start to the next. AtomicFile puts them into the names of its temporary files.
[[nodiscard]] const std::string& kernel_digits();

/// True for the names that AtomicFile gives to files that are not complete yet.
[[nodiscard]] bool is_temporary_name(std::string_view file_name) noexcept;

namespace detail {
/// The Error for a failed system call: ENOENT -> not_found, ENOSPC and EDQUOT -> no_space, else io_failed.
[[nodiscard]] Error file_error(int error_number, std::string_view action, const std::filesystem::path& path);
}  // namespace detail

}  // namespace strata::storage

#ifndef STRATA_COMPILED
#include <strata/storage/impl/atomic_file.ipp>
#endif
