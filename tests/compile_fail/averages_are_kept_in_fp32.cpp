// tests/compile_fail/averages_are_kept_in_fp32.cpp - an engine with an average whose values are not floats gets ST0140.

#include <cstddef>
#include <cstdint>
#include <span>

#include <strata/comm/self_comm.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>

using namespace strata;

struct Latest {
    using slot = slot::Averaging;
    static constexpr bool enabled = true;
    static constexpr Place place = Place::host;
    template <class Kept>
    class average : public zero::AverageInMemory<place> {
    public:
        explicit average(const optim::EmaOptions&) {}
        [[nodiscard]] bool due(std::int64_t) const { return true; }
        [[nodiscard]] double decay(std::int64_t) const { return 0; }
#ifdef STRATA_BAD
        [[nodiscard]] std::span<double> values(std::size_t) { return {}; }
#endif
    };
};

using Engine = zero::Engine<Setup<ZeroStage<1>, Latest>, comm::SelfComm>;

int main() { return sizeof(Engine) > 0 ? 0 : 1; }
