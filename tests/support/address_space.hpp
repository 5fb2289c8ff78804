#pragma once
// tests/support/address_space.hpp - a limit on what a test may allocate, for files that ask for too much.

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace strata_test {

/// While it lives, this process may take `more` bytes of address space beyond what it has; then malloc fails. Without
/// effect under AddressSanitizer, which reserves terabytes.
class AddressSpaceLimit {
public:
    explicit AddressSpaceLimit([[maybe_unused]] std::uint64_t more) {
#ifndef __SANITIZE_ADDRESS__
        ::getrlimit(RLIMIT_AS, &before_);
        std::uint64_t pages = 0;
        std::ifstream{"/proc/self/statm"} >> pages;
        ::rlimit limit = before_;
        limit.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + more;
        limited_ = ::setrlimit(RLIMIT_AS, &limit) == 0;
#endif
    }
    AddressSpaceLimit(const AddressSpaceLimit&) = delete;
    AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;
    ~AddressSpaceLimit() {
        if (limited_) ::setrlimit(RLIMIT_AS, &before_);
    }
    [[nodiscard]] bool limited() const noexcept { return limited_; }

private:
    ::rlimit before_{};
    bool limited_ = false;
};

}  // namespace strata_test
