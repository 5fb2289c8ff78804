#pragma once
// strata/train/impl/metrics.ipp - reading and appending JSON lines.

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/core/error.hpp>
#include <strata/train/metrics.hpp>

namespace strata::train {
namespace detail {

inline std::string to_json_line(const StepMetrics& m) {
    char line[512];
    std::snprintf(line, sizeof line,
                  "{\"step\":%lld,\"loss\":%.17g,\"lr\":%.17g,\"grad_norm\":%.17g,\"samples_per_second\":%.6g,"
                  "\"seconds\":%.6g,\"epoch\":%.6g}\n",
                  static_cast<long long>(m.step), m.loss, m.learning_rate, m.grad_norm, m.samples_per_second, m.seconds,
                  m.epoch);
    return line;
}

}  // namespace detail

STRATA_INLINE std::vector<StepMetrics> read_metrics(const std::filesystem::path& file) {
    std::vector<StepMetrics> steps;
    std::ifstream in{file};
    for (std::string line; std::getline(in, line);) {
        const auto json = nlohmann::json::parse(line, nullptr, false);
        if (!json.is_object() || !json.contains("step")) continue;
        if (std::any_of(json.begin(), json.end(), [](const auto& value) { return !value.is_number(); })) continue;
        steps.push_back({.step = json.value("step", std::int64_t{0}),
                         .loss = json.value("loss", 0.0),
                         .learning_rate = json.value("lr", 0.0),
                         .grad_norm = json.value("grad_norm", 0.0),
                         .samples_per_second = json.value("samples_per_second", 0.0),
                         .seconds = json.value("seconds", 0.0),
                         .epoch = json.value("epoch", 0.0)});
    }
    return steps;
}

STRATA_INLINE MetricsLog::MetricsLog(std::filesystem::path file, std::int64_t resumed_step) : file_{std::move(file)} {
    for (const StepMetrics& m : read_metrics(file_))
        if (m.step <= resumed_step) history_.push_back(m);
    const std::filesystem::path kept = file_.string() + ".tmp";
    {
        std::ofstream out{kept, std::ios::trunc};
        for (const StepMetrics& m : history_) out << detail::to_json_line(m);
        out.flush();
        if (!out)
            throw Error{Errc::io_failed, "cannot write " + kept.string(), "check that the disk has room and the folder is writable"};
    }
    std::error_code failed;
    std::filesystem::rename(kept, file_, failed);
    if (failed)
        throw Error{Errc::io_failed, "cannot replace " + file_.string() + ": " + failed.message(), "check the folder's permissions"};
    out_.open(file_, std::ios::app);
}

STRATA_INLINE void MetricsLog::append(const StepMetrics& metrics) {
    history_.push_back(metrics);
    errno = 0;
    out_ << detail::to_json_line(metrics);
    out_.flush();
    if (out_) return;
    const int failure = errno;
    throw Error{failure == ENOSPC || failure == EDQUOT ? Errc::no_space : Errc::io_failed,
                "cannot append to " + file_.string() + ": " + std::strerror(failure),
                "mend that and run again: it resumes from the last checkpoint"};
}

}  // namespace strata::train
