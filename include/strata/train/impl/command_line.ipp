#pragma once
// strata/train/impl/command_line.ipp - words to flags, and the text of --help.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <system_error>
#include <utility>

#include <strata/comm/launched_rank.hpp>
#include <strata/config/simpletuner.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/error.hpp>
#include <strata/core/version.hpp>
#include <strata/train/command_line.hpp>

namespace strata::train {
namespace detail {

struct SessionFlag {
    std::string_view name;
    std::string_view value;  // empty: it takes none
    std::string_view meaning;
};
inline constexpr std::array session_flags{
    SessionFlag{"--config", "FILE", "the configuration"},
    SessionFlag{"--output", "DIR", "where results go"},
    SessionFlag{"--fresh", "", "starts over: removes what an earlier run left in the output directory"},
    SessionFlag{"--help", "", "prints this text"},
    SessionFlag{"--version", "", "prints which strata the program is made with"},
};

inline bool reads_a_file(std::span<const SettingsKeys> keys) {
    return std::any_of(keys.begin(), keys.end(), [](const SettingsKeys& one) { return !one.default_file.empty(); });
}

inline std::string_view program_name(int argc, const char* const* argv) {
    if (argc < 1) return "the program";
    const std::string_view path = argv[0];
    return path.substr(path.rfind('/') + 1);
}

/// The words of a command line, one flag at a time.
class Words {
public:
    Words(int argc, const char* const* argv)
        : program_{program_name(argc, argv)}, words_(argv, argv + std::max(argc, 0)) {}

    /// Moves to the next flag; false behind the last word.
    bool next() {
        if (++at_ >= words_.size()) return false;
        const std::string_view word = words_[at_];
        const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
        flag_ = word.substr(0, equals);
        inside_ = equals == std::string_view::npos ? std::nullopt : std::optional{word.substr(equals + 1)};
        return true;
    }
    [[nodiscard]] const std::string& flag() const noexcept { return flag_; }
    [[nodiscard]] std::string_view key() const {
        return std::string_view{flag_}.substr(flag_.starts_with("--") ? 2 : 0);
    }

    /// The value: behind '=', else the next word. What begins with "--" is a flag and no value.
    std::string value(std::string_view kind) {
        if (inside_) return std::string{*inside_};
        if (at_ + 1 >= words_.size() || words_[at_ + 1].starts_with("--"))
            throw Error{Errc::bad_argument, flag_ + " needs a value", "type " + flag_ + " " + std::string{kind}};
        return std::string{words_[++at_]};
    }
    /// "true" for a flag that stands alone.
    std::string truth() {
        if (inside_) return std::string{*inside_};
        const bool is_said = at_ + 1 < words_.size() && (words_[at_ + 1] == "true" || words_[at_ + 1] == "false");
        return is_said ? std::string{words_[++at_]} : "true";
    }
    /// Of a key that is known only where it is read: alone it is "true".
    std::string value_or_truth() {
        const bool is_alone = !inside_ && (at_ + 1 >= words_.size() || words_[at_ + 1].starts_with("--"));
        return is_alone ? "true" : value("VALUE");
    }
    void take_no_value() const {
        if (inside_) throw Error{Errc::bad_argument, flag_ + " takes no value", "type " + flag_ + " alone"};
    }
    [[noreturn]] void refuse_twice() const {
        throw Error{Errc::bad_argument, flag_ + " is given twice", "keep one of them"};
    }

