#pragma once
// strata/datasets/impl/url_store_state.ipp - fetching addresses, and knowing again what was fetched.

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/text.hpp>
#include <strata/datasets/discovery.hpp>
#include <strata/datasets/sample_table.hpp>
#include <strata/datasets/url_store.hpp>
#include <strata/pictures/formats.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/digest.hpp>
#include <strata/storage/local.hpp>

namespace strata::datasets {

namespace detail {

inline bool is_web_address(std::string_view url) {
    const std::string begin = core::lower_case(url.substr(0, 8));
    const std::size_t host = begin.starts_with("https://") ? 8 : begin.starts_with("http://") ? 7 : 0;
    return host > 0 && url.size() > host && url[host] != '/';
}

/// What may not stand in a request as it is becomes %XX.
inline std::string sendable(std::string_view url) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string encoded;
    for (const char c : url.substr(0, url.find('#'))) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > 0x20 && byte < 0x7F && std::string_view{"\"<>\\^`{|}"}.find(c) == std::string_view::npos)
            encoded += c;
        else
            encoded += {'%', digits[byte >> 4], digits[byte & 15]};
    }
    return encoded;
}

inline std::int64_t time_of(const std::filesystem::path& file, std::error_code& error) {
    return static_cast<std::int64_t>(std::filesystem::last_write_time(file, error).time_since_epoch().count());
}

}  // namespace detail

STRATA_INLINE std::string url_key(std::string_view url) {
    const std::string digest = storage::to_hex(storage::sha256(core::bytes_of(url))).substr(0, 32);
    const std::string_view path = url.substr(0, url.find_first_of("?#"));
    const std::string_view name = path.substr(std::min(path.rfind('/'), path.size() - 1) + 1);
    const std::size_t dot = name.rfind('.');
    const std::string ending = dot == std::string_view::npos ? "" : core::lower_case(name.substr(dot));
    return digest + (pictures::is_picture_name("x" + ending) ? ending : ".jpg");
}

STRATA_INLINE std::string redirected(std::string_view from, std::string_view location) {
    if (location.empty()) return {};
    if (location.find("://") != std::string_view::npos)
        return detail::is_web_address(location) ? std::string{location} : "";
    const std::size_t host = from.find("://") + 3;
    if (location.starts_with("//")) return std::string{from.substr(0, host - 2)}.append(location);
    const std::size_t path = std::min(from.find('/', host), from.size());
    if (location.starts_with('/')) return std::string{from.substr(0, path)}.append(location);
    const std::string_view plain = from.substr(0, from.find_first_of("?#"));
    if (location.starts_with('?')) return std::string{plain}.append(location);
    const std::size_t folder = plain.rfind('/');
    return std::string{plain.substr(0, std::max(folder, path))}.append("/").append(location);
}

class UrlStore::State {
public:
    struct Entry {
        std::string key;
        std::string url;
    };

    explicit State(UrlStoreOptions given) : options{std::move(given)}, folder{options.folder}, pool{options.http} {}

    /// The list, sorted by key, each address once.
    const std::vector<Entry>& entries() {
        const std::lock_guard lock{mutex_};
        if (!is_read_) read_list();
        is_read_ = true;
        return entries_;
    }
    const Entry* find(std::string_view key) {
        const std::vector<Entry>& all = entries();
        const auto at = std::lower_bound(all.begin(), all.end(), key,
                                         [](const Entry& entry, std::string_view k) { return entry.key < k; });
        return at != all.end() && at->key == key ? &*at : nullptr;
    }

    /// What is known of a picture once it is in the folder. Throws Errc::url_failed.
    storage::ObjectInfo ensure(const Entry& entry) {
        {
            const std::lock_guard lock{mutex_};
            if (const auto known = known_.find(entry.key); known != known_.end()) return known->second;
            if (const auto failed = failed_.find(entry.key); failed != failed_.end()) throw failed->second;
        }
        try {
            std::optional<storage::ObjectInfo> info = kept(entry);
            if (!info) info = fetch(entry);
            const std::lock_guard lock{mutex_};
            known_.insert_or_assign(entry.key, *info);
            return *info;
        } catch (const Error& error) {
            if (error.code() == Errc::url_failed) {
                const std::lock_guard lock{mutex_};
                failed_.insert_or_assign(entry.key, error);
            }
            throw;
        }
    }
    void forget(const std::string& key) {
        const std::lock_guard lock{mutex_};
        known_.erase(key);
        failed_.erase(key);
    }
    [[nodiscard]] static std::string note_of(std::string_view key) { return std::string{key} + ".fetched"; }

