#pragma once
// strata/http/public_address.hpp - is_public(): whether an address is one of the internet's, and not of a host or a network of somebody's own.

#include <string>

#include <strata/core/inline.hpp>

struct sockaddr;  // of the system

namespace strata::http {

/// False for what reaches only this host (loopback), its link or a private network, for multicast and for what is kept for
/// documentation or other uses (RFC 6890 and what IANA's registries have added), and for any family but IPv4 and IPv6. An IPv4 address inside an
/// IPv6 one (mapped, NAT64, 6to4) counts as the IPv4 address.
[[nodiscard]] bool is_public(const ::sockaddr& address) noexcept;

/// "127.0.0.1", "fe80::1"; "?" for another family.
[[nodiscard]] std::string address_text(const ::sockaddr& address);

}  // namespace strata::http

#ifndef STRATA_COMPILED
#include <strata/http/impl/public_address.ipp>
#endif
