#pragma once
// tools/doctor/rank_report.hpp - RankReport: what a rank of `strata doctor -n N` has to say, from its first words to its last.
//
// A rank prints each thing as a line of JSON as soon as it knows it, so that of one that then falls silent everything before is known.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "line.hpp"

namespace strata::tools::doctor {

/// In front of each line, so that nothing else that a rank prints is taken for one.
inline constexpr std::string_view report_mark = "strata-doctor ";

/// Two ranks of different hosts, or of one where there are no others.
struct PairSpeed {
    std::string from;
    std::string to;
    double seconds = 0;           ///< of a message there and back, of 8 bytes
    double bytes_per_second = 0;  ///< of large ones, in one direction
    double clock_ahead = 0;       ///< seconds that `to` is ahead of `from`
    bool is_silent = false;       ///< it did not answer
};

/// What a rank sees of the folder that all are to share.
struct SharedFolder {
    bool sees_first = false;  ///< the file that rank 0 has written
    bool is_seen = true;      ///< rank 0 has seen the file that this one has written
    std::string failure{};    ///< why it could not write; empty: it could
    std::int64_t owner = -1;  ///< uid of its own file, as it sees it
    double clock_ahead = 0;   ///< seconds that the file server is ahead of this host, by the time of that file
};

struct RankReport {
    int rank = 0;
    std::string host;  ///< empty: it has said nothing
    std::int64_t uid = -1;
    std::int64_t gid = -1;
    std::string library;  ///< of MPI, its first words: "Open MPI v4.1.4"; empty: MPI has not started
    std::vector<PairSpeed> pairs;
    std::uint64_t sum_bytes = 0;  ///< of an all-reduce, on each rank
    double sum_seconds = 0;       ///< 0: not measured
    std::optional<SharedFolder> shared;
    std::vector<Line> lines;  ///< of its host, where that is another than the command's
    std::string failure;      ///< why it ended early
    bool is_complete = false;

    [[nodiscard]] bool has_begun() const { return !host.empty(); }
};

/// A line for the report, mark and end included. These are what a rank prints.
[[nodiscard]] std::string said_of_host(const std::string& host, std::int64_t uid, std::int64_t gid);
[[nodiscard]] std::string said_of_library(const std::string& library);
[[nodiscard]] std::string said_of(const PairSpeed& pair);
[[nodiscard]] std::string said_of_sum(std::uint64_t bytes, double seconds);
[[nodiscard]] std::string said_of(const SharedFolder& shared);
/// What rank 0 says of others: whose files it has not seen.
[[nodiscard]] std::string said_of_unseen(const std::vector<int>& ranks);
[[nodiscard]] std::string said_of(const std::vector<Line>& lines);
[[nodiscard]] std::string said_of_failure(const std::string& failure);
[[nodiscard]] std::string said_at_end();

/// Prints it, at once.
void say(const std::string& text);

/// Of what each rank has printed, by rank. Lines that are none are passed over.
[[nodiscard]] std::vector<RankReport> parse_reports(const std::vector<std::string>& printed);

}  // namespace strata::tools::doctor
