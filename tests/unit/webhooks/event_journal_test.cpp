// The queue on disk: what was appended is there for whoever comes next, however its process ended.

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <strata/webhooks/event_journal.hpp>

#include "../../support/other_process.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::webhooks;
using strata_test::TemporaryFolder;

QueuedEvent journal_event(const std::string& id, std::vector<std::string> to = {"raw"}) {
    return {.id = id,
            .kind = EventKind::checkpoint,
            .severity = Severity::warning,
            .replaces = "x",
            .payload = R"({"a":"ä\n"})",
            .pictures = {"samples/1.png"},
            .to = std::move(to)};
}
std::string ids_of(const EventJournal& journal) {
    std::string ids;
    for (const QueuedEvent& event : journal.open()) ids += (ids.empty() ? "" : " ") + event.id;
    return ids;
}

TEST(EventJournal, AJournalThatALivingProcessHasIsLeftToIt) {
    const TemporaryFolder folder;
    EventJournal journal{folder.path()};
    EXPECT_EQ(folder.count_files(), 0);
    journal.append(journal_event("1"));
    EXPECT_TRUE(EventJournal::left_in(folder.path()).empty());
}

TEST(EventJournal, WhatAKilledProcessHadIsTheNextOnes) {
    const TemporaryFolder folder;
    strata_test::OtherProcess process{[&] {
        auto journal = std::make_unique<EventJournal>(folder.path());
        for (const char* id : {"9", "1", "5"}) journal->append(journal_event(id, {"raw", "discord"}));
        journal->settle("1", "raw");
        journal->settle("1", "discord");
        journal->settle("5", "raw");
        return journal;
    }};
    EXPECT_TRUE(EventJournal::left_in(folder.path()).empty());
    process.end();
    {
        auto left = EventJournal::left_in(folder.path());
        ASSERT_EQ(left.size(), 1U);
        EXPECT_EQ(ids_of(*left[0]), "9 5");
        EXPECT_EQ(left[0]->damaged_lines(), 0);
        const QueuedEvent event = left[0]->open()[1];
        EXPECT_EQ(event.kind, EventKind::checkpoint);
        EXPECT_EQ(event.severity, Severity::warning);
        EXPECT_EQ(event.payload, R"({"a":"ä\n"})");
        EXPECT_EQ(event.pictures, std::vector<std::string>{"samples/1.png"});
        EXPECT_EQ(event.to, std::vector<std::string>{"discord"});
        EXPECT_TRUE(EventJournal::left_in(folder.path()).empty()) << "two have it";
        left[0]->settle("9", "raw");
        left[0]->settle("9", "discord");
    }
    auto left = EventJournal::left_in(folder.path());
    ASSERT_EQ(left.size(), 1U);
    left[0]->settle("5", "discord");
    left.clear();
    EXPECT_FALSE(std::filesystem::exists(folder.path())) << "nothing stays of a queue that is empty";
}

TEST(EventJournal, ATornLineCostsNoOther) {
    const TemporaryFolder folder;
    std::filesystem::path file;
    {
        EventJournal journal{folder.path()};
        journal.append(journal_event("1"));
        file = journal.file();
    }
    std::string text;
    {
        std::ifstream in{file};
        std::getline(in, text);
    }
    std::ofstream{file, std::ios::app} << text.substr(0, text.size() / 2);
    {
        const auto left = EventJournal::left_in(folder.path());
        ASSERT_EQ(left.size(), 1U);
        EXPECT_EQ(ids_of(*left[0]), "1");
        EXPECT_EQ(left[0]->damaged_lines(), 1);
        left[0]->append(journal_event("2"));
    }
    const auto left = EventJournal::left_in(folder.path());
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(ids_of(*left[0]), "1 2");
}

TEST(EventJournal, ALongRunsFileStaysSmall) {
    const TemporaryFolder folder;
    EventJournal journal{folder.path()};
    QueuedEvent event = journal_event("first");
    journal.append(event);
    event.payload = '"' + std::string(100'000, 'x') + '"';
    for (int i = 0; i < 100; ++i) {
        event.id = std::to_string(i);
        journal.append(event);
        journal.settle(event.id, "raw");
    }
    EXPECT_LT(std::filesystem::file_size(journal.file()), 5U << 20U);
    EXPECT_EQ(ids_of(journal), "first");
    journal.append(journal_event("last"));
    EXPECT_EQ(ids_of(journal), "first last");
}

TEST(EventJournal, PayloadsSayWhoAndWhenAndWhat) {
    const Event event =
        stage_event("checkpoint_save", "Saving", StageStatus::running, EventProgress{.current = 1, .total = 3});
    const QueuedEvent one =
        queued(event, {.job_id = "job", .host = "node1", .rank = 3, .world = 4}, "id-1",
               std::chrono::system_clock::time_point{std::chrono::milliseconds{1737808496789}}, "/run");
    EXPECT_EQ(
        one.payload,
        R"({"host":"node1","id":"id-1","job_id":"job","rank":3,"severity":"info","stage":{"key":"checkpoint_save",)"
        R"("label":"Saving","progress":{"current":1,"percent":33.3,"total":3},"status":"running"},)"
        R"("timestamp":"2025-01-25T12:34:56.789Z","title":"Saving","type":"lifecycle.stage","world":4})");
    EXPECT_EQ(one.replaces, "stage checkpoint_save");
    Event picture = notification_event(Severity::info, "a", "\xff bad");
    picture.pictures = {"/run/samples/a.png", "/other/b.png"};
    const QueuedEvent two = queued(picture, {}, "2", {}, "/run");
    EXPECT_EQ(two.pictures, (std::vector<std::string>{"samples/a.png", "/other/b.png"}));
    EXPECT_NE(two.payload.find("bad"), std::string::npos);
}

}  // namespace
