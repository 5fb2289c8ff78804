#pragma once
// strata/config/impl/launch_lines.ipp - where a script calls a launcher, and the flags that it calls it with.

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/config/env_file.hpp>
#include <strata/config/findings.hpp>
#include <strata/config/format_table.hpp>
#include <strata/config/impl/accelerate_arguments.ipp>
#include <strata/config/impl/hostfile.ipp>
#include <strata/config/impl/key.ipp>
#include <strata/config/impl/shell_words.ipp>
#include <strata/config/impl/value.ipp>
#include <strata/config/key.hpp>

namespace strata::config::detail {

enum class Launcher : std::uint8_t { accelerate, deepspeed, torchrun };

/// A call of a launcher, with the words behind its name: one at least.
struct LaunchCall {
    Launcher launcher;
    std::vector<ShellWord> words;
};

/// The variables that a script sets, #SBATCH lines among them, and then those around it.
class ScriptVariables {
public:
    ScriptVariables(std::string_view text, const Environment& outside) : outside_{outside} {
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            slurm(text.substr(begin, end - begin));
            begin = end + 1;
        }
        for (EnvAssignment& one : read_env_file(text, outside).assignments)
            if (!one.is_computed) set_[one.name] = std::move(one.value);
    }
    [[nodiscard]] std::optional<std::string> find(const std::string& name) const {
        const auto found = set_.find(name);
        return found == set_.end() ? outside_(name) : std::optional{found->second};
    }
    /// `#SBATCH --nodes=2`.
    [[nodiscard]] std::optional<std::int64_t> slurm_nodes() const {
        const auto found = set_.find("SLURM_NNODES");
        const auto nodes = found == set_.end() ? std::nullopt : number_in<std::int64_t>(found->second);
        return nodes && *nodes > 0 ? nodes : std::nullopt;
    }

private:
    /// What Slurm will set because of an option in the script.
    void slurm(std::string_view line) {
        constexpr std::string_view begin = "#SBATCH";
        if (!line.starts_with(begin)) return;
        const std::vector<std::string_view> words = parts_of(line.substr(begin.size()), " \t\r=");
        if (words.size() < 2) return;
        if (words[0] == "--nodes" || words[0] == "-N")
            for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) set_[name] = words[1];
        if (words[0] == "--ntasks-per-node") set_["SLURM_NTASKS_PER_NODE"] = words[1];
        if (words[0] == "--gpus-per-node") set_["SLURM_GPUS_PER_NODE"] = words[1];
    }
    const Environment& outside_;
    std::map<std::string, std::string> set_;
};

/// The launcher that a command calls, and how many words its name and what stands before it have.
inline std::optional<std::pair<Launcher, std::size_t>> launcher_in(const ShellCommand& command) {
    constexpr std::array talkers{"echo",  "printf",  "pip",   "pip3", "which", "command", "type",
                                 "apt",   "apt-get", "conda", "git",  "cd",    "cat",     "export",
                                 "pkill", "killall", "mkdir", "ls",   "ssh",   "rm"};
    std::size_t first = 0;
    while (first < command.size() && command[first].text.find('=') != std::string::npos &&
           !command[first].text.starts_with("-"))
        ++first;
    if (first == command.size()) return std::nullopt;
    if (std::find(talkers.begin(), talkers.end(), command[first].text) != talkers.end()) return std::nullopt;
    const auto is = [&](std::size_t i, std::string_view name) {
        if (i >= command.size()) return false;
        const std::string& word = command[i].text;
        return word == name || (word.ends_with(name) && word[word.size() - name.size() - 1] == '/');
    };
    for (std::size_t i = first; i < command.size(); ++i) {
        if (is(i, "accelerate") && is(i + 1, "launch")) return std::pair{Launcher::accelerate, i + 2};
        if (is(i, "accelerate-launch")) return std::pair{Launcher::accelerate, i + 1};
        if (is(i, "torchrun")) return std::pair{Launcher::torchrun, i + 1};
        const bool is_module = i > 0 && command[i - 1].text == "-m";
        if (is_module && (is(i, "torch.distributed.run") || is(i, "torch.distributed.launch")))
            return std::pair{Launcher::torchrun, i + 1};
        if (is_module && is(i, "accelerate.commands.launch")) return std::pair{Launcher::accelerate, i + 1};
        if (is_module && is(i, "deepspeed.launcher.runner")) return std::pair{Launcher::deepspeed, i + 1};
        const bool begins = i == first || !command[i - 1].text.starts_with("-");  // no value of a flag
        if (begins && (is(i, "deepspeed") || is(i, "deepspeed.pt"))) return std::pair{Launcher::deepspeed, i + 1};
        if (command[i].text == "install" || command[i].text.ends_with(".py")) return std::nullopt;
    }
    return std::nullopt;
}

