#include "mount.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>

namespace strata::tools::doctor {

namespace {

/// "\040" of mountinfo is a blank.
std::string unescaped(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_octal =
            text[i] == '\\' && i + 3 < text.size() &&
            std::all_of(text.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                        text.begin() + static_cast<std::ptrdiff_t>(i) + 4, [](char c) { return '0' <= c && c <= '7'; });
        if (!is_octal) {
            plain += text[i];
            continue;
        }
        plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
        i += 3;
    }
    return plain;
}

}  // namespace

bool Mount::has(std::string_view option) const {
    std::istringstream in{options};
    for (std::string one; std::getline(in, one, ',');)
        if (std::string_view{one}.substr(0, one.find('=')) == option) return true;
    return false;
}

std::string Mount::option(std::string_view name) const {
    std::istringstream in{options};
    for (std::string one; std::getline(in, one, ',');)
        if (const std::size_t equals = one.find('='); equals != std::string::npos && one.substr(0, equals) == name)
            return one.substr(equals + 1);
    return {};
}

std::vector<Mount> parse_mounts(std::string_view mountinfo) {
    std::vector<Mount> mounts;
    std::istringstream in{std::string{mountinfo}};
    for (std::string line; std::getline(in, line);) {
        std::istringstream words{line};
        std::string skipped, root, point, options, word;
        if (!(words >> skipped >> skipped >> skipped >> root >> point >> options)) continue;
        while (words >> word && word != "-") continue;
        Mount mount;
        std::string more;
        if (!(words >> mount.type >> mount.source)) continue;
        words >> more;
        mount.point = unescaped(point);
        mount.source = unescaped(mount.source);
        mount.options = options + (more.empty() ? "" : "," + more);
        mounts.push_back(std::move(mount));
    }
    return mounts;
}

std::optional<Mount> mount_of(const std::vector<Mount>& mounts, const std::filesystem::path& path) {
    const std::string text = path.string();
    const Mount* best = nullptr;
    for (const Mount& mount : mounts) {
        const std::string& point = mount.point;
        const bool is_above = point == "/" || text == point || (text.starts_with(point) && text[point.size()] == '/');
        if (is_above && (best == nullptr || point.size() >= best->point.size())) best = &mount;
    }
    return best == nullptr ? std::nullopt : std::optional{*best};
}

}  // namespace strata::tools::doctor
