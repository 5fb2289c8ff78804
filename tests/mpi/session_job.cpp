// A job of several ranks: mpirun -n N session_job CASE --output DIR. session_test starts it and reads what it says.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string_view>

#include <unistd.h>

#include <strata/core/error.hpp>
#include <strata/train/session.hpp>

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    return strata::run(argc - 1, argv + 1, [&](strata::Session& session) {
        if (what.starts_with("tells")) {  // nobody listens at that port, so that what is told stays in the folder
            strata::webhooks::WebhookOptions webhook;
            webhook.url = "http://127.0.0.1:9/";
            webhook.allow_private_addresses = true;
            webhook.closing_seconds = 0;
            session.events().set({webhook});
        }
        session.output();
        session.output("elsewhere");
        if (what == "tells" && session.rank() == 0)
            session.events().tell(
                strata::webhooks::notification_event(strata::webhooks::Severity::info, "Next", "next"));
        if (what == "twice") {  // in one process: its own lock keeps it out
            strata::Session again{session.comm(), argc - 1, argv + 1};
            again.output();
        }
        if (what == "refuses") throw strata::Error{strata::Errc::bad_value, "a number is wrong", "use another one"};
        if (what == "refuses-alone") {  // rank 0 waits and never throws
            if (session.rank() == session.world() - 1)
                throw strata::Error{strata::Errc::bad_value, "a number is wrong", "use another one"};
            session.comm().barrier();
        }
        if (what == "refuses-late" && session.rank() == 0) {
            std::ofstream{session.output() / "metrics.jsonl"} << "{}\n";
            throw strata::Error{strata::Errc::bad_value, "a number is wrong", "use another one"};
        }
        if (what == "fails") throw strata::Error{strata::Errc::no_space, "the disk is full", "free some space"};
        if (what == "waits" || what == "tells-waits" || what == "stops") {  // the last rank does not come
            session.set_collective_timeout(std::chrono::seconds{1});
            if (session.rank() == session.world() - 1) {
                if (what == "stops") ::raise(SIGSTOP);
                while (true) ::pause();
            }
            session.comm().barrier();
        }
        if (session.rank() == 0) std::printf("transport: %s\n", session.comm().transport().c_str());
    });
}
