#pragma once
// strata/storage/impl/local.ipp - Local over POSIX files.

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <strata/core/error.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/impl/atomic_file.ipp>
#include <strata/storage/leftovers.hpp>
#include <strata/storage/local.hpp>

namespace strata {

namespace storage::detail {

inline ObjectInfo info_of(std::string key, const struct ::stat& status) {
    const auto nanoseconds = [](const struct ::timespec& time) {
        return std::to_string(static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec);
    };
    // A program can set the size and the time of modification to what they were, but not the time of change, and a file
    // that is renamed into the place of another has another inode.
    return {std::move(key), static_cast<std::uint64_t>(status.st_size),
            std::to_string(status.st_size) + "-" + nanoseconds(status.st_mtim) + "-" + nanoseconds(status.st_ctim) +
                "-" + std::to_string(status.st_ino)};
}

/// Walk below one folder in the order of keys: entries of a folder sorted by name, where a folder's name ends in '/'.
class Walk {
public:
    using Visit = std::function<bool(ObjectInfo&&)>;

    /// Visits keys that start with `prefix` and are greater than `after`, until `visit` returns false.
    Walk(std::string_view prefix, std::string_view after, const Visit& visit)
        : prefix_{prefix}, after_{after}, visit_{visit} {}

    void below(const std::filesystem::path& root) { folder(root, ""); }

private:
    void folder(const std::filesystem::path& path, const std::string& key_prefix) {
        struct ::stat own {};
        if (::stat(path.c_str(), &own) != 0) {
            if (errno == ENOENT || errno == ENOTDIR) return;
            throw file_error(errno, "list", path);
        }
        const std::pair<dev_t, ino_t> identity{own.st_dev, own.st_ino};
        if (std::find(open_folders_.begin(), open_folders_.end(), identity) != open_folders_.end()) return;
        open_folders_.push_back(identity);
        for (const std::string& name : entries(path, key_prefix)) {
            if (ended_) break;
            if (name.ends_with('/'))
                folder(path / name.substr(0, name.size() - 1), key_prefix + name);
            else
                file(path / name, key_prefix + name);
        }
        open_folders_.pop_back();
    }

    /// Names in a folder that may lead to a key that is asked for.
    std::vector<std::string> entries(const std::filesystem::path& path, const std::string& key_prefix) const {
        DIR* const directory = ::opendir(path.c_str());
        if (directory == nullptr) throw file_error(errno, "list", path);
        std::vector<std::string> names;
        errno = 0;
        while (const dirent* entry = ::readdir(directory)) {
            std::string name = entry->d_name;
            if (name == "." || name == ".." || is_temporary_name(name)) continue;
            if (entry->d_type == DT_DIR || (entry->d_type != DT_REG && is_folder(path / name))) name += '/';
            if (may_hold_keys(key_prefix + name)) names.push_back(std::move(name));
            errno = 0;
        }
        const int error_number = errno;
        ::closedir(directory);
        if (error_number != 0) throw file_error(error_number, "list", path);
        std::sort(names.begin(), names.end());
        return names;
    }

    static bool is_folder(const std::filesystem::path& path) {
        struct ::stat status {};
        return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    }

    bool may_hold_keys(std::string_view key) const noexcept {
        if (!key.ends_with('/')) return key.starts_with(prefix_) && (after_.empty() || key > after_);
        // A folder matters if the prefix lies inside it or it lies inside the prefix, and unless `after` is behind it.
        return (key.starts_with(prefix_) || prefix_.starts_with(key)) && (key > after_ || after_.starts_with(key));
    }

    void file(const std::filesystem::path& path, const std::string& key) {
        struct ::stat status {};
        if (::stat(path.c_str(), &status) != 0) {
            if (errno == ENOENT || errno == ELOOP) return;  // a dangling link, or removed since it was listed
            throw file_error(errno, "inspect", path);
        }
        if (S_ISREG(status.st_mode)) ended_ = !visit_(info_of(key, status));
    }

