#pragma once
// strata/storage/impl/leftovers.ipp - whose a temporary file is, and whether he lives.

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <strata/core/inline.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/impl/atomic_file.ipp>
#include <strata/storage/leftovers.hpp>

namespace strata::storage {

namespace detail {

/// The digits of kernel_digits() in the name of an AtomicFile's temporary file, ".<name>.<digits>-<number>.tmp"; empty
/// for one of an earlier version, ".<name>.<number>.tmp"; nothing for any other name.
inline std::optional<std::string_view> kernel_in(std::string_view name) noexcept {
    if (!is_temporary_name(name)) return std::nullopt;
    name.remove_suffix(std::string_view{".tmp"}.size());
    const std::size_t dot = name.rfind('.');
    if (dot == 0 || dot == std::string_view::npos) return std::nullopt;
    std::string_view number = name.substr(dot + 1);
    std::string_view kernel;
    if (number.size() > kernel_digit_count && number[kernel_digit_count] == '-') {
        kernel = number.substr(0, kernel_digit_count);
        number.remove_prefix(kernel_digit_count + 1);
    }
    const auto all_of = [](std::string_view text, std::string_view letters) {
        return text.find_first_not_of(letters) == std::string_view::npos;
    };
    if (number.empty() || !all_of(number, "0123456789") || !all_of(kernel, "0123456789abcdef")) return std::nullopt;
    return kernel;
}

/// Removes the file if its writer is certain to be gone.
inline bool remove_leftover(const std::filesystem::path& file, std::string_view kernel,
                            std::chrono::seconds least_age) {
    const Descriptor open_file{::open(file.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
    struct ::stat status {};
    if (open_file.get() < 0 || ::fstat(open_file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    const bool is_ours = kernel == kernel_digits() && kernel != std::string(kernel_digit_count, '0');
    if (!is_ours && std::time(nullptr) - status.st_mtim.tv_sec < least_age.count()) return false;
    // Locked until it is removed: a writer who has made it and not locked it yet sees that, and makes another one.
    return ::flock(open_file.get(), LOCK_EX | LOCK_NB) == 0 && ::unlink(file.c_str()) == 0;
}

}  // namespace detail

STRATA_INLINE std::int64_t remove_leftovers(const std::filesystem::path& folder, int depth,
                                            std::chrono::seconds least_age) {
    std::int64_t removed = 0;
    std::error_code error;
    using Walk = std::filesystem::recursive_directory_iterator;
    for (Walk at{folder, std::filesystem::directory_options::skip_permission_denied, error}, end; !error && at != end;
         at.increment(error)) {
        if (at.depth() >= depth) at.disable_recursion_pending();
        const std::string name = at->path().filename().string();
        const auto kernel = detail::kernel_in(name);
        if (kernel && detail::remove_leftover(at->path(), *kernel, least_age)) ++removed;
    }
    return removed;
}

}  // namespace strata::storage
