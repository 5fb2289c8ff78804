#pragma once
// strata/config/impl/launch_script.ipp - calls of launchers in a script, with the files that they name.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <strata/config/accelerate.hpp>
#include <strata/config/deepspeed.hpp>
#include <strata/config/impl/accelerate_arguments.ipp>
#include <strata/config/impl/launch_lines.ipp>
#include <strata/config/impl/launch_ranks.ipp>
#include <strata/config/impl/launch_tables.ipp>
#include <strata/config/impl/text_checks.ipp>
#include <strata/config/launch_script.hpp>
#include <strata/config/reading.hpp>

namespace strata::config {

namespace detail {

/// One script, by its first call of a launcher.
class LaunchScript {
public:
    LaunchScript(const LaunchCall& call, const std::string& source, Findings& findings, const LaunchContext& context,
                 const Environment& variables)
        : call_{call}, source_{source}, findings_{findings}, context_{context}, variables_{variables} {}

    [[nodiscard]] Intent read() {
        const std::size_t first = findings_.all().size();
        if (call_.launcher == Launcher::accelerate)
            accelerate();
        else
            ranks_by_flags(call_.launcher == Launcher::deepspeed ? deepspeed_launcher_table() : torchrun_table());
        program();
        findings_.sort_from(first);
        return std::move(intent_);
    }

private:
    /// A file that a word names: from the working directory, or beside the script.
    [[nodiscard]] std::optional<std::filesystem::path> file_of(const ShellWord& flag, const ShellWord& named) {
        if (named.is_open) {
            leave_open(flag, named, source_, findings_);
            return std::nullopt;
        }
        const std::filesystem::path name = named.text;
        std::error_code error;
        for (const std::filesystem::path& one : {name, context_.folder / name, context_.folder / name.filename()})
            if (std::filesystem::is_regular_file(one, error)) return one;
        intent_.missing_files.push_back(named.text);
        Finding finding =
            finding_of_flag(flag, source_, Effect::none, "the file is not there, and what it says is not known");
        finding.warns = true;
        finding.value = named.text;
        finding.fix = "give its path from here, or from the script";
        findings_.add(std::move(finding));
        return std::nullopt;
    }
    void acts(const ShellWord& flag, const std::string& value, std::string to) {
        Finding finding = finding_of_flag(flag, source_, Effect::acts, "");
        finding.value = value;
        finding.to = std::move(to);
        findings_.add(std::move(finding));
    }
    void refuse(const ShellWord& flag, const Error& problem) {
        Finding finding =
            finding_of_flag(flag, source_, Effect::refused, "names what cannot be read: " + problem.problem());
        finding.code = problem.code();
        finding.fix = problem.fix();
        findings_.add(std::move(finding));
    }
    /// Findings of flags, which a pointer names by their keys, by their names.
    void call_by_flags(std::size_t from, const FormatTable& table) {
        std::vector<Finding> all = findings_.all();
        for (std::size_t i = from; i < all.size(); ++i) {
            if (!all[i].place.starts_with(source_ + ":") || all[i].pointer.starts_with("--")) continue;
            const KeyRow* const row = table.find(all[i].key);
            all[i].key = "--" + std::string{row == nullptr ? all[i].key : std::string{flag_name(*row)}};
            all[i].pointer = all[i].key;
        }
        findings_ = {};
        for (Finding& one : all) findings_.add(std::move(one));
    }

    // ---- accelerate launch ----
    void accelerate() {
        const AccelerateArguments given = accelerate_flags(call_.words, source_, findings_);
        taken_ = given.taken;
        Node root = document_of({}, "nothing").root;
        AccelerateContext folder{.folder = context_.folder, .wants_all_files = false};
        bool is_read = false;
        const auto flag = word_of("--config_file");
        const bool has_file = flag.has_value();
        if (given.config_file && flag) {
            if (const auto file = file_of(*flag, {*given.config_file, flag->mark})) {
                try {
                    const Document document = load_document(*file);
                    findings_.take(document);
                    root = document.root;
                    folder.folder = file->parent_path();
                    is_read = true;
                    acts(*flag, *given.config_file, "docs/config/accelerate.md");
                } catch (const Error& problem) {
                    refuse(*flag, problem);
                }
            }
        }
        root = overlay(overlay(root, accelerate_variables(variables_).root), given.document.root);
        // Of a file that nobody has seen the type is not known, and not missing.
        folder.is_part = has_file && !is_read;
        const std::size_t first = findings_.all().size();
        const std::vector<std::string> missing = intent_.missing_files;
        intent_ = read_accelerate(has_file ? root : with_type(root), findings_, folder);
        intent_.missing_files.insert(intent_.missing_files.begin(), missing.begin(), missing.end());
        call_by_flags(first, accelerate_table());
    }
    [[nodiscard]] std::optional<ShellWord> word_of(std::string_view flag) const {
        for (const ShellWord& word : call_.words)
            if (word.text.substr(0, word.text.find('=')) == flag) return word;
        return std::nullopt;
    }

