#include "rank_report.hpp"

#include <cstddef>
#include <cstdio>
#include <sstream>

namespace strata::tools::doctor {

namespace {

std::string said(const nlohmann::json& json) {
    return std::string{report_mark} + json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void take(RankReport& report, const nlohmann::json& json, std::vector<RankReport>& all) {
    const std::string about = json.value("about", "");
    if (about == "host") {
        report.host = json.value("host", "");
        report.uid = json.value("uid", -1);
        report.gid = json.value("gid", -1);
    } else if (about == "library") {
        report.library = json.value("library", "");
    } else if (about == "pair") {
        report.pairs.push_back({json.value("from", ""), json.value("to", ""), json.value("seconds", 0.0),
                                json.value("bytes_per_second", 0.0), json.value("clock_ahead", 0.0),
                                json.value("silent", false)});
    } else if (about == "sum") {
        report.sum_bytes = json.value("bytes", std::uint64_t{0});
        report.sum_seconds = json.value("seconds", 0.0);
    } else if (about == "shared") {
        const bool is_seen = !report.shared || report.shared->is_seen;
        report.shared = SharedFolder{json.value("sees_first", false), is_seen, json.value("failure", ""),
                                     json.value("owner", -1), json.value("clock_ahead", 0.0)};
    } else if (about == "unseen") {
        for (const auto& rank : json.value("ranks", std::vector<std::size_t>{}))
            if (rank < all.size()) {
                if (!all[rank].shared) all[rank].shared.emplace();
                all[rank].shared->is_seen = false;
            }
    } else if (about == "lines") {
        for (const nlohmann::json& line : json.at("lines")) report.lines.push_back(line_of(line));
    } else if (about == "failure") {
        report.failure = json.value("failure", "");
    } else if (about == "end") {
        report.is_complete = true;
    }
}

}  // namespace

std::string said_of_host(const std::string& host, std::int64_t uid, std::int64_t gid) {
    return said({{"about", "host"}, {"host", host}, {"uid", uid}, {"gid", gid}});
}
std::string said_of_library(const std::string& library) { return said({{"about", "library"}, {"library", library}}); }
std::string said_of(const PairSpeed& pair) {
    return said({{"about", "pair"},
                 {"from", pair.from},
                 {"to", pair.to},
                 {"seconds", pair.seconds},
                 {"bytes_per_second", pair.bytes_per_second},
                 {"clock_ahead", pair.clock_ahead},
                 {"silent", pair.is_silent}});
}
std::string said_of_sum(std::uint64_t bytes, double seconds) {
    return said({{"about", "sum"}, {"bytes", bytes}, {"seconds", seconds}});
}
std::string said_of(const SharedFolder& shared) {
    return said({{"about", "shared"},
                 {"sees_first", shared.sees_first},
                 {"failure", shared.failure},
                 {"owner", shared.owner},
                 {"clock_ahead", shared.clock_ahead}});
}
std::string said_of_unseen(const std::vector<int>& ranks) { return said({{"about", "unseen"}, {"ranks", ranks}}); }
std::string said_of(const std::vector<Line>& lines) {
    nlohmann::json all = nlohmann::json::array();
    for (const Line& line : lines) all.push_back(json_of(line));
    return said({{"about", "lines"}, {"lines", all}});
}
std::string said_of_failure(const std::string& failure) { return said({{"about", "failure"}, {"failure", failure}}); }
std::string said_at_end() { return said({{"about", "end"}}); }

void say(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

std::vector<RankReport> parse_reports(const std::vector<std::string>& printed) {
    std::vector<RankReport> reports(printed.size());
    for (std::size_t rank = 0; rank < printed.size(); ++rank) {
        reports[rank].rank = static_cast<int>(rank);
        std::istringstream in{printed[rank]};
        for (std::string line; std::getline(in, line);) {
            if (!line.starts_with(report_mark)) continue;
            const nlohmann::json json = nlohmann::json::parse(line.substr(report_mark.size()), nullptr, false);
            if (!json.is_object()) continue;
            try {
                take(reports[rank], json, reports);
            } catch (const nlohmann::json::exception&) {  // half a line of a rank that was ended
            }
        }
    }
    return reports;
}

}  // namespace strata::tools::doctor