/// In the order of the script.
inline std::vector<LaunchCall> launch_calls(std::string_view text, const Environment& variables) {
    std::vector<LaunchCall> calls;
    for (ShellCommand& command : ShellReader{text, variables}.read()) {
        const auto launcher = launcher_in(command);
        if (!launcher || launcher->second >= command.size()) continue;
        command.erase(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(launcher->second));
        calls.push_back({launcher->first, std::move(command)});
    }
    return calls;
}

/// Lines `host slots=8`, and nothing else.
inline bool looks_like_hostfile(std::string_view text) {
    bool has_host = false;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, std::min(end, text.find('#')));
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::vector<std::string_view> words = parts_of(line, " \t\r");
        if (words.empty()) continue;
        if (words.size() < 2 || !words[1].starts_with("slots=")) return false;
        has_host = true;
    }
    return has_host;
}

/// Flags of a launcher that its table has.
struct LauncherFlags {
    std::vector<GivenValue> values;
    std::size_t taken = 0;  ///< words up to the program
};
inline LauncherFlags launcher_flags(const LaunchCall& call, const FormatTable& table, const std::string& source,
                                    Findings& findings) {
    constexpr std::array short_names{std::pair{"-H", "hostfile"},  std::pair{"-i", "include"},
                                     std::pair{"-e", "exclude"},   std::pair{"-m", "module"},
                                     std::pair{"-r", "redirects"}, std::pair{"-t", "tee"}};
    LauncherFlags all;
    const std::vector<ShellWord>& words = call.words;
    std::size_t i = 0;
    std::optional<std::size_t> open;  // a word that may be the program
    for (; i < words.size(); ++i) {
        const ShellWord& word = words[i];
        const auto letter = std::find_if(short_names.begin(), short_names.end(),
                                         [&](const auto& one) { return one.first == word.text; });
        const bool is_letter = letter != short_names.end() && table.find(letter->second) != nullptr;
        if (!is_letter && is_program(words, i)) break;
        if (word.is_open && !word.text.starts_with("--")) {
            open = i;
            continue;
        }
        const std::size_t equals = word.text.find('=');
        std::string name = is_letter ? letter->second : word.text.substr(2, equals - 2);
        std::replace(name.begin(), name.end(), '-', '_');
        const KeyRow* const row = table.find(name);
        if (row == nullptr && open) {  // behind a program whose name is the shell's
            i = *open;
            break;
        }
        if (row == nullptr) {
            const std::string_view near = nearest_name(name, table.names_in(""));
            Finding finding = finding_of_flag(word, source, Effect::refused, "is no flag of " + table.name());
            finding.code = Errc::bad_argument;
            finding.fix =
                near.empty() ? "remove it, or put it behind the program's name" : "did you mean --" + std::string{near};
            findings.add(std::move(finding));
            if (equals == std::string::npos && seems_a_value(words, i + 1)) ++i;
            continue;
        }
        ShellWord value{"true", word.mark};
        if (equals != std::string::npos)
            value = {word.text.substr(equals + 1), word.mark, word.is_open};
        else if (row->kind != ValueKind::flag)
            value = i + 1 < words.size() ? words[++i] : ShellWord{"", word.mark};
        if (value.is_open)
            leave_open(word, value, source, findings);
        else
            all.values.push_back({row->path, value.text, source, word.mark});
    }
    all.taken = i;
    return all;
}

}  // namespace strata::config::detail