    // ---- deepspeed, torchrun ----
    void ranks_by_flags(const FormatTable& table) {
        const LauncherFlags given = launcher_flags(call_, table, source_, findings_);
        taken_ = given.taken;
        const std::size_t first = findings_.all().size();
        const Document document = document_of(given.values, source_);
        Reading keys{document.root, table, findings_};
        LaunchIntent& launch = intent_.launch;
        const bool is_torchrun = &table == &torchrun_table();
        const auto number = [&](std::string_view key) {
            const auto found = keys.whole(key);
            return found && *found > 0 ? found : std::nullopt;
        };
        const auto each = number(is_torchrun ? "nproc_per_node" : "num_gpus");
        launch.machines = number(is_torchrun ? "nnodes" : "num_nodes");
        if (const auto rank = keys.whole("node_rank"); rank && *rank >= 0) launch.machine_rank = rank;
        launch.main_address = keys.text("master_addr");
        launch.main_port = keys.whole("master_port");
        if (is_torchrun) {
            read_meeting_point(keys, launch);
            for (const char* key : {"nproc_per_node", "nnodes"})
                if (keys.at(key) != nullptr && !number(key))
                    keys.none(key, "how many there are is known where it runs: `strata launch -n N` says it");
        } else {
            launch.hostfile = keys.text("hostfile");
            launch.include = keys.text("include");
            launch.exclude = keys.text("exclude");
        }
        for (const char* key : {"num_gpus", "num_nodes"})
            if (!number(key)) keys.none(key, "all that there are");
        if (each) launch.ranks = *each * launch.machines.value_or(1);
        if (!is_torchrun) count_hosts(keys, launch, context_.folder, each);
        keys.finish(intent_);
        call_by_flags(first, table);
    }
    // ---- what it starts ----
    void program() {
        const std::vector<ShellWord>& words = call_.words;
        if (taken_ >= words.size()) return;
        std::size_t own = 0;
        for (std::size_t i = taken_ + 1; i < words.size(); ++i) {
            const std::size_t equals = words[i].text.find('=');
            const std::string flag = words[i].text.substr(0, equals);
            const bool has_word =
                equals != std::string::npos || (i + 1 < words.size() && !words[i + 1].text.starts_with("-"));
            if ((flag != "--deepspeed" && flag != "--deepspeed_config") || !has_word) {
                ++own;
                continue;
            }
            const ShellWord named = equals != std::string::npos
                                        ? ShellWord{words[i].text.substr(equals + 1), words[i].mark, words[i].is_open}
                                        : words[i + 1];
            if (equals == std::string::npos) ++i;
            deepspeed_file(equals == std::string::npos ? words[i - 1] : words[i], named);
        }
        Finding finding = finding_of_flag(words[taken_], source_, Effect::none,
                                          own == 0 ? "the program that is started"
                                                   : "the program that is started, with " + std::to_string(own) +
                                                         " words of its own, which are not read");
        finding.value = words[taken_].text;
        finding.key = finding.pointer = "(program)";
        findings_.add(std::move(finding));
    }
    void deepspeed_file(const ShellWord& flag, const ShellWord& named) {
        if (!named.is_open && named.text.find('.') == std::string::npos) return;  // a word for the program: true, zero2
        const auto file = file_of(flag, named);
        if (!file) return;
        try {
            DeepSpeedContext ranks{intent_.launch.ranks};
            intent_ = overlay(intent_, load_deepspeed(*file, findings_, ranks));
            acts(flag, named.text, "docs/config/deepspeed.md");
        } catch (const Error& problem) {
            refuse(flag, problem);
        }
    }

    const LaunchCall& call_;
    const std::string& source_;
    Findings& findings_;
    const LaunchContext& context_;
    const Environment& variables_;
    Intent intent_;
    std::size_t taken_ = 0;
};

}  // namespace detail

STRATA_INLINE bool has_launch_line(std::string_view text) {
    return detail::looks_like_hostfile(text) || !detail::launch_calls(text, process_environment).empty();
}

STRATA_INLINE Intent read_launch_script(std::string_view text, const std::string& source, Findings& findings,
                                        const LaunchContext& context) {
    try {
        text = detail::checked_text(text, source);
        if (detail::looks_like_hostfile(text)) return detail::read_hostfile(text, source, findings);
    } catch (const Error& problem) {
        Finding finding;
        finding.effect = Effect::refused;
        finding.code = problem.code();
        finding.words = problem.problem();
        finding.fix = problem.fix();
        findings.add(std::move(finding));
        return {};
    }
    const detail::ScriptVariables variables{text, context.environment};
    const Environment lookup = [&](const std::string& name) { return variables.find(name); };
    const std::vector<detail::LaunchCall> calls = detail::launch_calls(text, lookup);
    if (calls.empty()) {
        Finding finding;
        finding.effect = Effect::refused;
        finding.place = source;
        finding.words = "calls none of `accelerate launch`, `deepspeed` and `torchrun`";
        finding.fix = "name a script that does, or a configuration";
        findings.add(std::move(finding));
        return {};
    }
    Intent intent = detail::LaunchScript{calls.front(), source, findings, context, lookup}.read();
    if (!intent.launch.machines) intent.launch.machines = variables.slurm_nodes();
    for (std::size_t i = 1; i < calls.size(); ++i) {
        Finding finding = detail::finding_of_flag(calls[i].words.front(), source, Effect::none,
                                                  "another call of a launcher, which is not read: the first is");
        finding.warns = true;
        finding.key = finding.pointer = "(call " + std::to_string(i + 1) + ")";
        finding.fix = "give it a script of its own where it asks for something else";
        findings.add(std::move(finding));
    }
    return intent;
}

}  // namespace strata::config
