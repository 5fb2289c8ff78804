#pragma once
// strata/datasets/impl/url_store.ipp - a list of addresses as an object store.

#include <algorithm>
#include <limits>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/datasets/for_all.hpp>
#include <strata/datasets/impl/url_store_state.ipp>
#include <strata/datasets/url_store.hpp>

namespace strata::datasets {

STRATA_INLINE UrlStore::UrlStore(UrlStoreOptions options) : state_{std::make_shared<State>(std::move(options))} {}

STRATA_INLINE void UrlStore::list_each(std::string_view prefix,
                                       const std::function<bool(storage::ObjectInfo&&)>& visit) const {
    std::vector<const State::Entry*> wanted;
    for (const State::Entry& entry : state_->entries())
        if (entry.key.starts_with(prefix)) wanted.push_back(&entry);
    constexpr std::size_t window = 256;  // fetched before the first of them is told
    for (std::size_t first = 0; first < wanted.size(); first += window) {
        const std::size_t count = std::min(window, wanted.size() - first);
        std::vector<storage::ObjectInfo> infos(count);
        for_all(
            static_cast<std::int64_t>(count), requests_at_once(),
            [&](std::int64_t i) {
                const State::Entry& entry = *wanted[first + static_cast<std::size_t>(i)];
                storage::ObjectInfo& info = infos[static_cast<std::size_t>(i)];
                try {
                    info = state_->ensure(entry);
                } catch (const Error& error) {
                    if (error.code() != Errc::url_failed) throw;
                    info = {entry.key, 0, "not fetched"};
                }
            },
            [](std::int64_t) {});
        for (storage::ObjectInfo& info : infos)
            if (!visit(std::move(info))) return;
    }
}

STRATA_INLINE std::vector<storage::ObjectInfo> UrlStore::list(std::string_view prefix) const {
    std::vector<storage::ObjectInfo> all;
    list_each(prefix, [&](storage::ObjectInfo&& info) {
        all.push_back(std::move(info));
        return true;
    });
    return all;
}

STRATA_INLINE storage::ObjectPage UrlStore::list_page(std::string_view prefix, std::string_view after,
                                                      std::size_t limit) const {
    storage::ObjectPage page;
    for (const State::Entry& entry : state_->entries()) {
        if (!entry.key.starts_with(prefix) || (!after.empty() && entry.key <= after)) continue;
        if (page.objects.size() == std::max<std::size_t>(limit, 1)) {
            page.next = page.objects.back().key;
            break;
        }
        const auto info = head(entry.key);
        page.objects.push_back(info.value_or(storage::ObjectInfo{entry.key, 0, "not fetched"}));
    }
    return page;
}

STRATA_INLINE std::optional<storage::ObjectInfo> UrlStore::head(std::string_view key) const {
    const State::Entry* const entry = state_->find(key);
    if (entry == nullptr) return std::nullopt;
    try {
        return state_->ensure(*entry);
    } catch (const Error& error) {
        if (error.code() != Errc::url_failed) throw;
        return std::nullopt;
    }
}

STRATA_INLINE bool UrlStore::exists(std::string_view key) const { return head(key).has_value(); }

STRATA_INLINE std::vector<std::byte> UrlStore::get_range(std::string_view key, std::uint64_t offset,
                                                         std::uint64_t length) const {
    const State::Entry* const entry = state_->find(key);
    if (entry == nullptr)
        throw Error{Errc::not_found, "no address of '" + where("") + "' has the key '" + std::string{key} + "'",
                    "start again: the list was changed"};
    (void)state_->ensure(*entry);
    return state_->folder.get_range(key, offset, length);
}

STRATA_INLINE std::vector<std::byte> UrlStore::get(std::string_view key) const {
    return get_range(key, 0, std::numeric_limits<std::uint64_t>::max());
}

STRATA_INLINE void UrlStore::put(std::string_view key, std::span<const std::byte>) const {
    throw Error{Errc::read_only, "nothing can be written to '" + where(key) + "': it is an address of a list",
                "keep caches in a folder or a bucket"};
}

STRATA_INLINE void UrlStore::remove(std::string_view key) const {
    state_->folder.remove(State::note_of(key));
    state_->folder.remove(key);
    state_->forget(std::string{key});
}

STRATA_INLINE std::string UrlStore::where(std::string_view key) const {
    if (key.empty()) return state_->options.list.string();
    const State::Entry* const entry = state_->find(key);
    return entry != nullptr ? entry->url : (state_->options.folder / key).string();
}

STRATA_INLINE int UrlStore::requests_at_once() const noexcept { return state_->options.http.connections; }

STRATA_INLINE void UrlStore::interrupt() const noexcept { state_->pool.interrupt(); }

}  // namespace strata::datasets
