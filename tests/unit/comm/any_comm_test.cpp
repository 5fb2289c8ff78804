// AnyComm: the calls of the communicator behind it, and that communicator again.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/any_comm.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/testing/communicator_conformance.hpp>

namespace {

using strata::bf16;
using strata::comm::AnyComm;
using strata::comm::SelfComm;

TEST(AnyComm, KeepsThePromisesOfACommunicator) {
    SelfComm self;
    AnyComm any{self};
    EXPECT_EQ(strata::testing::communicator_failures(any), std::vector<std::string>{});
}

struct OtherComm : SelfComm {};

TEST(AnyComm, KnowsWhatItIsOf) {
    OtherComm other;
    AnyComm any{other};
    EXPECT_EQ(any.as<OtherComm>(), &other);
    EXPECT_EQ(any.as<SelfComm>(), nullptr) << "a base has other calls";
    EXPECT_FALSE((std::constructible_from<AnyComm, AnyComm&>)) << "one behind another would not be found";
}

/// Says what was called on it, and has what only some communicators have.
struct Telling : SelfComm {
    std::vector<std::string> told;
    void label(std::string_view text) { told.push_back("label " + std::string{text}); }
    void interrupt() noexcept { told.push_back("interrupt"); }
    void set_collective_timeout(std::chrono::milliseconds timeout) noexcept {
        told.push_back(std::to_string(timeout.count()) + " ms");
    }
    void on_stall(const strata::comm::StallHook& hook) { told.push_back(hook({"why", {}})); }
    std::string transport() const { return "by word of mouth"; }
};

TEST(AnyComm, ForwardsWhatOnlySomeCommunicatorsHave) {
    Telling telling;
    AnyComm any{telling};
    any.label("gradients");
    any.set_collective_timeout(std::chrono::seconds{2});
    any.interrupt();
    any.on_stall([](const strata::comm::Stall& stall) { return "stall, " + stall.line; });
    EXPECT_EQ(telling.told, (std::vector<std::string>{"label gradients", "2000 ms", "interrupt", "stall, why"}));
    EXPECT_EQ(any.transport(), "by word of mouth");
    SelfComm self;
    AnyComm silent{self};
    silent.label("nobody hears it");
    silent.interrupt();
    silent.on_stall([](const strata::comm::Stall&) { return std::string{}; });
    EXPECT_EQ(silent.transport(), "");
}

/// Of memory that the host may not touch.
struct OnGpus : SelfComm {
    static constexpr bool takes_device_memory = true;
    SelfComm& host() { return hosts; }
    void broadcast(std::span<std::byte>, int) { FAIL() << "that is the host's"; }
    void all_gather(std::span<const std::byte>, std::span<std::byte>) { FAIL() << "that is the host's"; }
    void reduce_scatter(std::span<const float>, std::span<float>) { FAIL() << "that is the host's"; }
    void reduce_scatter(std::span<const bf16>, std::span<bf16>) { FAIL() << "that is the host's"; }
    void reduce_scatter(std::span<const bf16>, std::span<float>) { FAIL() << "that is the host's"; }
    SelfComm hosts;
};

TEST(AnyComm, ExchangesBytesOfTheHostBesideACommunicatorOfGpus) {
    OnGpus gpus;
    AnyComm any{gpus};
    EXPECT_EQ(strata::testing::communicator_failures(any), std::vector<std::string>{});
}

/// Nobody knows when it is compiled whose memory it takes.
struct TakesItSometimes : strata::comm::SelfComm {
    static const bool takes_device_memory;
};
const bool TakesItSometimes::takes_device_memory = std::getenv("STRATA_TEST") != nullptr;
struct CountsFar : strata::comm::SelfComm {
    [[nodiscard]] long rank() const noexcept { return 0; }
};
static_assert(strata::comm::Communicator<strata::comm::SelfComm> && !strata::comm::Communicator<TakesItSometimes> &&
              !strata::comm::Communicator<CountsFar>);

}  // namespace
