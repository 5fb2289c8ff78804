#pragma once
// strata/datasets/discovered.hpp - what discover() takes besides a data set, and what it gives.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/datasets/report.hpp>
#include <strata/datasets/sample.hpp>

namespace strata::datasets {

/// What discover() found in one data set; samples are sorted by key. The same on every rank.
struct Discovered {
    std::vector<Sample> samples;
    std::vector<Skipped> skipped;
    std::int64_t found = 0;          ///< files that are pictures by their names
    std::int64_t examined = 0;       ///< of which something was read; the rest was known from an earlier start
    std::vector<std::string> notes;  ///< what a person should know: rows without a picture, deleted files, a new index
};

/// How discover() works.
struct DiscoverOptions {
    std::filesystem::path index_folder = {};  ///< of the SampleIndex; only rank 0 looks there. Empty: none is kept
    std::int64_t threads = 0;                 ///< of this rank; 0: as many as there are cores, and more for a bucket
    std::int64_t decode_memory_bytes = std::int64_t{2} << 30;  ///< see data::SourceOptions; for scan_for_errors

    /// Called from one thread at a time: "pictures listed" (total 0: unknown) and "pictures examined", of all ranks.
    std::function<void(std::string_view what, std::int64_t done, std::int64_t total)> progress = {};
    /// Asked from one thread at a time: true ends discover() with Errc::interrupted on all ranks.
    std::function<bool()> stopped = {};

    /// False: delete_problematic_images deletes nothing, and is a note instead.
    bool deletes = true;
};

}  // namespace strata::datasets
