#pragma once
// strata/checkpoint/impl/folders.ipp - folders are renamed before they are removed or anything is looked for in them.

#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <strata/checkpoint/folders.hpp>
#include <strata/core/error.hpp>
#include <strata/core/step_name.hpp>

namespace strata::checkpoint {
namespace detail {

STRATA_INLINE Error corrupt(const std::filesystem::path& file, const std::string& what) {
    return Error{Errc::corrupt_checkpoint, "the checkpoint file " + file.string() + " " + what,
                 "put back a copy of it, or start over with --fresh"};
}

STRATA_INLINE std::vector<std::pair<std::int64_t, std::filesystem::path>> checkpoints_by_step(
    const std::filesystem::path& folder) {
    std::vector<std::pair<std::int64_t, std::filesystem::path>> found;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator{folder, none})
        if (const auto step = core::step_of(entry.path().filename().string()); step && entry.is_directory())
            found.emplace_back(*step, entry.path());
    std::sort(found.begin(), found.end());
    return found;
}

STRATA_INLINE FileRecord record_of(const std::filesystem::path& file) {
    std::ifstream in{file, std::ios::binary};
    std::vector<char> block(std::size_t{1} << 20);
    FileRecord record{file.filename().string(), 0, 0, {}};
    uLong sum = ::crc32(0, nullptr, 0);
    while (in) {
        in.read(block.data(), static_cast<std::streamsize>(block.size()));
        const auto count = static_cast<std::size_t>(in.gcount());
        sum = ::crc32_z(sum, reinterpret_cast<const Bytef*>(block.data()), count);
        record.bytes += count;
    }
    if (!in.eof()) throw corrupt(file, "cannot be read");
    record.crc32 = static_cast<std::uint32_t>(sum);
    return record;
}

STRATA_INLINE std::filesystem::path final_name(const std::filesystem::path& folder, std::int64_t step) {
    return folder / core::step_name(step);
}

inline constexpr std::string_view partial_ending = ".partial";

STRATA_INLINE std::filesystem::path partial_name(const std::filesystem::path& folder, std::int64_t step) {
    return partial_name(final_name(folder, step));
}
STRATA_INLINE std::filesystem::path partial_name(const std::filesystem::path& checkpoint) {
    return checkpoint.parent_path() / ("." + checkpoint.filename().string() + std::string{partial_ending});
}
inline bool is_partial_name(std::string_view name) {
    return name.size() > partial_ending.size() && name.starts_with('.') && name.ends_with(partial_ending) &&
           core::step_of(name.substr(1, name.size() - 1 - partial_ending.size()));
}

STRATA_INLINE void publish(const std::filesystem::path& partial, const std::filesystem::path& final_folder) {
    const auto sync_folder = [](const std::filesystem::path& folder) {
        const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (descriptor < 0) return;
        ::fsync(descriptor);
        ::close(descriptor);
    };
    sync_folder(partial);
    std::filesystem::rename(partial, final_folder);
    sync_folder(final_folder.parent_path());
}

}  // namespace detail

STRATA_INLINE std::filesystem::path set_aside(const std::filesystem::path& checkpoint, std::string_view prefix) {
    const auto plain = checkpoint.parent_path() / (std::string{prefix} + checkpoint.filename().string());
    auto place = plain;
    std::error_code unknown;
    for (int number = 2; std::filesystem::exists(place, unknown); ++number)
        place = plain.string() + "_" + std::to_string(number);
    std::error_code failed;
    std::filesystem::rename(checkpoint, place, failed);
    if (failed)
        throw Error{Errc::io_failed,
                    "the checkpoint " + checkpoint.string() + " cannot be renamed: " + failed.message(),
                    "rename or delete it, or change the permissions of its folder"};
    return place;
}

STRATA_INLINE void remove_unfinished(const std::filesystem::path& folder) {
    std::error_code none;
    std::vector<std::filesystem::path> unfinished;
    for (const auto& entry : std::filesystem::directory_iterator{folder, none})
        if (detail::is_partial_name(entry.path().filename().string())) unfinished.push_back(entry.path());
    for (const auto& path : unfinished) std::filesystem::remove_all(path);
}

STRATA_INLINE void keep_newest(const std::filesystem::path& folder, std::int64_t count) {
    remove_unfinished(folder);
    auto found = detail::checkpoints_by_step(folder);
    const auto surplus = static_cast<std::int64_t>(found.size()) - std::max<std::int64_t>(count, 1);
    for (std::int64_t i = 0; i < surplus; ++i) {
        // Renamed first: a folder that is being removed must not look like a checkpoint.
        const auto doomed = detail::partial_name(folder, found[static_cast<std::size_t>(i)].first);
        std::filesystem::rename(found[static_cast<std::size_t>(i)].second, doomed);
        std::filesystem::remove_all(doomed);
    }
}

}  // namespace strata::checkpoint
