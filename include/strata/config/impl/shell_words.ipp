#pragma once
// strata/config/impl/shell_words.ipp - the commands of a shell script as words with places; nothing is run.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/config/document.hpp>
#include <strata/config/impl/shell_arithmetic.ipp>
#include <strata/core/environment.hpp>

namespace strata::config::detail {

/// A word of a command, without its quotes.
struct ShellWord {
    std::string text;      ///< variables that are known replaced by their values
    Mark mark;             ///< none: it stands in no file
    bool is_open = false;  ///< holds what only a shell that runs knows: `$RANK`, `$(hostname)`; kept as it is written
};
using ShellCommand = std::vector<ShellWord>;

/// One pass over a script. Commands end at line ends, `;`, `&` and `|`; a text in quotes that has commands in it, as in
/// `bash -c "..."` and `CMD="..."`, is read as a script of its own as well.
class ShellReader {
public:
    ///   variables  what `$NAME` stands for; nothing: it is left open
    ShellReader(std::string_view text, const Environment& variables, Mark begin = {1, 1})
        : text_{text}, variables_{variables}, at_mark_{begin} {}

    [[nodiscard]] std::vector<ShellCommand> read() {
        while (at_ < text_.size()) step();
        end_command();
        return std::move(commands_);
    }

private:
    [[nodiscard]] char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    void next() {
        if (peek() == '\n') {
            ++at_mark_.line;
            at_mark_.column = 1;
        } else if ((static_cast<unsigned char>(peek()) & 0xC0U) != 0x80U) {
            ++at_mark_.column;
        }
        ++at_;
    }
    void end_command() {
        if (!command_.empty()) commands_.push_back(std::exchange(command_, {}));
    }
    void step() {
        const char c = peek();
        if (c == '\\' && (peek(1) == '\n' || peek(1) == '\r')) {
            next();
            while (peek() == '\r') next();
            if (peek() == '\n') next();
        } else if (c == ' ' || c == '\t' || c == '\r') {
            next();
        } else if (c == '#') {
            while (at_ < text_.size() && peek() != '\n') next();
        } else if (c == '\n' || c == ';' || c == '|' || c == '(' || c == ')' || c == '{' || c == '}') {
            end_command();
            next();
        } else if (c == '&' && peek(1) != '>') {
            end_command();
            next();
        } else if (c == '<' && peek(1) == '<' && peek(2) != '<') {
            skip_document();
        } else if (c == '>' || c == '<' || c == '&') {  // where to: no word of the program's
            while (peek() == '>' || peek() == '<' || peek() == '&') next();
            while (peek() == ' ' || peek() == '\t') next();
            (void)word();
        } else {
            const std::size_t before = at_;
            ShellWord one = word();
            if (at_ == before) return next();
            const bool is_descriptor = one.text.size() == 1 && std::isdigit(static_cast<unsigned char>(one.text[0])) &&
                                       (peek() == '>' || peek() == '<');
            if (!is_descriptor) command_.push_back(std::move(one));
        }
    }
    /// `<<EOF` up to the line EOF: another program's input.
    void skip_document() {
        while (peek() == '<' || peek() == '-' || peek() == ' ') next();
        const std::string end = word().text;
        while (at_ < text_.size() && peek() != '\n') next();
        while (at_ < text_.size()) {
            next();
            const std::size_t line_end = std::min(text_.find('\n', at_), text_.size());
            std::string_view line = text_.substr(at_, line_end - at_);
            while (line.starts_with('\t')) line.remove_prefix(1);
            while (line.ends_with('\r')) line.remove_suffix(1);
            while (at_ < line_end) next();
            if (line == end) return;
        }
    }
    [[nodiscard]] static bool ends_word(char c) {
        return c == '\0' || std::string_view{" \t\r\n;&|()<>"}.find(c) != std::string_view::npos;
    }
    [[nodiscard]] ShellWord word() {
        ShellWord one;
        one.mark = at_mark_;
        while (at_ < text_.size()) {
            const char c = peek();
            if (c == '\'' || c == '"') {
                quoted(one);
            } else if (c == '$' || c == '`') {
                expand(one);
            } else if (c == '\\') {
                if (peek(1) == '\n' || peek(1) == '\r') break;
                next();
                if (at_ < text_.size()) take(one);
            } else if (ends_word(c)) {
                break;
            } else {
                take(one);
            }
        }
        return one;
    }
    void take(ShellWord& to) {
        to.text += peek();
        next();
    }
    void quoted(ShellWord& to) {
        const char quote = peek();
        next();
        const std::size_t begin = at_;
        const Mark mark = at_mark_;
        while (at_ < text_.size() && peek() != quote) {
            if (quote == '"' && peek() == '\\' && at_ + 1 < text_.size()) {
                next();
                take(to);
            } else if (quote == '"' && (peek() == '$' || peek() == '`')) {
                expand(to);
            } else {
                take(to);
            }
        }
        const std::string_view inside = text_.substr(begin, at_ - begin);
        if (at_ < text_.size()) next();
        if (depth_ < 4 && inside.find_first_of(" \t\n") != std::string_view::npos) {
            ShellReader inner{inside, variables_, mark};
            inner.depth_ = depth_ + 1;
            for (ShellCommand& command : inner.read()) commands_.push_back(std::move(command));
        }
    }
    /// `$NAME`, `${NAME}`, `${NAME:-other}`; everything else stays as it is written.
    void expand(ShellWord& to) {
        const std::size_t begin = at_;
        if (peek() == '`') {
            next();
            while (at_ < text_.size() && peek() != '`') next();
            if (at_ < text_.size()) next();
            return leave(to, begin);
        }
        next();
        if (peek() == '(') {
            int open = 0;
            do {
                open += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
                next();
            } while (at_ < text_.size() && open > 0);
            return leave(to, begin);
        }
        const bool in_braces = peek() == '{';
        if (in_braces) next();
        const std::size_t name_begin = at_;
        while (at_ < text_.size() && is_name_part(peek())) next();
        const std::string name{text_.substr(name_begin, at_ - name_begin)};
        const std::size_t rest_begin = at_;
        if (in_braces) {
            while (at_ < text_.size() && peek() != '}' && peek() != '\n') next();
            if (peek() == '}') next();
        }
        const auto value = name.empty() ? std::nullopt : variables_(name);
        std::string_view rest = text_.substr(rest_begin, at_ - rest_begin);
        if (rest.ends_with('}')) rest.remove_suffix(1);
        const bool has_other = rest.starts_with(":-") || rest.starts_with("-");
        const bool is_known = value && !(value->empty() && rest.starts_with(":-"));
        if (is_known && (rest.empty() || has_other))
            to.text += *value;
        else if (has_other && rest.find('$') == std::string_view::npos)
            to.text += rest.substr(rest.find('-') + 1);
        else
            leave(to, begin);
    }
    void leave(ShellWord& to, std::size_t begin) {
        to.text += text_.substr(begin, at_ - begin);
        to.is_open = true;
    }

    std::string_view text_;
    const Environment& variables_;
    std::size_t at_ = 0;
    Mark at_mark_;
    int depth_ = 0;
    ShellCommand command_;
    std::vector<ShellCommand> commands_;
};

}  // namespace strata::config::detail
