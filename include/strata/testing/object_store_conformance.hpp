#pragma once
// strata/testing/object_store_conformance.hpp - does a store do what storage::ObjectStore promises?

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::testing {

struct ConformanceOptions {
    std::string prefix = "conformance/";        ///< in front of all keys; nothing else may be there
    std::size_t large_bytes = (20U << 20) + 7;  ///< of the largest object: more than the store moves in one piece
    int threads = 8;                            ///< that use the store at once
};

namespace detail {

using Bytes = std::vector<std::byte>;

/// Bytes that depend on the seed and on their place.
inline Bytes pattern(std::size_t size, std::uint64_t seed) {
    Bytes bytes(size);
    std::uint64_t state = 2 * seed + 1;
    for (std::byte& byte : bytes) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        byte = static_cast<std::byte>(state >> 56U);
    }
    return bytes;
}

/// Names that an encoding or a file system could lose or take for one another.
inline std::vector<std::string> awkward_names() {
    return {"a b",
            "a+b",
            "a%20b",
            "a%2Bb",
            "a%2520b",
            "a%b",
            "a%",
            "50% off?.png",
            "x&y=z",
            "#1",
            "a;b",
            "a:b@c",
            "a'b\"c",
            "(a)[b]",
            "{a}<b>|c^`",
            "a\\b",
            "$1,~!*",
            ".hidden",
            "end ",
            " begin",
            "a..b",
            "grün.png",
            "猫/写真.png",
            "\xC3\xA9",
            "e\xCC\x81",
            "😀",
            "&amp;",
            "a&#10;b",
            "\x01",
            "tab\tb",
            "line\nb",
            "UPPER",
            "upper",
            "]]>",
            "-",
            "--delimiter",
            "?list",
            "a=b/c d",
            std::string(200, 'n')};
}

/// How a store broke a law.
struct Broken {
    std::string how;
};

inline void require(bool holds, const std::string& otherwise) {
    if (!holds) throw Broken{otherwise};
}

/// The laws, one member function each. Objects that a law has made stay until the end.
template <storage::ObjectStore Store>
class StoreLaws {
public:
    StoreLaws(const Store& store, const ConformanceOptions& options) : store_{store}, options_{options} {}

    std::vector<std::string> run() {
        law("begins empty",
            [&] { require(keys("").empty(), "there are objects already below '" + options_.prefix + "'"); });
        if (!failures_.empty()) return failures_;  // they are somebody's
        law("returns what was put", [&] { returns_what_was_put(); });
        law("replaces whole objects", [&] { replaces_whole_objects(); });
        law("reads ranges", [&] { reads_ranges(); });
        law("knows what is missing", [&] { knows_what_is_missing(); });
        law("lists by prefix", [&] { lists_by_prefix(); });
        law("lists in pages", [&] { lists_in_pages(); });
        law("goes on with a listing while objects come and go", [&] { goes_on_with_a_listing(); });
        law("keeps awkward keys apart", [&] { keeps_awkward_keys_apart(); });
        law("refuses the empty key", [&] { refuses_the_empty_key(); });
        law("puts atomically", [&] { puts_atomically(); });
        law("serves many threads", [&] { serves_many_threads(); });
        for (const std::string& name : made_) law("removes", [&] { store_.remove(key(name)); });
        law("ends empty", [&] { require(keys("").empty(), "objects are left after all were removed"); });
        return failures_;
    }

private:
    void law(const std::string& name, const std::function<void()>& check) {
        std::string how;
        try {
            check();
            return;
        } catch (const Broken& broken) {
            how = broken.how;
        } catch (const std::exception& error) {
            how = std::string{"threw "} + error.what();
        }
        const std::lock_guard lock{mutex_};
        failures_.push_back(name + ": " + how);
    }

    [[nodiscard]] std::string key(std::string_view name) const { return options_.prefix + std::string{name}; }

    void put(const std::string& name, std::span<const std::byte> bytes) {
        {
            const std::lock_guard lock{mutex_};
            made_.insert(name);
        }
        store_.put(key(name), bytes);
    }

    /// Names below the kit's own prefix.
    [[nodiscard]] std::vector<std::string> keys(std::string_view prefix) const {
        std::vector<std::string> names;
        for (const auto& info : store_.list(key(prefix))) {
            require(info.key.starts_with(options_.prefix), "list() gives a key without its prefix: '" + info.key + "'");
            names.push_back(info.key.substr(options_.prefix.size()));
        }
        return names;
    }

    void returns_what_was_put() {
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100'000}, options_.large_bytes}) {
            const std::string name = "size/" + std::to_string(size);
            const Bytes bytes = pattern(size, size);
            put(name, bytes);
            require(store_.get(key(name)) == bytes, std::to_string(size) + " bytes came back as others");
            const auto info = store_.head(key(name));
            require(info && info->key == key(name) && info->size == size && !info->version.empty(),
                    "head() of an object of " + std::to_string(size) + " bytes is wrong");
            const auto listed = store_.list(key(name));
            require(listed.size() == 1 && listed[0].size == size && listed[0].version == info->version,
                    "list() and head() differ for an object of " + std::to_string(size) + " bytes");
            require(store_.exists(key(name)), "exists() denies what was put");
        }
    }

    void replaces_whole_objects() {
        put("replaced", pattern(1000, 1));
        const auto before = store_.head(key("replaced"));
        put("replaced", pattern(10, 2));
        const auto after = store_.head(key("replaced"));
        require(store_.get(key("replaced")) == pattern(10, 2),
                "a shorter object keeps bytes of the longer one before it");
        require(before && after && before->version != after->version, "the version stays when the bytes change");
        require(keys("replaced").size() == 1, "a replaced object is listed twice");
    }

    void reads_ranges() {
        constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
        for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{options_.large_bytes}}) {
            const std::string name = "range/" + std::to_string(size);
            const Bytes bytes = pattern(size, 3);
            put(name, bytes);
            const std::uint64_t last = std::max<std::uint64_t>(size, 1) - 1;
            const std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges{
                {0, 0},    {0, 1},      {0, size}, {0, size + 1}, {0, most},  {size / 2, 7},     {size / 3, most},
                {last, 1}, {last, 100}, {size, 0}, {size, 1},     {size, 10}, {size + 1000, 10}, {most, 1},
                {most, 0}, {most, most}};
            for (const auto& [offset, length] : ranges) {
                const std::uint64_t begin = std::min(offset, size);
                const auto expected = std::span{bytes}.subspan(begin, std::min(length, size - begin));
                require(std::ranges::equal(store_.get_range(key(name), offset, length), expected),
                        "get_range(" + std::to_string(offset) + ", " + std::to_string(length) + ") of " +
                            std::to_string(size) + " bytes gives others");
            }
        }
    }

    void knows_what_is_missing() {
        const std::string missing = key("missing/object");
        require(!store_.exists(missing) && !store_.head(missing), "an object is there that was never put");
        store_.remove(missing);
        const auto reads_nothing = [&](const std::string& call, const std::function<void()>& read) {
            try {
                read();
            } catch (const Error& error) {
                require(error.code() == Errc::not_found,
                        call + " of a missing object is another error: " + error.what());
                require(std::string_view{error.what()}.find(store_.where(missing)) != std::string_view::npos,
                        call + " does not say where the missing object would be: " + error.what());
                return;
            }
            require(false, call + " of a missing object throws nothing");
        };
        reads_nothing("get()", [&] { (void)store_.get(missing); });
        reads_nothing("get_range()", [&] { (void)store_.get_range(missing, 0, 10); });
        reads_nothing("get_range() of no bytes", [&] { (void)store_.get_range(missing, 0, 0); });
        put("removed", pattern(10, 4));
        store_.remove(key("removed"));
        require(!store_.exists(key("removed")) && keys("removed").empty(), "an object is there after it was removed");
        require(store_.where(key("a")) != store_.where(key("b")), "where() does not tell two objects apart");
    }

    void lists_by_prefix() {
        const std::vector<std::string> sorted{"list/a-b",   "list/a.txt", "list/a/1", "list/a/2",
                                              "list/a/b/3", "list/ab",    "list/b"};
        for (auto name = sorted.rbegin(); name != sorted.rend(); ++name) put(*name, pattern(name->size(), 5));
        const auto expect = [&](const std::string& prefix, const std::vector<std::string>& expected) {
            require(keys(prefix) == expected, "list('" + prefix + "') is not complete, not exact or not sorted");
        };
        expect("list/", sorted);
        expect("list", sorted);
        expect("list/a", {sorted.begin(), sorted.end() - 1});
        expect("list/a/", {"list/a/1", "list/a/2", "list/a/b/3"});
        expect("list/a/b", {"list/a/b/3"});
        expect("list/b", {"list/b"});
        expect("list/b/", {});
        expect("list/z", {});
    }

    /// Names on pages of at most `limit`, behind `after`.
    [[nodiscard]] std::vector<std::string> by_pages(const std::string& prefix, std::string after,
                                                    std::size_t limit) const {
        std::vector<std::string> names;
        do {
            const storage::ObjectPage page = store_.list_page(key(prefix), after, limit);
            require(page.objects.size() <= limit, "a page has more than " + std::to_string(limit) + " objects");
            require(page.next.empty() || page.next != after, "a page's `next` leads back to the page");
            for (const auto& info : page.objects) names.push_back(info.key.substr(options_.prefix.size()));
            after = page.next;
        } while (!after.empty() && names.size() < 1000);
        return names;
    }

    void lists_in_pages() {
        for (int i = 0; i < 25; ++i) put("page/" + std::to_string(i) + (i % 3 == 0 ? "/x" : ".x"), pattern(1, 6));
        const std::vector<std::string> all = keys("page/");
        require(all.size() == 25, "list() is not complete");
        for (const std::size_t limit : {1U, 2U, 7U, 24U, 25U, 26U, 5000U})
            require(by_pages("page/", "", limit) == all,
                    "pages of " + std::to_string(limit) + " make another list than list()");
        require(by_pages("page/none", "", 5).empty(), "pages of a prefix without objects are not empty");
    }

    void goes_on_with_a_listing() {
        for (int i = 10; i < 30; ++i) put("flow/" + std::to_string(i), pattern(1, 7));
        const std::vector<std::string> all = keys("flow/");
        const storage::ObjectPage first = store_.list_page(key("flow/"), "", 10);
        require(!first.objects.empty() && !first.next.empty(), "a first page of 10 of 20 objects has no `next`");
        store_.remove(first.objects.back().key);
        put("flow/0", pattern(1, 7));
        std::vector<std::string> seen;
        for (const auto& info : first.objects) seen.push_back(info.key.substr(options_.prefix.size()));
        for (const std::string& name : by_pages("flow/", first.next, 10)) seen.push_back(name);
        require(seen == all, "objects that were there all the time are not listed exactly once");
    }

    void keeps_awkward_keys_apart() {
        const std::vector<std::string> names = awkward_names();
        std::set<std::string> expected;
        for (std::size_t i = 0; i < names.size(); ++i) {
            put("awkward/" + names[i], pattern(i + 1, i));
            expected.insert("awkward/" + names[i]);
        }
        for (std::size_t i = 0; i < names.size(); ++i) {
            const std::string whole = key("awkward/" + names[i]);
            require(store_.get(whole) == pattern(i + 1, i), "the key '" + names[i] + "' leads to another object");
            const auto info = store_.head(whole);
            require(info && info->size == i + 1 && info->key == whole, "head() of the key '" + names[i] + "' is wrong");
            require(!by_pages("awkward/" + names[i], "", 1).empty(), "the prefix '" + names[i] + "' lists nothing");
        }
        require(keys("awkward/") == std::vector<std::string>(expected.begin(), expected.end()), "list() mangles keys");
        require(by_pages("awkward/", "", 1) == std::vector<std::string>(expected.begin(), expected.end()),
                "list_page() does not go on behind every key");
    }

    void refuses_the_empty_key() {
        const auto refuses = [&](const std::string& call, const std::function<void()>& use) {
            try {
                use();
            } catch (const Error& error) {
                require(error.code() == Errc::bad_object_key,
                        call + " of the empty key is another error: " + error.what());
                return;
            }
            require(false, call + " takes the empty key");
        };
        refuses("put()", [&] { store_.put("", {}); });
        refuses("get()", [&] { (void)store_.get(""); });
        refuses("get_range()", [&] { (void)store_.get_range("", 0, 1); });
        refuses("head()", [&] { (void)store_.head(""); });
        refuses("remove()", [&] { store_.remove(""); });
    }

    void puts_atomically() {
        const Bytes first = pattern(300'000, 8);
        const Bytes second = pattern(200'000, 9);
        put("atomic", first);
        std::atomic<bool> writing{true};
        std::thread writer{[&] {
            for (int i = 0; i < 20; ++i) law("puts atomically", [&] { put("atomic", i % 2 == 0 ? second : first); });
            writing = false;
        }};
        bool whole = true;
        law("puts atomically", [&] {
            while (writing) {
                const Bytes seen = store_.get(key("atomic"));
                whole = whole && (seen == first || seen == second);
            }
        });
        writer.join();
        require(whole, "a reader saw a mixture of the old and the new bytes");
        require(keys("atomic").size() == 1, "what a put() makes on its way is listed");
    }

    void serves_many_threads() {
        const auto work = [&](int thread) {
            const std::string folder = "thread/" + std::to_string(thread) + "/";
            for (int i = 0; i < 10; ++i) {
                const Bytes bytes =
                    pattern(1000 + 7000 * static_cast<std::size_t>(i), static_cast<std::uint64_t>(100 * thread + i));
                const std::string name = folder + std::to_string(i);
                put(name, bytes);
                require(store_.get(key(name)) == bytes, "a thread reads what it did not write");
                require(store_.get_range(key(name), 500, 10) == Bytes(bytes.begin() + 500, bytes.begin() + 510),
                        "a thread reads a range that it did not write");
                require(store_.exists(key(name)) && keys(folder).size() == static_cast<std::size_t>(i + 1),
                        "a thread does not see what it has written");
            }
        };
        std::vector<std::thread> threads;
        for (int i = 0; i < options_.threads; ++i)
            threads.emplace_back([&, i] { law("serves many threads", [&] { work(i); }); });
        for (std::thread& thread : threads) thread.join();
    }

    const Store& store_;
    ConformanceOptions options_;
    std::mutex mutex_;
    std::vector<std::string> failures_;
    std::set<std::string> made_;
};

}  // namespace detail

/// What a store does otherwise than storage::ObjectStore promises, a sentence each; empty if it conforms. Needs no test
/// framework: `assert(strata::testing::object_store_failures(store).empty());`
///
/// Puts about 200 objects below the options' prefix, the largest twice, and removes them. If something is there at the
/// start, it touches nothing and says so.
template <storage::ObjectStore Store>
[[nodiscard]] std::vector<std::string> object_store_failures(const Store& store,
                                                             const ConformanceOptions& options = {}) {
    return detail::StoreLaws<Store>{store, options}.run();
}

}  // namespace strata::testing
