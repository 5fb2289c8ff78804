// Pictures at the addresses of a list: fetched once, known again, and failures that end nothing.

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/datasets/discovery.hpp>
#include <strata/datasets/stores.hpp>
#include <strata/datasets/url_store.hpp>
#include <strata/policy/setup.hpp>
#include <strata/s3/folder_or_bucket.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../../support/fake_http_server.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using strata::Errc;
using strata::storage::ObjectInfo;
using strata::storage::write_file;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using strata_test::plain_png;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;

std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A server of a few paths, and a list of their addresses.
struct Web {
    TemporaryFolder folder;
    std::map<std::string, std::string> pages{
        {"/a.png", "picture a"}, {"/b.jpg?size=2", "picture b"}, {"/c", "picture c"}};
    std::mutex mutex;
    std::map<std::string, int> asked;
    std::map<std::string, int> busy;  ///< times that a path answers 503 before it gives its page
    FakeHttpServer server{[this](const FakeRequest& request) {
        const std::lock_guard lock{mutex};
        ++asked[request.target];
        if (busy[request.target]-- > 0) return FakeReply::answer(503);
        if (request.target == "/moved.png") return FakeReply::answer(302, "", "Location: a.png\r\n");
        if (request.target == "/loop.png") return FakeReply::answer(301, "", "Location: /loop.png\r\n");
        if (request.target == "/file.png") return FakeReply::answer(302, "", "Location: file:///etc/passwd\r\n");
        if (request.target == "/login.png")
            return FakeReply::answer(200, "<html>", "Content-Type: text/html; charset=x\r\n");
        const auto page = pages.find(request.target);
        return page == pages.end() ? FakeReply::answer(404, "gone") : FakeReply::answer(200, page->second);
    }};

    [[nodiscard]] std::string at(const std::string& path) const { return server.url() + path; }
    void write_list(const std::vector<std::string>& paths) const {
        std::string text = "caption,url\n";
        for (const std::string& path : paths) text += "text of " + path + ",\"" + at(path) + "\"\n";
        write_file(folder.path() / "list.csv", text);
    }
    [[nodiscard]] UrlStoreOptions options() const {
        UrlStoreOptions how{.list = folder.path() / "list.csv", .folder = folder.path() / "kept"};
        how.retry.first_wait = std::chrono::milliseconds{1};
        how.retry.longest_wait = std::chrono::milliseconds{2};
        return how;
    }
    [[nodiscard]] UrlStore store() const { return UrlStore{options()}; }
    [[nodiscard]] std::string key(const std::string& path) const { return url_key(at(path)); }
    int times(const std::string& path) {
        const std::lock_guard lock{mutex};
        return asked[path];
    }
};

TEST(UrlStore, KeysFollowFromAddressesAndKeepTheirEnding) {
    const std::string key = url_key("https://example.org/x/Cat.PNG?size=3#top");
    EXPECT_EQ(key.size(), 36U);
    EXPECT_TRUE(key.ends_with(".png"));
    EXPECT_EQ(key, url_key("https://example.org/x/Cat.PNG?size=3#top"));
    EXPECT_NE(key, url_key("https://example.org/x/Cat.PNG?size=4"));
    EXPECT_TRUE(url_key("https://example.org/picture").ends_with(".jpg"));
    EXPECT_TRUE(url_key("https://example.org/a.php").ends_with(".jpg"));
    EXPECT_TRUE(url_key("https://example.org").ends_with(".jpg"));
    EXPECT_TRUE(url_key("x").ends_with(".jpg"));
}

TEST(UrlStore, RedirectsAreFollowedAsTheyAreMeant) {
    const std::string from = "https://a.org/x/y.png?q=1";
    EXPECT_EQ(redirected(from, "https://b.org/z.png"), "https://b.org/z.png");
    EXPECT_EQ(redirected(from, "//b.org/z.png"), "https://b.org/z.png");
    EXPECT_EQ(redirected(from, "/z.png"), "https://a.org/z.png");
    EXPECT_EQ(redirected(from, "z.png"), "https://a.org/x/z.png");
    EXPECT_EQ(redirected(from, "?q=2"), "https://a.org/x/y.png?q=2");
    EXPECT_EQ(redirected("https://a.org", "z.png"), "https://a.org/z.png");
    EXPECT_EQ(redirected(from, "file:///etc/passwd"), "");
    EXPECT_EQ(redirected(from, ""), "");
}

