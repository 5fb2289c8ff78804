#pragma once
// strata/http/impl/public_address.ipp - the networks that are not the internet.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <strata/core/inline.hpp>
#include <strata/http/public_address.hpp>

namespace strata::http {

namespace detail {

struct Ipv4Network {
    std::uint32_t address;
    int bits;
};

/// IANA's IPv4 Special-Purpose Address Registry, multicast and what is reserved.
inline constexpr std::array<Ipv4Network, 16> not_public_ipv4{{
    {0x00000000, 8},   // this network
    {0x0A000000, 8},   // private
    {0x64400000, 10},  // shared, of carriers
    {0x7F000000, 8},   // loopback
    {0xA9FE0000, 16},  // link-local, with the metadata services of clouds
    {0xAC100000, 12},  // private
    {0xC0000000, 24},  // protocol assignments
    {0xC0000200, 24},  // documentation
    {0xC01FC400, 24},  // AS112
    {0xC034C100, 24},  // AMT
    {0xC0586300, 24},  // 6to4 relays
    {0xC0A80000, 16},  // private
    {0xC6120000, 15},  // benchmarks
    {0xC6336400, 24},  // documentation
    {0xCB007100, 24},  // documentation
    {0xE0000000, 3},   // multicast and reserved
}};

constexpr bool is_public_ipv4(std::uint32_t address) noexcept {
    for (const Ipv4Network& network : not_public_ipv4)
        if (((address ^ network.address) >> static_cast<unsigned>(32 - network.bits)) == 0) return false;
    return true;
}

using Ipv6Bytes = std::array<std::uint8_t, 16>;

constexpr std::uint32_t ipv4_at(const Ipv6Bytes& bytes, std::size_t at) noexcept {
    return std::uint32_t{bytes[at]} << 24U | std::uint32_t{bytes[at + 1]} << 16U | std::uint32_t{bytes[at + 2]} << 8U |
           bytes[at + 3];
}

inline bool is_public_ipv6(const Ipv6Bytes& bytes) noexcept {
    constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    constexpr std::array<std::uint8_t, 12> nat64{0, 0x64, 0xFF, 0x9B};
    const auto begins_with = [&](const auto& prefix) {
        return std::equal(prefix.begin(), prefix.end(), bytes.begin());
    };
    if (begins_with(mapped) || begins_with(nat64)) return is_public_ipv4(ipv4_at(bytes, 12));
    if ((bytes[0] & 0xE0U) != 0x20) return false;  // 2000::/3 is what is given out
    if (bytes[0] == 0x20 && bytes[1] == 0x02) return is_public_ipv4(ipv4_at(bytes, 2));  // 6to4
    if (bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] < 2) return false;              // 2001::/23: Teredo and others
    if (begins_with(std::array<std::uint8_t, 4>{0x20, 0x01, 0x0D, 0xB8})) return false;  // documentation
    return !(bytes[0] == 0x3F && bytes[1] == 0xFF && (bytes[2] & 0xF0U) == 0);           // documentation
}

}  // namespace detail

STRATA_INLINE bool is_public(const ::sockaddr& address) noexcept {
    if (address.sa_family == AF_INET) {
        ::sockaddr_in ipv4{};
        std::memcpy(&ipv4, &address, sizeof ipv4);
        return detail::is_public_ipv4(ntohl(ipv4.sin_addr.s_addr));
    }
    if (address.sa_family == AF_INET6) {
        ::sockaddr_in6 ipv6{};
        std::memcpy(&ipv6, &address, sizeof ipv6);
        detail::Ipv6Bytes bytes{};
        std::memcpy(bytes.data(), &ipv6.sin6_addr, bytes.size());
        return detail::is_public_ipv6(bytes);
    }
    return false;
}

STRATA_INLINE std::string address_text(const ::sockaddr& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address.sa_family == AF_INET) {
        ::sockaddr_in ipv4{};
        std::memcpy(&ipv4, &address, sizeof ipv4);
        ::inet_ntop(AF_INET, &ipv4.sin_addr, text.data(), text.size());
    } else if (address.sa_family == AF_INET6) {
        ::sockaddr_in6 ipv6{};
        std::memcpy(&ipv6, &address, sizeof ipv6);
        ::inet_ntop(AF_INET6, &ipv6.sin6_addr, text.data(), text.size());
    }
    return text[0] == '\0' ? "?" : text.data();
}

}  // namespace strata::http
