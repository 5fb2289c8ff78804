#pragma once
// strata/storage/impl/atomic_file.ipp - the system calls behind AtomicFile.

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <strata/storage/atomic_file.hpp>

namespace strata::storage {

namespace detail {

STRATA_INLINE Error file_error(int error_number, std::string_view action, const std::filesystem::path& path) {
    const std::string what =
        "cannot " + std::string{action} + " '" + path.string() + "': " + std::generic_category().message(error_number);
    switch (error_number) {
        case ENOENT:
            return Error{Errc::not_found, what, "check the path's spelling and that the disk is mounted"};
        case ENOSPC:
        case EDQUOT:
            return Error{Errc::no_space, what,
                         "free space there or choose another folder; what was complete before is intact"};
        case EACCES:
        case EPERM:
        case EROFS:
            return Error{Errc::io_failed, what, "give this user the right to it or choose another folder"};
        default:
            return Error{Errc::io_failed, what, "check the disk and the path"};
    }
}

inline constexpr std::size_t kernel_digit_count = 8;

/// Closes a descriptor however a function is left.
class Descriptor {
public:
    explicit Descriptor(int value) noexcept : value_{value} {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (value_ >= 0) ::close(value_);
    }
    [[nodiscard]] int get() const noexcept { return value_; }
    [[nodiscard]] int release() noexcept { return std::exchange(value_, -1); }

private:
    int value_;
};

/// Reads until `out` is full or the file ends; returns how many bytes were read.
inline std::size_t read_fully(int descriptor, std::uint64_t offset, std::span<std::byte> out,
                              const std::filesystem::path& path) {
    std::size_t done = 0;
    while (done < out.size()) {
        const ssize_t n = ::pread(descriptor, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw file_error(errno, "read", path);
        if (n == 0) break;
        done += static_cast<std::size_t>(n);
    }
    return done;
}

inline int open_for_reading(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw file_error(errno == ENOTDIR ? ENOENT : errno, "open", path);
    return descriptor;
}

/// Bytes of an open regular file.
inline std::uint64_t size_of(int descriptor, const std::filesystem::path& path) {
    struct ::stat status {};
    if (::fstat(descriptor, &status) != 0) throw file_error(errno, "inspect", path);
    if (!S_ISREG(status.st_mode)) throw file_error(S_ISDIR(status.st_mode) ? EISDIR : EINVAL, "read", path);
    return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace detail

STRATA_INLINE const std::string& kernel_digits() {
    static const std::string digits = [] {
        std::string id;
        std::ifstream{"/proc/sys/kernel/random/boot_id"} >> id;
        id.resize(detail::kernel_digit_count, '0');
        if (id.find_first_not_of("0123456789abcdef") != std::string::npos) id.assign(detail::kernel_digit_count, '0');
        return id;
    }();
    return digits;
}

STRATA_INLINE bool is_temporary_name(std::string_view file_name) noexcept {
    return file_name.starts_with('.') && file_name.ends_with(".tmp");
}

STRATA_INLINE AtomicFile::AtomicFile(std::filesystem::path path, Durability durability)
    : path_{std::move(path)}, durability_{durability} {
    const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path{"."};
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw detail::file_error(error.value(), "create folder", folder);
    // Random and not the process id: ranks on other hosts may share this folder and have the same id. The lock tells
    // remove_leftovers() that its writer lives; where the disk has no locks, that leaves the file alone as well.
    std::random_device random;
    for (int attempt = 0; attempt < 16; ++attempt) {
        const std::uint64_t tag = (std::uint64_t{random()} << 32) | random();
        temporary_ =
            folder / ("." + path_.filename().string() + "." + kernel_digits() + "-" + std::to_string(tag) + ".tmp");
        descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor_ < 0 && errno != EEXIST) break;
        if (descriptor_ < 0) continue;
        const bool is_locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
        struct ::stat status {};
        const bool is_being_removed =
            is_locked ? ::fstat(descriptor_, &status) == 0 && status.st_nlink == 0 : errno == EWOULDBLOCK;
        if (!is_being_removed) return;
        ::close(std::exchange(descriptor_, -1));
        errno = EEXIST;
    }
    throw detail::file_error(errno, "create", path_);
}

STRATA_INLINE AtomicFile::~AtomicFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!published_) ::unlink(temporary_.c_str());
}

STRATA_INLINE void AtomicFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw detail::file_error(errno, "write", path_);
        bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
}

STRATA_INLINE void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw detail::file_error(errno, "write", path_);
        bytes = bytes.subspan(static_cast<std::size_t>(n));
        offset += static_cast<std::uint64_t>(n);
    }
}

STRATA_INLINE void AtomicFile::publish() {
    const bool durable = durability_ == Durability::power_loss;
    if (durable && ::fsync(descriptor_) != 0) throw detail::file_error(errno, "write", path_);
    // A second descriptor keeps the lock until the file has its name.
    const detail::Descriptor lock{::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0)};
    const int closing = std::exchange(descriptor_, -1);
    if (::close(closing) != 0)
        throw detail::file_error(errno, "write", path_);  // network disks report a full quota here
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw detail::file_error(errno, "publish", path_);
    published_ = true;
    if (!durable) return;
    const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path{"."};
    const detail::Descriptor directory{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    // Some file systems cannot sync a folder (EINVAL); the rename is then as durable as they make it.
    if (directory.get() >= 0 && ::fsync(directory.get()) != 0 && errno != EINVAL)
        throw detail::file_error(errno, "publish", path_);
}

STRATA_INLINE void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes,
                              Durability durability) {
    AtomicFile file{path, durability};
    file.write(bytes);
    file.publish();
}

STRATA_INLINE void write_file(const std::filesystem::path& path, std::string_view text) {
    write_file(path, std::as_bytes(std::span{text.data(), text.size()}));
}

STRATA_INLINE std::vector<std::byte> read_file(const std::filesystem::path& path) {
    const detail::Descriptor file{detail::open_for_reading(path)};
    std::vector<std::byte> bytes(detail::size_of(file.get(), path));
    bytes.resize(detail::read_fully(file.get(), 0, bytes, path));
    return bytes;
}

}  // namespace strata::storage
