#pragma once
// tests/support/made_tar.hpp - tar files with any header a test wants.

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace strata_test {

struct TarEntry {
    std::string name;
    std::string content{};
    char type = '0';
    std::string prefix{};
    std::string size_field{};  ///< instead of the content's size
};

inline std::string made_tar(const std::vector<TarEntry>& entries) {
    std::string tar;
    for (const TarEntry& entry : entries) {
        std::string header(512, '\0');
        const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
        char digits[32];
        put(0, entry.name.substr(0, 100));
        put(100, "0000644");
        std::snprintf(digits, sizeof digits, "%011zo", entry.content.size());
        put(124, entry.size_field.empty() ? digits : entry.size_field);
        put(136, "14000000000");
        header[156] = entry.type;
        put(257, std::string{"ustar\0"
                             "00",
                             8});
        put(345, entry.prefix);
        put(148, "        ");
        unsigned sum = 0;
        for (const char c : header) sum += static_cast<unsigned char>(c);
        std::snprintf(digits, sizeof digits, "%06o", sum);
        put(148, std::string{digits} + '\0' + ' ');
        tar += header + entry.content;
        tar.resize((tar.size() + 511) / 512 * 512, '\0');
    }
    return tar + std::string(1024, '\0');
}

}  // namespace strata_test