TEST(UrlStore, PicturesAreFetchedOnceAndListedByKey) {
    Web web;
    web.write_list({"/a.png", "/b.jpg?size=2", "/c", "/a.png"});
    const UrlStore store = web.store();
    const std::vector<ObjectInfo> all = store.list("");
    ASSERT_EQ(all.size(), 3U);
    for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].key, all[i].key);
    EXPECT_EQ(text_of(store.get(web.key("/a.png"))), "picture a");
    EXPECT_EQ(text_of(store.get_range(web.key("/b.jpg?size=2"), 8, 100)), "b");
    EXPECT_EQ(store.where(web.key("/c")), web.at("/c"));
    EXPECT_EQ(store.head(web.key("/c"))->size, 9U);
    const auto first = store.list_page("", "", 2);
    ASSERT_EQ(first.objects.size(), 2U);
    const auto second = store.list_page("", first.next, 2);
    ASSERT_EQ(second.objects.size(), 1U);
    EXPECT_EQ(second.objects[0].key, all[2].key);
    EXPECT_EQ(second.next, "");
    EXPECT_EQ(web.server.requests(), 3);
    const UrlStore again = web.store();
    EXPECT_EQ(again.list("").size(), 3U);
    EXPECT_EQ(text_of(again.get(web.key("/a.png"))), "picture a");
    EXPECT_EQ(web.server.requests(), 3);  // it lies in the folder
}

TEST(UrlStore, WhatIsNotListedIsNotFoundAndNothingCanBeWritten) {
    Web web;
    web.write_list({"/a.png"});
    const UrlStore store = web.store();
    EXPECT_FALSE(store.exists("other.png"));
    EXPECT_EQ(thrown_by([&] { (void)store.get("other.png"); }).code, Errc::not_found);
    EXPECT_EQ(thrown_by([&] { store.put("other.png", {}); }).code, Errc::read_only);
    EXPECT_EQ(web.server.requests(), 0);
    UrlStoreOptions missing = web.options();
    missing.list = web.folder.path() / "other.csv";
    EXPECT_EQ(thrown_by([&] { (void)UrlStore{missing}.list(""); }).code, Errc::bad_reference);
}

TEST(UrlStore, ChangedListsAreNoticed) {
    Web web;
    web.write_list({"/a.png", "/c"});
    EXPECT_EQ(web.store().list("").size(), 2U);
    web.write_list({"/a.png", "/b.jpg?size=2"});
    const std::vector<ObjectInfo> all = web.store().list("");
    ASSERT_EQ(all.size(), 2U);
    EXPECT_TRUE(web.store().exists(web.key("/b.jpg?size=2")));
    EXPECT_FALSE(web.store().exists(web.key("/c")));
    EXPECT_EQ(web.server.requests(), 3);
}

TEST(UrlStore, DamagedCopiesAreFetchedAgain) {
    Web web;
    web.write_list({"/a.png"});
    const std::string version = web.store().list("")[0].version;
    const std::filesystem::path file = web.folder.path() / "kept" / web.key("/a.png");
    write_file(file, "pic");  // another size
    EXPECT_EQ(web.store().list("")[0].version, version);
    EXPECT_EQ(web.times("/a.png"), 2);
    write_file(file, "PICTURE A");  // the same size, other bytes
    std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) + std::chrono::hours{1});
    EXPECT_EQ(text_of(web.store().get(web.key("/a.png"))), "picture a");
    EXPECT_EQ(web.times("/a.png"), 3);
    std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) + std::chrono::hours{2});
    EXPECT_EQ(web.store().list("")[0].version, version);  // touched alone
    EXPECT_EQ(web.times("/a.png"), 3);
    std::filesystem::remove(file.string() + ".fetched");
    EXPECT_EQ(web.store().list("").size(), 1U);
    EXPECT_EQ(web.times("/a.png"), 4);
    web.store().remove(web.key("/a.png"));
    EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(UrlStore, FailuresHaveAReasonAndEndNoListing) {
    Web web;
    web.write_list({"/a.png", "/none.png", "/loop.png", "/file.png", "/login.png", "/moved.png"});
    std::ofstream{web.folder.path() / "list.csv", std::ios::app} << "x,ftp://example.org/a.png\n";
    const UrlStore store = web.store();
    std::size_t fetched = 0;
    for (const ObjectInfo& info : store.list("")) fetched += info.size > 0 ? 1 : 0;
    EXPECT_EQ(fetched, 2U);  // a.png, and moved.png, which is the same
    EXPECT_EQ(text_of(store.get(web.key("/moved.png"))), "picture a");
    const auto says = [&](const std::string& url, const std::string& why) {
        const auto failed = thrown_by([&] { (void)store.get(url_key(url)); });
        EXPECT_EQ(failed.code, Errc::url_failed);
        EXPECT_TRUE(failed.says(url) && failed.says(why)) << failed.message;
    };
    says(web.at("/none.png"), "the server answered 404");
    says(web.at("/loop.png"), "it leads on more than 5 times");
    says(web.at("/file.png"), "it leads on to what is no http or https address");
    says(web.at("/login.png"), "it gives text/html, no picture");
    says("ftp://example.org/a.png", "it is no http or https address");
    EXPECT_EQ(web.times("/none.png"), 1);  // once in this process
    web.pages["/none.png"] = "there now";
    EXPECT_TRUE(web.store().exists(web.key("/none.png")));  // tried again by the next
}

