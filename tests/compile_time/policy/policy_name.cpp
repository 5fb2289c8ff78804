// tests/compile_time/policy/policy_name.cpp - policies are named as they are typed, whoever wrote them and whatever compiler prints them.

#include <strata/policy/policy_name.hpp>
#include <strata/policy/setup.hpp>

namespace mine {

struct Sharding {
    using slot = strata::slot::Sharding;
};
struct Tier : strata::Cpu {};

namespace strata_like {
template <class T>
struct Sharding {
    using slot = strata::slot::Sharding;
};
}  // namespace strata_like

}  // namespace mine

namespace {

using namespace strata;

static_assert(policy_name_v<ZeroStage<2>> == "ZeroStage<2>");
static_assert(policy_name_v<OffloadTarget<Cpu>> == "OffloadTarget<Cpu>");
static_assert(policy_name_v<OffloadTarget<Nvme, OptimizerState, Parameters>> ==
              "OffloadTarget<Nvme, OptimizerState, Parameters>");
static_assert(policy_name_v<OffloadTarget<Split<Cpu, Nvme, 30>>> == "OffloadTarget<Split<Cpu, Nvme, 30>>");
static_assert(policy_name_v<Backend<S3>> == "Backend<S3>");
static_assert(policy_name_v<Optimizer<AdamW>> == "Optimizer<AdamW>");
static_assert(policy_name_v<Precision<PureBf16>> == "Precision<PureBf16>");
static_assert(policy_name_v<Recompute<EveryOther<2>>> == "Recompute<EveryOther<2>>");
static_assert(policy_name_v<NoEma> == "NoEma");
static_assert(policy_name_v<Ema<Device>> == "Ema<Device>");

// Others keep their namespaces; a name that only begins or ends like ours is another one.
static_assert(policy_name_v<mine::Sharding> == "mine::Sharding");
static_assert(policy_name_v<OffloadTarget<mine::Tier>> == "OffloadTarget<mine::Tier>");
static_assert(policy_name_v<mine::strata_like::Sharding<Cpu>> == "mine::strata_like::Sharding<Cpu>");

}  // namespace
