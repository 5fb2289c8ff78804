#pragma once
// strata/config/impl/env_file.ipp - a shell's words, quotes, expansions and conditions, as far as settings need them.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <strata/config/env_file.hpp>
#include <strata/config/impl/shell_arithmetic.ipp>

namespace strata::config {

namespace detail {

/// One pass over a shell file.
class EnvReader {
public:
    EnvReader(std::string_view text, const Environment& environment) : text_{text}, environment_{environment} {}

    [[nodiscard]] EnvFile read() {
        while (at_ < text_.size()) statement();
        if (!branches_.empty())
            problem(branches_.back().line, 1, "an `if` that no `fi` ends", "add `fi` behind it", true);
        for (const std::string& name : variables_)
            for (EnvAssignment& one : found_.assignments) one.is_variable |= one.name == name;
        return std::move(found_);
    }

private:
    struct Branch {
        std::size_t line;
        bool is_taken;    // this part is read
        bool was_taken;   // a part above was
        bool is_outside;  // the `if` itself stands where nothing is read
    };
    struct Word {
        std::string value;
        std::size_t line = 0, column = 0;
        bool is_computed = false;
        bool is_quoted = false;
    };

    [[nodiscard]] bool is_read() const { return branches_.empty() || branches_.back().is_taken; }
    [[nodiscard]] char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n';
    }
    void next() {
        if (text_[at_] == '\n') {
            ++line_;
            column_ = 1;
        } else if ((static_cast<unsigned char>(text_[at_]) & 0xC0U) != 0x80U) {
            ++column_;
        }
        ++at_;
    }
    void skip_blanks() {
        for (; at_ < text_.size(); next()) {
            const bool continues = peek() == '\\' && peek(1) == '\n';
            if (continues) next();
            if (!continues && peek() != ' ' && peek() != '\t' && peek() != '\r') return;
        }
    }
    void skip_line() {
        while (at_ < text_.size() && peek() != '\n') next();
        if (at_ < text_.size()) next();
    }
    [[nodiscard]] bool ends_statement() const { return at_ >= text_.size() || peek() == '\n' || peek() == ';'; }
    void problem(std::size_t line, std::size_t column, std::string what, std::string fix, bool is_error) {
        found_.problems.push_back({line, column, std::move(what), std::move(fix), is_error});
    }

    /// What a message shows of an expression, however long it is: whole characters, 60 bytes at most.
    [[nodiscard]] static std::string cut(std::string_view text) {
        if (text.size() <= 60) return std::string{text};
        std::size_t end = 57;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
        return std::string{text.substr(0, end)} + "...";
    }

    /// What a name is at this line; empty where nobody set it.
    [[nodiscard]] std::string value_of(const std::string& name) {
        const auto& all = found_.assignments;
        const auto set = std::find_if(all.rbegin(), all.rend(), [&](const auto& one) { return one.name == name; });
        variables_.push_back(name);
        if (set != all.rend()) return set->value;
        if (const auto outside = environment_(name)) return *outside;
        if (is_read())
            problem(line_, column_, "'" + name + "' is set by no line above",
                    "it is taken as empty, as a shell does; set it before this line", false);
        return {};
    }

    /// Appends what `$...` at the place stands for.
    void expand(Word& word) {
        const std::size_t line = line_;
        const std::size_t column = column_;
        next();  // $
        if (peek() == '(') {
            const bool is_sum = peek(1) == '(';
            const std::size_t begin = at_;
            int open = 0;
            do {
                open += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
                next();
            } while (at_ < text_.size() && open > 0);
            const std::string_view inside = text_.substr(begin, at_ - begin);
            if (is_sum && inside.size() >= 4 && inside.ends_with("))")) {
                const ShellArithmetic::Lookup lookup = [this](const std::string& name) { return value_of(name); };
                const auto sum = ShellArithmetic{inside.substr(2, inside.size() - 4), lookup}.value();
                if (sum) {
                    word.value += std::to_string(*sum);
                    return;
                }
                problem(line, column, "'$" + cut(inside) + "' cannot be computed", "write the number", true);
            }
            word.value += "$" + std::string{inside};
            word.is_computed = true;
            return;
        }
        const bool in_braces = peek() == '{';
        if (in_braces) next();
        std::string name;
        while (at_ < text_.size() && is_name_part(peek())) {
            name += peek();
            next();
        }
        if (in_braces && !name.empty() && peek() == '}') {
            next();
        } else if (in_braces) {  // ${NAME:-default} and its kind
            const std::size_t begin = at_;
            while (!ends_statement() && peek() != '}') next();
            const std::string_view rest = text_.substr(begin, at_ - begin);
            if (at_ < text_.size() && peek() == '}') next();
            const bool has_default = rest.starts_with(":-") || rest.starts_with("-");
            const std::string set = has_default ? quiet_value_of(name) : "";
            if (!has_default)
                problem(line, column, "'${" + name + cut(rest) + "}' is more of a shell than is read here",
                        "write the value", true);
            else
                word.value += set.empty() ? std::string{rest.substr(rest.find('-') + 1)} : set;
            return;
        }
        word.value += name.empty() ? "$" : value_of(name);
    }
    [[nodiscard]] std::string quiet_value_of(const std::string& name) {
        const std::size_t before = found_.problems.size();
        std::string value = value_of(name);
        found_.problems.resize(before);
        return value;
    }

