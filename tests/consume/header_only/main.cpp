// tests/consume/header_only/main.cpp - starts a session; the trainer is in the other translation unit.

#include <cstdio>

#include <strata/strata.hpp>

#ifdef STRATA_COMPILED
#error "strata::strata must be header-only"
#endif

strata::FitResult train_two_steps(strata::Session& session);

int main(int argc, char** argv) {
    return strata::run(argc, argv, [](strata::Session& session) {
        session.output("consumer-output");
        const auto result = train_two_steps(session);
        if (result.step == 2) std::printf("trained %d steps\n", static_cast<int>(result.step));
    });
}
