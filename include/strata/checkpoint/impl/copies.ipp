#pragma once
// strata/checkpoint/impl/copies.ipp - files on their way, and what a host has of a checkpoint already.

#include <algorithm>
#include <charconv>
#include <system_error>

#include <zlib.h>

#include <strata/checkpoint/copies.hpp>
#include <strata/checkpoint/folders.hpp>
#include <strata/core/error.hpp>
#include <strata/core/host_name.hpp>

namespace strata::checkpoint::detail {

STRATA_INLINE FileInTransit::FileInTransit(std::filesystem::path folder, const FileRecord& record)
    : path_{std::move(folder) / record.name}, record_{record} {}

STRATA_INLINE void FileInTransit::open_to_read() { in_.open(path_, std::ios::binary); }

STRATA_INLINE void FileInTransit::open_to_write() {
    try_to([&] { out_.emplace(path_); });
}

STRATA_INLINE void FileInTransit::read(std::span<std::byte> block) {
    std::fill(block.begin(), block.end(), std::byte{0});
    try_to([&] {
        if (!in_.read(reinterpret_cast<char*>(block.data()), static_cast<std::streamsize>(block.size())))
            throw Error{
                Errc::io_failed,
                path_.string() + " cannot be read on " + core::host_name() + ", to be copied to the other hosts",
                "look at the disk of that host"};
    });
}

STRATA_INLINE void FileInTransit::write(std::span<const std::byte> block) {
    try_to([&] {
        crc32_ =
            static_cast<std::uint32_t>(::crc32_z(crc32_, reinterpret_cast<const Bytef*>(block.data()), block.size()));
        out_->write(block);
    });
}

STRATA_INLINE void FileInTransit::finish() {
    try_to([&] {
        if (!out_) return;
        if (crc32_ != record_.crc32)
            throw Error{Errc::io_failed,
                        path_.string() + " came to " + core::host_name() + " with other bytes than were sent",
                        "look at the memory and the network of that host, and of the one where the file was written"};
        out_->publish();
    });
    if (failure_) std::rethrow_exception(failure_);
}

STRATA_INLINE std::vector<std::size_t> files_to_bring(const std::filesystem::path& checkpoint, const Manifest& manifest,
                                                      int rank, int world) {
    std::vector<std::size_t> missing;
    for (std::size_t i = static_cast<std::size_t>(rank); i < manifest.files.size();
         i += static_cast<std::size_t>(world)) {
        const FileRecord& expected = manifest.files[i];
        const auto file = checkpoint / expected.name;
        std::error_code none;
        if (std::filesystem::file_size(file, none) == expected.bytes && !none) {
            try {
                if (record_of(file).crc32 == expected.crc32) continue;
            } catch (const Error&) {  // cannot be read
            }
        }
        missing.push_back(i);
    }
    return missing;
}

STRATA_INLINE std::string text_of(std::span<const std::size_t> numbers) {
    std::string text;
    for (const std::size_t number : numbers) text += std::to_string(number) + ",";
    return text;
}

STRATA_INLINE void add_numbers(const std::string& text, std::vector<std::size_t>& numbers) {
    for (const char *at = text.data(), *const end = at + text.size(); at < end; ++at) {
        std::size_t number = 0;
        at = std::from_chars(at, end, number).ptr;
        numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

STRATA_INLINE void begin_copy(const std::filesystem::path& checkpoint, const std::filesystem::path& partial,
                              const Manifest& manifest, std::string_view text, std::span<const std::size_t> missing) {
    std::filesystem::remove_all(partial);
    std::filesystem::create_directories(partial.parent_path());
    if (comm::bytes_of_file(checkpoint / manifest_file) != text) {
        std::filesystem::create_directory(partial);
        for (std::size_t i = 0; i < manifest.files.size(); ++i)
            if (!std::binary_search(missing.begin(), missing.end(), i))
                std::filesystem::copy_file(checkpoint / manifest.files[i].name, partial / manifest.files[i].name);
        return;
    }
    std::filesystem::rename(checkpoint, partial);
    for (const std::size_t number : missing) std::filesystem::remove_all(partial / manifest.files[number].name);
}

STRATA_INLINE void publish_copy(const std::filesystem::path& partial, const std::filesystem::path& final_folder,
                                std::string_view manifest) {
    if (comm::bytes_of_file(final_folder / manifest_file) == manifest) {
        std::filesystem::remove_all(partial);
        return;
    }
    storage::write_file(partial / manifest_file, manifest);
    std::error_code unknown;
    if (std::filesystem::symlink_status(final_folder, unknown).type() != std::filesystem::file_type::not_found)
        static_cast<void>(set_aside(final_folder, "other_"));
    publish(partial, final_folder);
}

}  // namespace strata::checkpoint::detail
