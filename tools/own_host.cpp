#include "own_host.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <strata/core/host_name.hpp>

namespace strata::tools {

namespace {

bool has_one_of(const std::string& name, const std::vector<std::string>& addresses) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    if (::getaddrinfo(name.c_str(), nullptr, &wanted, &list) != 0) return false;
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner{list, ::freeaddrinfo};
    for (const addrinfo* one = list; one != nullptr; one = one->ai_next)
        if (std::find(addresses.begin(), addresses.end(), address_of(*one->ai_addr)) != addresses.end()) return true;
    return false;
}

}  // namespace

std::string address_of(const sockaddr& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address.sa_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
        ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    } else if (address.sa_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
        if (!IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    }
    return text.data();
}

std::vector<std::string> own_addresses() {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return {"127.0.0.1"};
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner{list, ::freeifaddrs};
    std::vector<std::string> others;
    std::vector<std::string> loopback;
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
        if (std::string text = address_of(*one->ifa_addr); !text.empty())
            ((one->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : others).push_back(std::move(text));
    }
    others.insert(others.end(), loopback.begin(), loopback.end());
    if (others.empty()) others.emplace_back("127.0.0.1");
    return others;
}

std::string own_host(const std::vector<LaunchHost>& hosts) {
    const std::string own = core::host_name();
    for (const LaunchHost& host : hosts)
        if (host.name == own || host.name == "localhost" || host.name == "127.0.0.1" ||
            host.name.substr(0, host.name.find('.')) == own.substr(0, own.find('.')))
            return host.name;
    const std::vector<std::string> addresses = own_addresses();
    for (const LaunchHost& host : hosts)
        if (has_one_of(host.name, addresses)) return host.name;
    return {};
}

}  // namespace strata::tools
