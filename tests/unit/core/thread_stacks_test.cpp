// What every thread does: by its name, with functions that only the file's own table of symbols has.

#include <chrono>
#include <csignal>
#include <semaphore>
#include <string>
#include <thread>

#include <pthread.h>

#include <gtest/gtest.h>

#include <strata/core/symbol_names.hpp>
#include <strata/core/thread_stacks.hpp>

namespace {

struct Waits {
    std::binary_semaphore is_there{0};
    std::binary_semaphore may_go{0};
};

[[gnu::noinline, gnu::noipa]] void waits_for_its_turn(Waits& waits) {
    waits.is_there.release();
    waits.may_go.acquire();
    asm volatile("" ::: "memory");  // no jump instead of the last call
}

/// Of `text` the lines about the thread of that name, from its first to the next thread's.
std::string paragraph_of(const std::string& text, const std::string& name) {
    const std::size_t at = text.find("(" + name + ")");
    if (at == std::string::npos) return "";
    const std::size_t end = text.find("\nthread ", at);
    return text.substr(at, end == std::string::npos ? end : end - at);
}

TEST(ThreadStacks, AThreadIsNamedWithTheFunctionsItIsIn) {
    Waits waits;
    std::thread thread{[&] {
        ::pthread_setname_np(::pthread_self(), "waiter");
        waits_for_its_turn(waits);
    }};
    waits.is_there.acquire();
    for (int again = 0; again < 2; ++again) {  // the thread goes on as it was
        const std::string text = strata::core::thread_stacks(std::chrono::seconds{60});
        EXPECT_NE(paragraph_of(text, "waiter").find("waits_for_its_turn"), std::string::npos) << text;
        EXPECT_NE(text.find("strata::core::thread_stacks"), std::string::npos)
            << "the one that asks is there: " << text;
        EXPECT_EQ(text.find("did not answer"), std::string::npos) << text;
    }
    waits.may_go.release();
    thread.join();
}

TEST(ThreadStacks, AThreadThatHearsNoSignalIsSaidSoAndMayStillComeLater) {
    Waits waits;
    std::thread thread{[&] {
        ::pthread_setname_np(::pthread_self(), "deaf");
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
        waits_for_its_turn(waits);
        ::sigemptyset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, nullptr);  // the signal that waited for it comes now
    }};
    waits.is_there.acquire();
    const std::string text = strata::core::thread_stacks(std::chrono::milliseconds{50});
    EXPECT_NE(paragraph_of(text, "deaf").find("did not answer within 50 ms"), std::string::npos) << text;
    waits.may_go.release();
    thread.join();
}

TEST(ThreadStacks, AnAddressThatIsNoFunctionsIsSaidAsANumber) {
    strata::core::SymbolNames names;
    EXPECT_EQ(names.name_of(reinterpret_cast<const void*>(0x10)), "?+0x10");
    const auto here = reinterpret_cast<const char*>(&waits_for_its_turn);
    EXPECT_NE(names.name_of(here + 1).find("waits_for_its_turn("), std::string::npos) << names.name_of(here + 1);
    EXPECT_NE(names.name_of(here + 1).find("+0x1 in "), std::string::npos) << names.name_of(here + 1);
}

}  // namespace