    [[noreturn]] void refuse_unknown(std::span<const SettingsKeys> keys) const {
        const std::string help = "'" + std::string{program_} + " --help' lists what there is";
        const auto& trainer_keys = config::trainer_schema().keys();
        const auto is_this = [this](const config::KeyInfo& info) { return info.key == key() || info.alias == key(); };
        if (flag_.starts_with("--") && std::any_of(trainer_keys.begin(), trainer_keys.end(), is_this))
            throw Error{Errc::bad_argument,
                        flag_ + " is a key of a trainer's configuration, and this program reads no configuration",
                        "leave it away; " + help};
        const auto is_of_file = [](const SettingsKeys& list) { return !list.default_file.empty(); };
        if (flag_.starts_with("--") && std::any_of(keys.begin(), keys.end(), is_of_file))
            if (const config::ForeignKey* const foreign = config::find_simpletuner_key(key()))
                throw Error{Errc::unsupported_key,
                            flag_ + " is known from other trainers, and is a key of files here, and no flag",
                            "write it into the configuration, where it means: " + std::string{foreign->instead} +
                                "; or leave it away"};
        std::vector<std::string> names;
        for (const SessionFlag& one : session_flags) names.emplace_back(one.name);
        for (const SettingsKeys& list : keys)
            for (const config::KeyInfo& info : list.known) {
                names.push_back("--" + info.key);
                if (!info.alias.empty()) names.push_back("--" + info.alias);
            }
        const std::string_view near = config::nearest_name(flag_, {names.begin(), names.end()});
        throw Error{Errc::bad_argument, "the argument " + flag_ + " is unknown",
                    (near.empty() ? "" : "did you mean " + std::string{near} + "? ") + help};
    }

private:
    std::string_view program_;
    std::vector<std::string_view> words_;
    std::size_t at_ = 0;
    std::string flag_;
    std::optional<std::string_view> inside_;
};

/// True for a key of the program's settings, which then is among the overrides.
inline bool take_key(Words& words, std::span<const SettingsKeys> keys, config::Overrides& overrides) {
    const std::string_view key = words.key();
    if (key.size() == words.flag().size()) return false;
    const auto is_named = [key](const auto& other) { return other.key == key; };
    const auto take = [&](config::KeyKind kind, bool may_stand_alone = false) {
        std::string value = kind == config::KeyKind::flag ? words.truth()
                            : may_stand_alone             ? words.value_or_truth()
                                                          : words.value("VALUE");
        const auto given =
            std::find_if(overrides.begin(), overrides.end(), [key](const auto& one) { return one.name == key; });
        if (given == overrides.end())
            overrides.push_back({std::string{key}, {std::move(value)}});
        else if (kind == config::KeyKind::list)
            given->values.push_back(std::move(value));
        else
            words.refuse_twice();
        return true;
    };
    for (const SettingsKeys& list : keys) {
        const auto info = std::find_if(list.known.begin(), list.known.end(), [key](const config::KeyInfo& one) {
            return one.key == key || (!one.alias.empty() && one.alias == key);
        });
        if (info != list.known.end()) return take(info->kind);
        const auto other = std::find_if(list.unsupported.begin(), list.unsupported.end(), is_named);
        if (other != list.unsupported.end()) {
            if (other->false_is_fine && words.truth() == "false") return true;
            throw Error{Errc::unsupported_key,
                        words.flag() + " is known from other trainers, and strata does not act on it",
                        "remove it: " + std::string{other->why}};
        }
        if (std::any_of(list.idle.begin(), list.idle.end(), is_named)) {
            (void)words.value("VALUE");
            return true;
        }
    }
    for (const SettingsKeys& list : keys)
        for (const config::KeyFamily& family : list.families)  // one without a prefix has any key; alone it is true
            if (key.starts_with(family.prefix)) return take(config::KeyKind::word, family.prefix.empty());
    return false;
}

/// Appends words in lines of at most 80 columns.
///
///   indent  of the lines that follow the first
inline void wrap(std::string& text, std::string_view words, std::size_t indent) {
    constexpr std::size_t columns = 80;
    std::size_t column = text.size() - (text.rfind('\n') + 1);
    bool begins = text.empty() || text.back() == ' ' || text.back() == '\n';
    for (std::size_t at = 0; at < words.size();) {
        const std::size_t end = std::min(words.find(' ', at), words.size());
        const std::string_view word = words.substr(at, end - at);
        at = end + 1;
        if (!begins && column + 1 + word.size() > columns) {
            text += '\n';
            text.append(indent, ' ');
            column = indent;
        } else if (!begins) {
            text += ' ';
            ++column;
        }
        begins = false;
        text += word;
        column += word.size();
    }
    text += '\n';
}

/// Markdown as a terminal shows it: without back quotes, and of a link its words.
inline std::string plain(std::string_view markdown) {
    std::string text;
    for (std::size_t i = 0; i < markdown.size(); ++i) {
        const std::size_t middle = markdown[i] == '[' ? markdown.find("](", i) : std::string_view::npos;
        const std::size_t end = middle == std::string_view::npos ? middle : markdown.find(')', middle);
        if (end != std::string_view::npos) {
            text += markdown.substr(i + 1, middle - i - 1);
            i = end;
        } else if (markdown[i] != '`') {
            text += markdown[i];
        }
    }
    return text;
}

inline void describe(std::string& text, std::span<const config::KeyInfo> keys) {
    for (const config::KeyInfo& info : keys) {
        text += "  --" + info.key;
        std::string head = info.alias.empty() ? "" : "or --" + info.alias;
        head += (head.empty() ? "" : " ") + std::string{" "} + plain(info.type) +
                (info.fallback == "required" ? "; required" : "; default " + info.fallback);
        wrap(text, head, 10);
        text.append(6, ' ');
        wrap(text, plain(info.meaning), 6);
    }
}

}  // namespace detail

STRATA_INLINE CommandLine CommandLine::parse(int argc, const char* const* argv, std::span<const SettingsKeys> keys) {
    CommandLine line;
    detail::Words words{argc, argv};
    const auto path = [&](std::optional<std::filesystem::path>& to, std::string_view kind) {
        if (to) words.refuse_twice();
        to = words.value(kind);
        if (to->empty())
            throw Error{Errc::bad_argument, words.flag() + " needs a value",
                        "type " + words.flag() + " " + std::string{kind}};
    };
    while (words.next()) {
        if (words.flag() == "--output") {
            path(line.output, "DIR");
        } else if (words.flag() == "--config") {
            path(line.config, "FILE");
        } else if (words.flag() == "--fresh") {
            words.take_no_value();
            line.fresh = true;
        } else if (!detail::take_key(words, keys, line.overrides)) {
            words.refuse_unknown(keys);
        }
    }
    if (line.config && !detail::reads_a_file(keys))
        throw Error{Errc::bad_argument,
                    "this program reads no configuration file, and --config " + line.config->string() + " was given",
                    "leave --config away"};
    return line;
}

STRATA_INLINE std::filesystem::path CommandLine::config_file(std::string_view otherwise) const {
    std::error_code none;
    if (!config && !std::filesystem::exists(otherwise, none))
        throw Error{Errc::unreadable_config,
                    "--config is not given, and there is no " + std::string{otherwise} + " in this folder",
                    "name the configuration with --config FILE"};
    return config.value_or(otherwise);
}

STRATA_INLINE std::string help_text(std::string_view program, std::span<const SettingsKeys> keys) {
    const bool has_file = detail::reads_a_file(keys);
    std::string text = "usage: " + std::string{program};
    detail::wrap(text,
                 std::string{has_file ? "[--config FILE] " : ""} + "[--output DIR] [--fresh]" +
                     (keys.empty() ? "" : " [--KEY VALUE ...]"),
                 7);
    text += "A trainer made with strata " + std::string{version} + ".\n\n";
    for (const detail::SessionFlag& flag : detail::session_flags) {
        if (flag.name == "--config" && !has_file) continue;
        std::string left = "  " + std::string{flag.name} + (flag.value.empty() ? "" : " ") + std::string{flag.value};
        left.resize(17, ' ');
        std::string meaning{flag.meaning};
        if (flag.name == "--config")
            for (const SettingsKeys& list : keys)
                if (!list.default_file.empty()) meaning += "; without it " + std::string{list.default_file};
        if (flag.name == "--output")
            meaning += has_file ? "; goes before output_dir of the configuration" : "; ./output without it";
        text += left;
        detail::wrap(text, meaning, 17);
    }
    for (const SettingsKeys& list : keys) {
        text += '\n';
        detail::wrap(text,
                     list.default_file.empty()
                         ? "Of this program, as --key value or --key=value:"
                         : "Every key of the configuration, as --key value or --key=value, goes before what the file "
                           "says. One that is true or false may stand alone. A list takes its key once for each "
                           "element, or JSON: --key '[\"a\", \"b\"]'.",
                     0);
        text += '\n';
        detail::describe(text, list.known);
        for (const config::KeyFamily& family : list.families) {
            text += "  --" + std::string{family.prefix} + "...\n      ";
            detail::wrap(text, detail::plain(family.meaning), 6);
        }
    }
    return text;
}

STRATA_INLINE std::optional<int> answer_question(int argc, const char* const* argv,
                                                 std::span<const SettingsKeys> keys) {
    const auto asks = [&](std::string_view question) {
        return std::any_of(argv + std::min(argc, 1), argv + argc,
                           [&](std::string_view word) { return word == question; });
    };
    const bool help = asks("--help");
    if (!help && !asks("--version")) return std::nullopt;
    if (comm::launched_rank() != 0) return 0;
    const std::string text =
        help ? help_text(detail::program_name(argc, argv), keys) : "strata " + std::string{version} + "\n";
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace strata::train
