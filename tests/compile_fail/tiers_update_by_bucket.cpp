// tests/compile_fail/tiers_update_by_bucket.cpp - an update in backward over a tier that knows whole passes only gets ST0124.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <strata/comm/self_comm.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>

using namespace strata;

struct Shelf : Cpu {
    template <class Kept, std::size_t states, bool has_master>
    class state;
};
template <class Kept, std::size_t states, bool has_master>
class Shelf::state {
public:
    static constexpr Place memory = Place::host;
    static constexpr bool fails_alone = false;
    static constexpr bool wants_folder = false;
    static PlaceBytes bytes(std::span<const std::int64_t> numels) { return kept_type::bytes(numels); }
    void make(const zero::TierContext& context, std::vector<std::int64_t> numels) {
        kept_.make(context, std::move(numels));
    }
    template <class WeightOf>
    void fill(const std::array<float, states>& initial, WeightOf&& weight_of) {
        kept_.fill(initial, weight_of);
    }
    template <class Call>
    void run(offload::Access access, Call&& call) {
        kept_.run(access, call);
    }
    void prefetch() {}
#ifndef STRATA_BAD
    template <class Call>
    void run_bucket(std::size_t bucket, offload::Access access, Call&& call) {
        kept_.run_bucket(bucket, access, call);
    }
    void prefetch_bucket(std::size_t) {}
#endif

private:
    using kept_type = Cpu::state<Kept, states, has_master>;
    kept_type kept_;
};

using Engine = zero::Engine<Setup<ZeroStage<1>, Update<InBackward>, OffloadTarget<Shelf>>, comm::SelfComm>;

int main() { return sizeof(Engine) > 0 ? 0 : 1; }
