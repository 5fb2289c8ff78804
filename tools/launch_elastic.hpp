#pragma once
// tools/launch_elastic.hpp - Elastic: which of its hosts a launch may go on with when some of them are lost or come back, and when.

#include <chrono>
#include <string>
#include <vector>

#include "launch_hosts.hpp"

namespace strata::tools {

/// Which hosts a launch may go on with.
struct Elastic {
    int least = 0;  ///< hosts; 0: always all of them
    int most = 0;
    bool keeps_batch = false;  ///< gradient_accumulation_steps grows as ranks get fewer
};

/// What is started on all hosts.
struct ElasticProgram {
    std::vector<std::string> words;
    int ranks = 1;
};

/// The program's words, with `--gradient_accumulation_steps` times `from` over `to`, so that a step of `to` ranks has as many samples as
/// one of `from`. False where that is no whole number. Throws Errc::bad_argument where the words do not have it.
[[nodiscard]] bool keep_batch(std::vector<std::string>& words, int from, int to);

/// As many of the hosts, from the first on, as a launch may go on with. Throws Errc::not_elastic where that is none.
[[nodiscard]] std::vector<LaunchHost> elastic_hosts(const std::vector<LaunchHost>& there, const Elastic& elastic,
                                                    const ElasticProgram& program);

/// Whether a launch that runs on `used` would run on more ranks if it started again when those of `come` are there too. One that has as
/// many hosts as it may, or that cannot keep its effective batch on more, would stop for nothing, and soon again.
///
///   all   hosts of the launch, in its order
///   come  names of some of them
[[nodiscard]] bool would_grow(const std::vector<LaunchHost>& used, const std::vector<LaunchHost>& all,
                              const std::vector<std::string>& come, const Elastic& elastic,
                              const ElasticProgram& program);

/// How long is waited before the next start: a second, or twice as long as the last time where the one before ended soon, up to a minute. A
/// host or a file server that is being mended is not asked until all restarts are used up.
[[nodiscard]] std::chrono::seconds next_pause(std::chrono::seconds last, std::chrono::steady_clock::duration it_ran);

}  // namespace strata::tools