    const UrlStoreOptions options;
    const Local folder;
    http::HttpPool pool;

private:
    void read_list() {
        const std::filesystem::path& list = options.list;
        const Local local{list.has_parent_path() ? list.parent_path() : "."};
        if (!local.head(list.filename().string()))
            throw Error{Errc::bad_reference, "there is no list of addresses '" + list.string() + "'",
                        "correct csv_file"};
        const tables::TableFile file = table_file(local, list.filename().string());
        std::vector<Entry> all;
        tables::read_rows(file, tables::table_format(list.string()), {{options.url_column, tables::CellUse::name}},
                          [&](std::span<const tables::TableCell> cells) {
                              if (cells[0].texts.empty()) return;
                              std::string url{core::trimmed(cells[0].texts[0])};
                              if (!url.empty()) all.push_back({url_key(url), std::move(url)});
                          });
        std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
        all.erase(std::unique(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.key == b.key; }),
                  all.end());
        entries_ = std::move(all);
    }

    [[nodiscard]] storage::ObjectInfo info_of(const Entry& entry, std::uint64_t bytes,
                                              const std::string& digest) const {
        return {entry.key, bytes, digest.substr(0, 32)};
    }

    /// The picture as it lies in the folder, if it is still what was fetched.
    std::optional<storage::ObjectInfo> kept(const Entry& entry) const {
        const std::filesystem::path file = options.folder / entry.key;
        std::error_code error;
        const std::uintmax_t size = std::filesystem::file_size(file, error);
        if (error) return std::nullopt;
        const std::int64_t time = detail::time_of(file, error);
        if (error || !folder.exists(note_of(entry.key))) return std::nullopt;
        const std::vector<std::byte> bytes = folder.get(note_of(entry.key));
        std::istringstream note{std::string{reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
        std::uint64_t noted_size = 0;
        std::int64_t noted_time = 0;
        std::string digest;
        std::string url;
        if (!(note >> noted_size >> digest >> noted_time) || note.get() != ' ' || !std::getline(note, url))
            return std::nullopt;
        if (url != entry.url || noted_size != size || digest.size() != 64) return std::nullopt;
        if (noted_time != time) {
            if (storage::to_hex(storage::sha256(folder.get(entry.key))) != digest) return std::nullopt;
            write_note(entry, size, digest, time);
        }
        return info_of(entry, size, digest);
    }

    void write_note(const Entry& entry, std::uint64_t bytes, const std::string& digest, std::int64_t time) const {
        const std::string note =
            std::to_string(bytes) + " " + digest + " " + std::to_string(time) + " " + entry.url + "\n";
        folder.put(note_of(entry.key), core::bytes_of(note));
    }

    [[noreturn]] static void fail(const Entry& entry, const std::string& why) {
        throw Error{Errc::url_failed, "cannot fetch '" + entry.url + "': " + why,
                    "correct the address, or take it out of the list; it is tried again at the next start"};
    }

    storage::ObjectInfo fetch(const Entry& entry) {
        const std::vector<std::byte> body = download(entry);
        const std::string digest = storage::to_hex(storage::sha256(body));
        folder.put(entry.key, body);
        std::error_code error;
        const std::int64_t time = detail::time_of(options.folder / entry.key, error);
        write_note(entry, body.size(), digest, time);
        return info_of(entry, body.size(), digest);
    }

    std::vector<std::byte> download(const Entry& entry) {
        constexpr int most_redirects = 5;
        if (!detail::is_web_address(entry.url)) fail(entry, "it is no http or https address");
        std::string url = entry.url;
        bool has_answered = false;
        for (int redirects = 0, number = 1;; ++number) {
            http::HttpAnswer answer =
                pool.perform({.method = "GET",
                              .url = detail::sendable(url),
                              .headers = {{"User-Agent", "strata"}, {"Accept", "image/*,*/*;q=0.5"}},
                              .most = options.most_bytes});
            if (answer.failure == http::HttpFailure::interrupted)
                throw Error{Errc::interrupted, "fetching '" + entry.url + "' was stopped", "start it again"};
            has_answered |= answer.failure == http::HttpFailure::none;
            if (answer.failure == http::HttpFailure::none && answer.status / 100 == 2) {
                const std::string type = core::lower_case(answer.header("content-type"));
                if (answer.body.empty()) fail(entry, "the answer is empty");
                if (type.starts_with("text/"))
                    fail(entry, "it gives " + type.substr(0, type.find(';')) + ", no picture");
                return std::move(answer.body);
            }
            if (answer.failure == http::HttpFailure::none && answer.status / 100 == 3 && answer.status != 304) {
                if (++redirects > most_redirects) fail(entry, "it leads on more than 5 times");
                url = redirected(url, answer.header("location"));
                if (url.empty()) fail(entry, "it leads on to what is no http or https address");
                number = 0;
                continue;
            }
            const std::string why = reason(answer);
            const int most =
                has_answered ? options.attempts : std::min(options.attempts, options.retry.attempts_at_first);
            if (!passes(answer)) fail(entry, why);
            if (number >= most) fail(entry, why + ", " + std::to_string(number) + " times in a row");
            std::chrono::milliseconds wait = http::backoff(options.retry, number, http::jitter());
            if (const auto asked = http::retry_after(answer.header("retry-after"), std::chrono::system_clock::now()))
                wait = std::max(wait, std::min(*asked, options.retry.longest_asked));
            (void)pool.wait_for(wait);  // interrupted: the next attempt says so
        }
    }

    [[nodiscard]] static bool passes(const http::HttpAnswer& answer) noexcept {
        if (answer.failure == http::HttpFailure::none)
            return answer.status == 408 || answer.status == 429 || (answer.status >= 500 && answer.status != 501);
        return answer.failure != http::HttpFailure::untrusted && answer.failure != http::HttpFailure::too_long &&
               answer.failure != http::HttpFailure::other;
    }
    [[nodiscard]] std::string reason(const http::HttpAnswer& answer) const {
        switch (answer.failure) {
            case http::HttpFailure::none:
                return "the server answered " + std::to_string(answer.status);
            case http::HttpFailure::unresolved:
                return "the name of the host has no address";
            case http::HttpFailure::unreachable:
                return "there is no connection (" + answer.reason + ")";
            case http::HttpFailure::untrusted:
                return "the TLS certificate is not accepted (" + answer.reason + ")";
            case http::HttpFailure::stalled:
                return "the transfer stalled";
            case http::HttpFailure::too_long:
                return "it is larger than " + std::to_string(options.most_bytes >> 20) + " MiB";
            default:
                return "the transfer broke (" + answer.reason + ")";
        }
    }

    std::mutex mutex_;
    bool is_read_ = false;
    std::vector<Entry> entries_;
    std::map<std::string, storage::ObjectInfo, std::less<>> known_;
    std::map<std::string, Error, std::less<>> failed_;
};

}  // namespace strata::datasets
