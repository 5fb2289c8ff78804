#include "host_checks.hpp"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <strata/core/environment.hpp>
#include <strata/core/text.hpp>

#include "blas.hpp"
#include "folder.hpp"
#include "gpus.hpp"
#include "in_time.hpp"
#include "limits.hpp"
#include "processor.hpp"

namespace strata::tools::doctor {

namespace {

using std::chrono::seconds;

/// The lines that `work` returns; where it fails or does not answer, a line that says so.
template <class Work>
void add(std::vector<Line>& lines, const std::string& subject, seconds patience, Work work) {
    try {
        if (auto found = in_time(patience, std::move(work)))
            lines.insert(lines.end(), found->begin(), found->end());
        else
            lines.push_back(problem(subject, "no answer within " + std::to_string(patience.count()) + " s",
                                    "look in dmesg for what hangs, a driver or a disk"));
    } catch (const std::exception& failure) {
        lines.push_back(
            warning(subject, std::string{core::first_line(failure.what())}, "start again; if it stays, report it"));
    }
}

std::vector<Line> check_blas(const ProcessorFacts& processor) {
    const std::string set = process_environment("OPENBLAS_CORETYPE").value_or("");
    const BlasFacts facts = look_at_blas("");
    std::optional<BlasFacts> better;
    if (const std::string core = better_core(facts, processor, !set.empty()); !core.empty()) {
        better = look_at_blas(core);
        if (better->core.empty()) better->core = core;
    }
    return {judge(facts, better, processor, set)};
}

}  // namespace

std::vector<Line> check_host(const std::vector<FolderPlace>& folders) {
    std::vector<Line> lines;
    const ProcessorFacts processor = look_at_processor();
    lines.push_back(judge(processor));
    add(lines, "BLAS", seconds{50}, [processor] { return check_blas(processor); });
    add(lines, "GPUs", seconds{30}, [] { return judge(look_at_gpus(process_environment, "libnvidia-ml.so.1")); });
    add(lines, "memory", seconds{10}, [] {
        const LimitFacts limits = look_at_limits();
        return std::vector{judge_memory(limits), judge_shared_memory(limits), judge_open_files(limits),
                           judge_locked_memory(limits)};
    });
    add(lines, "io_uring", seconds{10}, [] { return std::vector{judge(look_at_uring())}; });
    constexpr seconds patience{20};
    for (const FolderPlace& place : folders) {
        const auto facts = in_time(patience, [place] { return look_at_folder(place); });
        lines.push_back(facts ? judge(*facts) : silent_folder(place, patience));
    }
    return lines;
}

std::filesystem::path nearest_folder(const std::filesystem::path& folder) {
    return in_time(seconds{5},
                   [folder] {
                       std::error_code failed;
                       std::filesystem::path nearest = std::filesystem::absolute(folder, failed).lexically_normal();
                       while (!std::filesystem::is_directory(nearest, failed) && nearest.has_relative_path())
                           nearest = nearest.parent_path();
                       return nearest;
                   })
        .value_or(std::filesystem::path{});
}

}  // namespace strata::tools::doctor