    /// A word with its quotes taken off and its expansions made. Quotes may hold line ends.
    [[nodiscard]] Word word() {
        Word word;
        word.line = line_;
        word.column = column_;
        char quote = '\0';
        for (; at_ < text_.size();) {
            const char c = peek();
            if (quote == '\0' && (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';')) break;
            if (c == quote) {
                quote = '\0';
                next();
            } else if (quote == '\0' && (c == '\'' || c == '"')) {
                quote = c;
                word.is_quoted = true;
                next();
            } else if (c == '$' && quote != '\'') {
                expand(word);
            } else if (c == '\\' && quote != '\'') {
                next();
                const bool is_escape =
                    quote == '\0' || std::string_view{"\"\\$`\n"}.find(peek()) != std::string_view::npos;
                if (!is_escape) word.value += '\\';
                if (at_ < text_.size() && peek() != '\n') word.value += peek();
                if (at_ < text_.size()) next();
            } else {
                word.is_computed |= c == '`' && quote != '\'';
                word.value += c;
                next();
            }
        }
        if (quote != '\0')
            problem(word.line, word.column, std::string{"a quote "} + quote + " that nothing closes", "close it", true);
        return word;
    }

    /// `[[ "$A" == "b" ]]`: nullopt for one that is not understood.
    [[nodiscard]] std::optional<bool> condition() {
        std::vector<Word> words;
        for (skip_blanks(); !ends_statement(); skip_blanks()) words.push_back(word());
        const auto is = [&](std::size_t i, std::string_view text) {
            return i < words.size() && words[i].value == text;
        };
        if (words.size() < 3 ||
            !((is(0, "[[") && is(words.size() - 1, "]]")) || (is(0, "[") && is(words.size() - 1, "]"))))
            return std::nullopt;
        if (words.size() == 4 && (is(1, "-n") || is(1, "-z"))) return words[2].value.empty() == is(1, "-z");
        if (words.size() == 3) return !words[1].value.empty();
        if (words.size() != 5) return std::nullopt;
        if (is(2, "==") || is(2, "=") || is(2, "-eq")) return words[1].value == words[3].value;
        if (is(2, "!=") || is(2, "-ne")) return words[1].value != words[3].value;
        return std::nullopt;
    }

    void begin_branch(std::size_t line, bool is_elif) {
        const auto holds = condition();
        if (!holds)
            problem(line, 1, "a condition that is more of a shell than is read here",
                    "write [[ \"$NAME\" == \"value\" ]], or set the names without `if`", true);
        if (!is_elif) branches_.push_back({line, false, false, !is_read()});
        Branch& branch = branches_.back();
        branch.was_taken |= branch.is_taken;
        branch.is_taken = !branch.is_outside && !branch.was_taken && holds.value_or(false);
    }

    void statement() {
        skip_blanks();
        if (ends_statement()) {
            if (at_ < text_.size()) next();
            return;
        }
        if (peek() == '#') return skip_line();
        const std::size_t line = line_;
        const std::size_t column = column_;
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_name_part(peek())) next();
        std::string name{text_.substr(begin, at_ - begin)};
        if (name == "then" || name == "export" || name == "declare" || name == "set" || name == "local") {
            if (peek() == ' ' || peek() == '\t' || ends_statement()) {
                if (name != "set") return;  // what follows is a statement, or a name alone
                return skip_line();
            }
        }
        if (name == "if" || name == "elif") {
            if (name == "elif" && branches_.empty()) return stray(line, column, name);
            return begin_branch(line, name == "elif");
        }
        if (name == "else" || name == "fi") {
            if (branches_.empty()) return stray(line, column, name);
            Branch& branch = branches_.back();
            branch.was_taken |= branch.is_taken;
            branch.is_taken = !branch.is_outside && !branch.was_taken;
            if (name == "fi") branches_.pop_back();
            return;
        }
        const bool appends = peek() == '+' && peek(1) == '=';
        if (!name.empty() && (peek() == '=' || appends)) {
            if (appends) next();
            next();
            return assign(std::move(name), line, appends);
        }
        if (!name.empty() && ends_statement()) return;  // export NAME
        at_ = begin;
        command(line, column);
    }
    void stray(std::size_t line, std::size_t column, const std::string& name) {
        problem(line, column, "`" + name + "` without an `if` above", "remove it", true);
    }
    void command(std::size_t line, std::size_t column) {
        const std::size_t begin = at_;
        while (at_ < text_.size() && peek() != '\n') next();
        std::string shown{text_.substr(begin, std::min<std::size_t>(at_ - begin, 40))};
        if (is_read())
            problem(line, column, "'" + shown + "' is a command, and strata runs none",
                    "nothing is done for it; settings are lines NAME=value", false);
    }
    void assign(std::string name, std::size_t line, bool appends) {
        Word value = word();
        if (!is_read()) return;
        auto& all = found_.assignments;
        const auto before = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
        if (appends && before != all.end() && !before->value.empty()) {
            value.value = before->value + (value.value.starts_with(' ') ? "" : " ") + value.value;
            value.is_computed |= before->is_computed;
        }
        if (before != all.end()) all.erase(before);
        all.push_back({std::move(name), std::move(value.value), line, value.column, value.is_computed, false});
        skip_blanks();
        if (at_ < text_.size() && peek() == '#') skip_line();
    }

    std::string_view text_;
    const Environment& environment_;
    std::size_t at_ = 0, line_ = 1, column_ = 1;
    std::vector<Branch> branches_;
    std::vector<std::string> variables_;
    EnvFile found_;
};

}  // namespace detail

STRATA_INLINE EnvFile read_env_file(std::string_view text, const Environment& environment) {
    return detail::EnvReader{text, environment}.read();
}

}  // namespace strata::config
