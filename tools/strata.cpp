// strata - the command. Each of its sub-commands is a line in `commands` and a file of its own.

#include <array>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/core/printable.hpp>
#include <strata/core/version.hpp>
#include <strata/train/stop_signal.hpp>

#include "arguments.hpp"
#include "codegen_command.hpp"
#include "config_command.hpp"
#include "data_command.hpp"
#include "doctor/blas.hpp"
#include "doctor_command.hpp"
#include "exit_status.hpp"
#include "launch_command.hpp"
#include "launch_rank.hpp"
#include "launch_shell.hpp"
#include "memory_command.hpp"
#include "sample_command.hpp"
#include "train_command.hpp"
#include "webhook_command.hpp"

namespace {

using strata::Errc;
using strata::Error;

struct Command {
    std::string_view name;
    std::string_view meaning;
    int (*run)(std::span<const std::string> words);
};
constexpr std::array commands{
    Command{"config", "what configurations ask for, what is wrong with them, and other formats of them",
            strata::tools::config_command},
    Command{"codegen", "a configuration as a C++ header: its composition as a type", strata::tools::codegen_command},
    Command{"data", "what data sets hold, what their caches will take, what an epoch is", strata::tools::data_command},
    Command{"memory", "what training all of a model takes on a rank, with usual trainers side by side",
            strata::tools::memory_command},
    Command{"train", "trains what configurations ask for: SimpleTuner's, Accelerate's, DeepSpeed's",
            strata::tools::train_command},
    Command{"sample", "draws pictures of prompts from a model, a run's checkpoint or weights",
            strata::tools::sample_command},
    Command{"launch", "runs a trainer on several ranks, so that Ctrl-C saves", strata::tools::launch_command},
    Command{"doctor", "looks at machine, hosts, folders and buckets, and says what would hinder a run",
            strata::tools::doctor_command},
    Command{"webhook", "sends a test event to the webhooks of a configuration, and says what came back",
            strata::tools::webhook_command},
};

void print_help() {
    std::printf("strata COMMAND ...\n\n");
    for (const Command& command : commands)
        std::printf("  %-8s  %s\n", std::string{command.name}.c_str(), std::string{command.meaning}.c_str());
    std::printf("\n'strata COMMAND --help' says more, 'strata --version' which strata this is.\n");
}

int run(std::span<const std::string> words) {
    std::vector<std::string_view> names;
    std::string list;
    for (const Command& command : commands) {
        names.push_back(command.name);
        list += (list.empty() ? "" : ", ") + std::string{command.name};
    }
    if (words.empty()) throw Error{Errc::bad_argument, "strata needs a command", "type strata --help"};
    const std::string& name = words.front();
    if (name == "--help" || name == "help") {
        print_help();
        return 0;
    }
    if (name == "--version") {
        std::printf("strata %s\n", std::string{strata::version}.c_str());
        return 0;
    }
    for (const Command& command : commands)
        if (command.name == name) return command.run(words.subspan(1));
    if (name == "launch-rank") return strata::tools::launch_rank_command(words.subspan(1));  // of launch, not of people
    if (name == "launch-shell") return strata::tools::launch_shell_command(words.subspan(1));
    if (name == "doctor-blas") return strata::tools::doctor::blas_command(words.subspan(1));
    throw Error{Errc::bad_argument, "strata has no command '" + name + "'",
                strata::tools::did_you_mean(name, names, "use one of " + list + "; strata --help explains them")};
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
        return run(words);
    } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        strata::train::note_reason_is_told();  // where `strata launch` has started this
        return strata::tools::status_of(error);
    } catch (const std::exception& error) {
        strata::train::note_reason_is_told();
        std::fprintf(stderr, "strata: %s\n", strata::core::printable(error.what()).c_str());
        return 1;
    }
}
