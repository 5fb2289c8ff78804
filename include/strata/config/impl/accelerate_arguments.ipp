#pragma once
// strata/config/impl/accelerate_arguments.ipp - a command line of `accelerate launch`, at the keys that its flags go before.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/config/accelerate.hpp>
#include <strata/config/impl/document.ipp>
#include <strata/config/impl/shell_words.ipp>
#include <strata/config/key.hpp>

namespace strata::config {

namespace detail {

/// What becomes of a flag that is no key.
inline Finding finding_of_flag(const ShellWord& word, const std::string& source, Effect effect, std::string words) {
    const std::string flag = word.text.substr(0, word.text.find('='));
    Finding finding;
    finding.effect = effect;
    finding.mark = word.mark;
    finding.place = word.mark.line == 0
                        ? flag
                        : source + ":" + std::to_string(word.mark.line) + ":" + std::to_string(word.mark.column);
    finding.pointer = word.mark.line == 0 ? "" : flag;
    finding.key = flag;
    finding.words = std::move(words);
    return finding;
}

/// A value that only a shell knows.
inline void leave_open(const ShellWord& flag, const ShellWord& value, const std::string& source, Findings& findings) {
    Finding finding = finding_of_flag(flag, source, Effect::none, "left to the shell that runs it");
    finding.value = value.text;
    findings.add(std::move(finding));
}

/// Whether a word of a launcher, which is no value of a flag, is the program that it starts.
inline bool is_program(const std::vector<ShellWord>& words, std::size_t i) {
    const std::string& text = words[i].text;
    if (text.starts_with("--")) return false;
    if (!words[i].is_open) return true;
    return text.ends_with(".py") || text.find('/') != std::string::npos || (i > 0 && words[i - 1].text == "-m");
}

/// Whether a word behind a flag that nobody knows is its value, and not the program.
inline bool seems_a_value(const std::vector<ShellWord>& words, std::size_t i) {
    return i + 1 < words.size() && !words[i].text.starts_with("-") && !words[i].text.ends_with(".py");
}

inline std::string_view flag_name(const KeyRow& row) {
    return row.flag.empty() ? row.name() : std::string_view{row.flag};
}

/// The row of a flag, by its name or by the family that its beginning is of.
inline const KeyRow* row_of_accelerate_flag(const std::string& name) {
    const auto& rows = accelerate_table().rows();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const KeyRow& one) {
        return one.kind != ValueKind::object && one.name() != "*" && flag_name(one) == name;
    });
    if (row != rows.end()) return &*row;
    for (const auto& [begin, block] :
         {std::pair{"dynamo_", "dynamo_config."}, std::pair{"megatron_lm_", "megatron_lm_config."},
          std::pair{"parallelism_config_", "parallelism_config."}, std::pair{"fp8_", "fp8_config."},
          std::pair{"mpirun_", "mpirun_config."}})
        if (name.starts_with(begin)) return accelerate_table().find(block + name);
    return nullptr;
}

/// Flags of the launchers underneath, and of platforms; with whether a value follows.
struct PassedFlag {
    std::string_view name;
    bool has_value;
    std::string_view words;
};
inline constexpr std::string_view mpirun_starts = "`strata launch` and mpirun start ranks";
inline constexpr std::array passed_flags{
    PassedFlag{"module", false, "a program of strata's is an executable"},
    PassedFlag{"no_python", false, "a program of strata's is an executable"},
    PassedFlag{"quiet", false, "errors are one line anyway"},
    PassedFlag{"max_restarts", true, "a run that failed is started again by who started it, and resumes"},
    PassedFlag{"monitor_interval", true, "a rank that dies is noticed at once"},
    PassedFlag{"tee", true, "ranks' output goes where the launcher's goes"},
    PassedFlag{"log_dir", true, "ranks' output goes where the launcher's goes"},
    PassedFlag{"role", true, mpirun_starts},
    PassedFlag{"rdzv_conf", true, mpirun_starts},
    PassedFlag{"mpirun_ccl", true, mpirun_starts},
    PassedFlag{"use_xpu", false, "ranks compute on CPUs or on CUDA's GPUs, as the program says"},
    PassedFlag{"use_mps", false, "ranks compute on CPUs or on CUDA's GPUs, as the program says"},
    PassedFlag{"ipex", false, "strata has its own kernels"},
    PassedFlag{"use_parallelism_config", false, "there is one dimension of ranks"},
};
/// Flags that say which distributed_type it is.
inline constexpr std::array type_flags{std::pair{"multi_gpu", "MULTI_GPU"}, std::pair{"use_deepspeed", "DEEPSPEED"},
                                       std::pair{"use_fsdp", "FSDP"}, std::pair{"use_megatron_lm", "MEGATRON_LM"},
                                       std::pair{"tpu", "XLA"}};

