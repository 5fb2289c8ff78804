#include "data_command.hpp"

#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

#include <strata/core/error.hpp>
#include <strata/train/phases.hpp>
#include <strata/train/stop_signal.hpp>
#include <strata/train/terminal.hpp>

#include "arguments.hpp"
#include "data_output.hpp"
#include "data_survey.hpp"

namespace strata::tools {

namespace {

constexpr std::array options{
    Option{"--index", "FOLDER", "keeps what is found out about pictures; a configuration's is its output_dir/index"},
    Option{"--threads", "N", "threads that read pictures; 0, the default: as many as there are cores"},
    Option{"--names", "N", "skipped pictures that are named for each reason; 10"},
    Option{"--json", "", "prints one JSON object instead of text; bytes are exact there"},
    Option{"--model", "NAME", "stats: whose caches are foreseen: small_flux (the default), flux, sdxl, sd15"},
    Option{"--train-batch-size", "N", "plan: samples of one rank in a micro-batch, instead of the configuration's"},
    Option{"--gradient-accumulation-steps", "N", "plan: micro-batches of a step, instead of the configuration's"},
    Option{"--ranks", "N", "plan: processes that train; 1"},
    Option{"--seed", "N", "stats, plan: start of every random sequence, instead of the configuration's"},
    Option{"--allow-dataset-oversubscription", "", "plan: raises repeats of buckets that hold less than a batch"},
    Option{"--batches", "N", "plan: lists the samples of the first N steps"},
    Option{"--help", "", "prints this text"},
};

void print_help() {
    std::printf(
        "strata data scan FILE   which pictures there are, which are skipped, and why\n"
        "strata data stats FILE  also their sizes, captions and buckets, and what the caches will take\n"
        "strata data plan FILE   the effective batch, the steps of an epoch, and the order of samples\n"
        "\n"
        "FILE is a dataset list ([...]) or a trainer configuration ({...}). Options that a command has no use for do\n"
        "no harm, so that all three may be called alike:\n"
        "\n%s\n"
        "Exit status: 0; 1 for an error; 2 for a word that is not understood; 130 after Ctrl-C.\n",
        help_lines(options).c_str());
}

Survey survey_with_progress(SurveyedFile source, const SurveyRequest& request, const train::StopSignal& signal) {
    train::Phases phases{true, train::is_terminal(STDERR_FILENO)};
    const SurveyProgress progress = [&](std::string_view dataset, std::string_view what, std::int64_t done,
                                        std::int64_t total) {
        phases("data set '" + std::string{dataset} + "': " + std::string{what}, done, total);
    };
    const std::string index = source.index_folder.string();
    try {
        return survey(
            std::move(source), request, progress, [&](const std::string& line) { phases.note(line); },
            [&] { return signal.requested(); });
    } catch (const Error& error) {
        if (error.code() != Errc::interrupted) throw;
        if (index.empty())
            throw Error{Errc::interrupted,
                        "stopped; what was found out about the pictures is lost, because no index is kept",
                        "add --index FOLDER, and a second call goes on where this one ended"};
        throw Error{Errc::interrupted, "stopped; what was found out about the pictures is kept in '" + index + "'",
                    "run the same command again to go on"};
    }
}

}  // namespace

int data_command(std::span<const std::string> words) {
    std::optional<train::StopSignal> signal{std::in_place};  // from the start: what comes early is not lost
    constexpr std::string_view otherwise = "type strata data scan FILE, stats FILE or plan FILE";
    if (words.empty()) throw Error{Errc::bad_argument, "strata data needs to know what to do", otherwise};
    const std::string& action = words.front();
    if (action == "--help" || action == "help") {
        print_help();
        return 0;
    }
    if (action != "scan" && action != "stats" && action != "plan")
        throw Error{Errc::bad_argument, "strata data has no command '" + action + "'",
                    did_you_mean(action, {"scan", "stats", "plan"}, otherwise)};
    const Arguments arguments{"strata data " + action, words.subspan(1), options};
    if (arguments.has("--help")) {
        print_help();
        return 0;
    }

    constexpr std::int64_t most = 65536;  // what the configuration takes, too
    SurveyRequest request;
    request.file = arguments.only_word("FILE");
    request.train_batch_size = arguments.integer("--train-batch-size", 1, most);
    request.gradient_accumulation_steps = arguments.integer("--gradient-accumulation-steps", 1, most);
    request.seed = arguments.integer("--seed", 0, 9'000'000'000'000'000);
    request.ranks = arguments.integer("--ranks", 1, most).value_or(1);
    request.allow_dataset_oversubscription = arguments.has("--allow-dataset-oversubscription");
    request.threads = arguments.integer("--threads", 0, 4096).value_or(0);
    if (const auto folder = arguments.text("--index")) request.index_folder = *folder;
    DataAnswer answer;
    answer.command = action;
    answer.names = arguments.integer("--names", 0, 1'000'000'000).value_or(answer.names);
    answer.batches = arguments.integer("--batches", 0, 1'000'000'000).value_or(answer.batches);
    const std::string model = arguments.text("--model").value_or("small_flux");
    const datasets::EntryShapes& recipe = recipe_of(model);
    answer.model = model;

    Survey found = survey_with_progress(read_survey_file(request), request, *signal);
    signal.reset();  // the rest takes seconds at most
    answer.survey = &found;
    SurveyStatistics statistics;
    SurveyPlan plan;
    if (action == "stats") {
        statistics = survey_statistics(found, recipe);
        answer.statistics = &statistics;
    } else if (action == "plan") {
        plan = survey_plan(found, request.ranks);
        answer.plan = &plan;
    }
    const std::string text = arguments.has("--json") ? as_json(answer) : as_text(answer);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        throw Error{Errc::io_failed, "standard output cannot be written", "see whether the disk is full"};
    return 0;
}

}  // namespace strata::tools
