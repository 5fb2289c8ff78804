#pragma once
// tools/own_host.hpp - own_host(): which host of a list this one is, by its name or by its address.

#include <string>
#include <vector>

#include <sys/socket.h>

#include "launch_hosts.hpp"

namespace strata::tools {

/// As digits. Empty for what is neither IPv4 nor IPv6, and for addresses that are of use on one link only.
[[nodiscard]] std::string address_of(const sockaddr& address);

/// Addresses that other hosts may know this one by; those of the loopback last, for a launch without a network. Never none.
[[nodiscard]] std::vector<std::string> own_addresses();

/// The host of the list that this one is: mpirun starts its ranks itself, and nobody asks it by ssh. Empty: none.
///
/// Names are looked up (DNS) where none of them is this host's own.
[[nodiscard]] std::string own_host(const std::vector<LaunchHost>& hosts);

}  // namespace strata::tools