/// As accelerate_arguments(), of words that stand in a text.
///
///   source  the text's name; flags without a mark are called by themselves
[[nodiscard]] inline AccelerateArguments accelerate_flags(const std::vector<ShellWord>& words,
                                                          const std::string& source, Findings& findings) {
    AccelerateArguments all;
    std::vector<GivenValue> values;
    std::size_t i = 0;
    std::optional<std::size_t> open;  // a word that may be the program
    for (; i < words.size(); ++i) {
        const ShellWord& word = words[i];
        if (word.text == "-m" || word.text == "-q") continue;
        if (is_program(words, i)) break;
        if (word.is_open && !word.text.starts_with("--")) {
            open = i;
            continue;
        }
        const std::size_t equals = word.text.find('=');
        const std::string flag = word.text.substr(0, equals);
        std::string name = flag.substr(2);
        std::replace(name.begin(), name.end(), '-', '_');
        const auto value = [&]() -> ShellWord {
            if (equals != std::string::npos) return {word.text.substr(equals + 1), word.mark, word.is_open};
            return i + 1 < words.size() ? words[++i] : ShellWord{};
        };
        const auto give = [&](std::string path, std::string text) {
            values.push_back({std::move(path), std::move(text), word.mark.line == 0 ? flag : source, word.mark});
        };
        const auto type =
            std::find_if(type_flags.begin(), type_flags.end(), [&](const auto& one) { return one.first == name; });
        const auto passed = std::find_if(passed_flags.begin(), passed_flags.end(),
                                         [&](const PassedFlag& one) { return one.name == name; });
        const KeyRow* const row = row_of_accelerate_flag(name);
        if (name == "config_file") {
            const ShellWord file = value();
            if (file.is_open)
                leave_open(word, file, source, findings);
            else
                all.config_file = file.text;
        } else if (type != type_flags.end()) {
            give("distributed_type", type->second);
        } else if (passed != passed_flags.end()) {
            Finding finding = finding_of_flag(word, source, Effect::none, std::string{passed->words});
            if (passed->has_value) finding.value = value().text;
            findings.add(std::move(finding));
        } else if (row != nullptr) {
            const bool alone = row->kind == ValueKind::flag && equals == std::string::npos &&
                               (i + 1 >= words.size() || !flag_of(words[i + 1].text));
            const ShellWord given = alone ? ShellWord{"true", word.mark} : value();
            const std::string path = row->name() == "*" ? row->path.substr(0, row->path.size() - 1) + name : row->path;
            if (given.is_open)
                leave_open(word, given, source, findings);
            else
                give(path, given.text);
        } else if (open) {  // behind a program whose name is the shell's
            i = *open;
            break;
        } else {
            std::vector<std::string_view> names{"config_file"};
            for (const auto& one : type_flags) names.emplace_back(one.first);
            for (const PassedFlag& one : passed_flags) names.push_back(one.name);
            for (const KeyRow& one : accelerate_table().rows())
                if (one.kind != ValueKind::object && one.name() != "*") names.push_back(flag_name(one));
            const std::string_view near = nearest_name(name, names);
            Finding finding = finding_of_flag(word, source, Effect::refused, "is no flag of `accelerate launch`");
            finding.code = Errc::bad_argument;
            finding.fix =
                near.empty() ? "remove it, or put it behind the program's name" : "did you mean --" + std::string{near};
            findings.add(std::move(finding));
            if (equals == std::string::npos && seems_a_value(words, i + 1)) ++i;
        }
    }
    all.taken = i;
    all.document = document_of(values, "command line");
    return all;
}

/// Without a file Accelerate has several GPUs work alike where there are several ranks, and one alone otherwise.
[[nodiscard]] inline Node with_type(const Node& root) {
    if (root.find("distributed_type") != nullptr) return root;
    const Node* const ranks = root.find("num_processes");
    const bool several = ranks != nullptr && ranks->whole().value_or(1) > 1;
    return overlay(document_of({{"distributed_type", several ? "MULTI_GPU" : "NO", "accelerate launch"}}, "").root,
                   root);
}

}  // namespace detail

STRATA_INLINE AccelerateArguments accelerate_arguments(const std::vector<std::string>& words, Findings& findings) {
    std::vector<detail::ShellWord> all;
    for (const std::string& word : words) all.push_back({word, {}});
    return detail::accelerate_flags(all, "command line", findings);
}

}  // namespace strata::config
