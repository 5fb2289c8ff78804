// What an answer means for the events that wait: when the next ones leave, and which never will.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/webhooks/delivery.hpp>

namespace {

using namespace strata::webhooks;
using std::chrono::milliseconds;
using strata::http::HttpAnswer;
using Ids = std::vector<std::string>;

Delivery delivery_of(WebhookType type, int events) {
    WebhookOptions options;
    options.webhook_type = type;
    Delivery delivery{options};
    for (int i = 0; i < events; ++i) {
        QueuedEvent event;
        event.id = std::to_string(i);
        EXPECT_TRUE(delivery.add(std::make_shared<const QueuedEvent>(std::move(event))).empty());
    }
    return delivery;
}
Ids ids_of(const std::vector<Delivery::Waiting>& batch) {
    Ids ids;
    for (const Delivery::Waiting& one : batch) ids.push_back(one.event->id);
    return ids;
}
HttpAnswer answer_of(int status, std::vector<strata::http::HttpHeader> headers = {}) {
    HttpAnswer answer;
    answer.status = status;
    answer.headers = std::move(headers);
    return answer;
}
constexpr std::chrono::system_clock::time_point date{};
constexpr double unlucky = 0.999;  // waits are as long as they may be, but for one millisecond

TEST(Delivery, BehindEachEventThatIsNotTakenTheOthersWaitAsAfterAFirstFailure) {
    Delivery delivery = delivery_of(WebhookType::raw, 4);
    Delivery::Time now{std::chrono::hours{1}};
    for (const char* id : {"0", "1", "2"}) {
        EXPECT_EQ(ids_of(delivery.next(now, false)), Ids{id});
        EXPECT_EQ(delivery.answered(judge(answer_of(400), date), now, unlucky), Ids{id});
        EXPECT_TRUE(delivery.next(now, false).empty()) << id;
        EXPECT_TRUE(delivery.next(now, true).empty()) << "nor at the end of a run";
        ASSERT_TRUE(delivery.due(false).has_value());
        EXPECT_EQ(*delivery.due(false) - now, milliseconds{999}) << "the server is there: waits do not grow";
        now = *delivery.due(false);
    }
    EXPECT_EQ(ids_of(delivery.next(now, false)), Ids{"3"});
    EXPECT_EQ(delivery.answered(judge(answer_of(200), date), now, unlucky), Ids{"3"});
    EXPECT_EQ(delivery.refused(), 3);
    EXPECT_EQ(delivery.delivered(), 1);
    EXPECT_EQ(delivery.failures(), 0);
}

TEST(Delivery, AMessageThatIsNotTakenIsTriedInItsPartsAfterAWait) {
    Delivery delivery = delivery_of(WebhookType::discord, 2);
    Delivery::Time now{std::chrono::hours{1}};
    EXPECT_EQ(ids_of(delivery.next(now, false)), (Ids{"0", "1"}));
    EXPECT_TRUE(delivery.answered(judge(answer_of(400), date), now, unlucky).empty());
    EXPECT_TRUE(delivery.next(now, false).empty());
    now += milliseconds{999};
    EXPECT_EQ(ids_of(delivery.next(now, false)), Ids{"0"});
}

TEST(Delivery, WhoRefusesMaySayForHowLongItWantsToBeLeftAlone) {
    Delivery delivery = delivery_of(WebhookType::discord, 1);
    const Delivery::Time now{std::chrono::hours{1}};
    EXPECT_EQ(delivery.next(now, false).size(), 1U);
    const Judgement judgement =
        judge(answer_of(400, {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset-after", "7.5"}}), date);
    EXPECT_EQ(judgement.verdict, Verdict::bad_event);
    EXPECT_EQ(delivery.answered(judgement, now, unlucky), Ids{"0"});
    for (std::string& id : delivery.add(std::make_shared<const QueuedEvent>())) ADD_FAILURE() << id;
    ASSERT_TRUE(delivery.due(false).has_value());
    EXPECT_EQ(*delivery.due(false) - now, milliseconds{7'500});
}

}  // namespace
