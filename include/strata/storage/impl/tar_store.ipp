#pragma once
// strata/storage/impl/tar_store.ipp - the index of a tar file, in memory and in a file.

#include <algorithm>
#include <charconv>
#include <cstring>

#include <strata/core/inline.hpp>
#include <strata/core/text.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/digest.hpp>
#include <strata/storage/tar_store.hpp>

namespace strata::storage {

namespace detail {

inline std::filesystem::path tar_index_file(const std::filesystem::path& folder, const std::string& place) {
    return folder / "tar" / (to_hex(sha256(core::bytes_of(place))).substr(0, 32) + ".index");
}

}  // namespace detail

STRATA_INLINE const TarMember* TarIndex::find(std::string_view name) const noexcept {
    const auto at = std::lower_bound(members.begin(), members.end(), name,
                                     [](const TarMember& member, std::string_view n) { return member.name < n; });
    return at != members.end() && at->name == name ? &*at : nullptr;
}

STRATA_INLINE TarIndex tar_index(std::vector<TarMember> members) {
    std::stable_sort(members.begin(), members.end(),
                     [](const TarMember& a, const TarMember& b) { return a.name < b.name; });
    TarIndex index;
    for (TarMember& member : members) {
        if (!index.members.empty() && index.members.back().name == member.name)
            index.members.back() = std::move(member);
        else
            index.members.push_back(std::move(member));
    }
    return index;
}

// A line "strata tar index 1 <SHA-256 of what follows>", then the tar file's place and version, NUL behind each; then
// of each member offset and size in decimal, a blank behind each, its name, and a NUL.

STRATA_INLINE void save_tar_index(const std::filesystem::path& folder, const std::string& place,
                                  const std::string& version, const TarIndex& index) {
    std::string body = place + '\0' + version + '\0';
    for (const TarMember& member : index.members)
        body += std::to_string(member.offset) + " " + std::to_string(member.size) + " " + member.name + '\0';
    const std::string file = "strata tar index 1 " + to_hex(sha256(core::bytes_of(body))) + "\n" + body;
    write_file(detail::tar_index_file(folder, place), core::bytes_of(file), Durability::process_end);
}

STRATA_INLINE std::optional<TarIndex> load_tar_index(const std::filesystem::path& folder, const std::string& place,
                                                     const std::string& version) {
    std::vector<std::byte> bytes;
    try {
        bytes = read_file(detail::tar_index_file(folder, place));
    } catch (const Error& error) {
        if (error.code() != Errc::not_found) throw;
        return std::nullopt;
    }
    const std::string_view file{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    const std::size_t line = file.find('\n');
    if (line == std::string_view::npos) return std::nullopt;
    std::string_view body = file.substr(line + 1);
    if (file.substr(0, line) != "strata tar index 1 " + to_hex(sha256(core::bytes_of(body)))) return std::nullopt;
    const auto next = [&]() -> std::string_view {
        const std::size_t end = std::min(body.find('\0'), body.size());
        const std::string_view part = body.substr(0, end);
        body.remove_prefix(std::min(end + 1, body.size()));
        return part;
    };
    if (next() != place || next() != version) return std::nullopt;
    TarIndex index;
    while (!body.empty()) {
        const std::string_view part = next();
        TarMember member;
        const char* const end = part.data() + part.size();
        const auto offset = std::from_chars(part.data(), end, member.offset);
        if (offset.ec != std::errc{} || offset.ptr == end) return std::nullopt;
        const auto size = std::from_chars(offset.ptr + 1, end, member.size);
        if (size.ec != std::errc{} || size.ptr == end) return std::nullopt;
        member.name.assign(size.ptr + 1, end);
        index.members.push_back(std::move(member));
    }
    return index;
}

}  // namespace strata::storage