    std::string_view prefix_;
    std::string_view after_;
    const Visit& visit_;
    bool ended_ = false;
    std::vector<std::pair<dev_t, ino_t>> open_folders_;  // from the root down to where the walk is
};

inline bool is_key(std::string_view key) noexcept {
    if (key.empty() || key.find('\0') != std::string_view::npos) return false;
    while (true) {
        const std::size_t slash = key.find('/');
        const std::string_view part = key.substr(0, slash);
        if (part.empty() || part == "." || part == "..") return false;
        if (slash == std::string_view::npos) return true;
        key.remove_prefix(slash + 1);
    }
}

}  // namespace storage::detail

STRATA_INLINE Local::Local(std::filesystem::path root, storage::Durability durability)
    : root_{std::move(root)}, durability_{durability} {}

STRATA_INLINE std::filesystem::path Local::path_of(std::string_view key) const {
    if (!storage::detail::is_key(key))
        throw Error{Errc::bad_object_key, "'" + std::string{key} + "' is no object key below '" + root_.string() + "'",
                    "use a relative path without empty, '.' or '..' parts"};
    return root_ / key;
}

STRATA_INLINE std::string Local::where(std::string_view key) const {
    return (key.empty() ? root_ : root_ / key).string();
}

STRATA_INLINE std::vector<storage::ObjectInfo> Local::list(std::string_view prefix) const {
    std::vector<storage::ObjectInfo> objects;
    list_each(prefix, [&](storage::ObjectInfo&& info) {
        objects.push_back(std::move(info));
        return true;
    });
    return objects;
}

STRATA_INLINE void Local::list_each(std::string_view prefix,
                                    const std::function<bool(storage::ObjectInfo&&)>& visit) const {
    storage::detail::Walk{prefix, "", visit}.below(root_);
}

STRATA_INLINE storage::ObjectPage Local::list_page(std::string_view prefix, std::string_view after,
                                                   std::size_t limit) const {
    limit = std::clamp<std::size_t>(limit, 1, std::numeric_limits<std::size_t>::max() - 1);
    storage::ObjectPage page;
    const std::function<bool(storage::ObjectInfo &&)> visit = [&](storage::ObjectInfo&& info) {
        page.objects.push_back(std::move(info));
        return page.objects.size() <= limit;  // one more: is there more?
    };
    storage::detail::Walk{prefix, after, visit}.below(root_);
    if (page.objects.size() > limit) {
        page.objects.pop_back();
        page.next = page.objects.back().key;
    }
    return page;
}

STRATA_INLINE std::optional<storage::ObjectInfo> Local::head(std::string_view key) const {
    const std::filesystem::path path = path_of(key);
    struct ::stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
        throw storage::detail::file_error(errno, "inspect", path);
    }
    if (!S_ISREG(status.st_mode)) return std::nullopt;
    return storage::detail::info_of(std::string{key}, status);
}

STRATA_INLINE bool Local::exists(std::string_view key) const { return head(key).has_value(); }

STRATA_INLINE std::vector<std::byte> Local::get(std::string_view key) const { return storage::read_file(path_of(key)); }

STRATA_INLINE std::vector<std::byte> Local::get_range(std::string_view key, std::uint64_t offset,
                                                      std::uint64_t length) const {
    const std::filesystem::path path = path_of(key);
    const storage::detail::Descriptor file{storage::detail::open_for_reading(path)};
    const std::uint64_t size = storage::detail::size_of(file.get(), path);
    std::vector<std::byte> bytes(offset < size ? std::min(length, size - offset) : 0);
    bytes.resize(storage::detail::read_fully(file.get(), offset, bytes, path));
    return bytes;
}

STRATA_INLINE void Local::put(std::string_view key, std::span<const std::byte> bytes) const {
    storage::write_file(path_of(key), bytes, durability_);
}

STRATA_INLINE std::int64_t Local::remove_leftovers() const { return storage::remove_leftovers(root_); }

STRATA_INLINE void Local::remove(std::string_view key) const {
    const std::filesystem::path path = path_of(key);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
        throw storage::detail::file_error(errno, "remove", path);
}

}  // namespace strata