TEST(UrlStore, WhatPassesIsTriedAgain) {
    Web web;
    web.busy = {{"/a.png", 3}, {"/c", 1000}};
    web.write_list({"/a.png", "/c"});
    const UrlStore store = web.store();
    EXPECT_EQ(text_of(store.get(web.key("/a.png"))), "picture a");
    EXPECT_EQ(web.times("/a.png"), 4);
    const auto failed = thrown_by([&] { (void)store.get(web.key("/c")); });
    EXPECT_TRUE(failed.says("the server answered 503, 5 times in a row")) << failed.message;
    EXPECT_EQ(web.times("/c"), 5);
}

TEST(UrlStore, AHostThatNeverAnswersIsGivenUpSoon) {
    Web web;
    write_file(web.folder.path() / "list.csv", "url\nhttp://127.0.0.1:9/a.png\n");
    const UrlStore store = web.store();
    const auto failed = thrown_by([&] { (void)store.get(url_key("http://127.0.0.1:9/a.png")); });
    EXPECT_EQ(failed.code, Errc::url_failed);
    EXPECT_TRUE(failed.says("there is no connection") && failed.says("3 times in a row")) << failed.message;

    write_file(web.folder.path() / "list.csv", "url\n" + web.at("/a.png") + "\n");
    const UrlStore stopped = web.store();
    stopped.interrupt();
    EXPECT_EQ(thrown_by([&] { (void)stopped.list(""); }).code, Errc::interrupted);
}

TEST(UrlStore, ListsMayBeJsonLines) {
    Web web;
    UrlStoreOptions options = web.options();
    options.list = web.folder.path() / "list.jsonl";
    options.url_column = "image";
    write_file(options.list, "{\"image\": \"" + web.at("/a.png") + "\"}\n{\"image\": null}\n");
    EXPECT_EQ(UrlStore{options}.list("").size(), 1U);
}

TEST(UrlStore, ADataSetOfAddressesIsDiscovered) {
    Web web;
    const auto png = plain_png(64, 48, 10, 20, 30);
    web.pages["/a.png"] = std::string{reinterpret_cast<const char*>(png.data()), png.size()};
    web.pages["/c"] = "no picture at all";
    web.write_list({"/a.png", "/c", "/none.png"});
    strata::config::ImageDataset dataset;
    dataset.id = "web";
    dataset.type = strata::config::StoreType::csv;
    dataset.csv = {
        .file = web.folder.path() / "list.csv", .caption_column = "caption", .cache_dir = web.folder.path() / "kept"};
    dataset.caption_strategy = strata::config::CaptionStrategy::csv;
    using Both = Stores<strata::Setup<strata::Backend<strata::S3>>::backend::store>;
    Both stores;
    strata::comm::SelfComm comm;
    for (int start = 0; start < 2; ++start) {
        DiscoverOptions options;
        options.index_folder = web.folder.path() / "index";
        const Discovered found = discover(comm, stores.pictures(dataset), dataset, options);
        EXPECT_EQ(found.found, 3);
        ASSERT_EQ(found.samples.size(), 1U);
        EXPECT_EQ(found.samples[0].caption, "text of /a.png");
        EXPECT_EQ(found.samples[0].size.width, 64);
        ASSERT_EQ(found.skipped.size(), 2U);
        std::map<std::string, std::string> skipped;
        for (const Skipped& one : found.skipped) skipped[one.place] = one.detail;
        EXPECT_NE(skipped[web.at("/none.png")].find("answered 404"), std::string::npos) << skipped[web.at("/none.png")];
        EXPECT_TRUE(skipped.contains(web.at("/c")));
    }
    EXPECT_EQ(web.times("/a.png"), 1);
    Stores<strata::Local> folders;
    EXPECT_EQ(thrown_by([&] { (void)folders.pictures(dataset); }).code, Errc::no_backend);
}

}  // namespace
