#pragma once
// strata/config/impl/document_json.ipp - JSON, with the line and the column of every value, or one sentence.

#include <algorithm>
#include <cctype>
#include <utility>

#include <strata/config/document.hpp>
#include <strata/config/impl/document_json_tokens.ipp>
#include <strata/config/impl/text_checks.ipp>
#include <strata/core/error.hpp>
#include <strata/core/printable.hpp>

namespace strata::config {

namespace detail {

/// A reader of JSON (RFC 8259) that knows where it is, and what people write instead.
class JsonReader : JsonCursor {
public:
    JsonReader(std::string_view text, std::string source, JsonDialect dialect)
        : JsonCursor{text}, source_{source}, relaxed_{dialect == JsonDialect::relaxed}, builder_{std::move(source)} {}

    Document read() {
        try {
            skip_blank();
            value();
            skip_blank();
            if (!at_end()) fail_behind_the_end();
        } catch (const JsonFault& fault) {
            if (placeholders_.empty()) refuse(fault);
            refuse_template();  // what follows from them is not to be told first
        }
        if (!placeholders_.empty()) refuse_template();
        Document document = builder_.finish();
        const auto note = [&](std::size_t count, Mark first, const std::string& what) {
            if (count > 0)
                document.remarks.push_back({first, "", false, std::to_string(count) + " " + what + ", passed over",
                                            "remove what other readers of JSON refuse"});
        };
        note(comments_, comment_,
             comments_ == 1 ? "comment, which JSON does not have" : "comments, which JSON does not have");
        note(commas_, comma_,
             commas_ == 1 ? "comma in front of a closing bracket" : "commas in front of closing brackets");
        return document;
    }

private:
    [[noreturn]] void refuse(const JsonFault& fault) const {
        const std::string pointer = builder_.depth() == 0 ? "" : builder_.pointer();
        throw Error{Errc::unreadable_config,
                    source_ + ":" + std::to_string(fault.mark.line) + ":" + std::to_string(fault.mark.column) +
                        ": is no JSON: " + fault.what + (pointer.empty() ? "" : ", at " + pointer),
                    fault.fix};
    }
    [[noreturn]] void refuse_template() const {
        constexpr std::size_t shown = 12;
        std::string all;
        for (std::size_t i = 0; i < std::min(shown, placeholders_.size()); ++i) {
            const auto& [where, word] = placeholders_[i];
            all += (all.empty() ? "`" : ", `") + word + "` at " + std::to_string(where.line) + ":" +
                   std::to_string(where.column);
        }
        if (placeholders_.size() > shown) all += " and " + std::to_string(placeholders_.size() - shown) + " more";
        const Mark first = placeholders_.front().first;
        throw Error{Errc::unreadable_config,
                    source_ + ":" + std::to_string(first.line) + ":" + std::to_string(first.column) +
                        ": is a template, and no JSON before a script has filled in " + all,
                    "write values in their place, or give the file that the script writes"};
    }
    [[noreturn]] void fail_behind_the_end() const {
        if (peek() == '{' || peek() == '[')
            fail("another value begins after the first one has ended", "keep one configuration in the file");
        fail("something follows after the value has ended", "remove it, or look for a bracket too many before it");
    }

    void skip_blank() {
        for (;;) {
            const char c = peek();
            if (!at_end() && (c == ' ' || c == '\t' || c == '\r' || c == '\n')) {
                take();
            } else if (c == '#' || looking_at("//")) {
                note_comment();
                take(up_to("\n").size());
            } else if (looking_at("/*")) {
                note_comment();
                if (!take_beyond("*/", 2)) fail("a comment does not end", "close it with */, or remove it");
            } else {
                return;
            }
        }
    }
    void note_comment() {
        if (!relaxed_) fail("a comment, which JSON does not have", "remove it");
        if (comments_++ == 0) comment_ = mark();
    }

    void value() {
        const Mark begin = mark();
        if (at_end()) fail("the text ends where a value is to stand", "look for what is missing at the end");
        if (is_directive()) return placeholder();
        if (peek() == '{') return object();
        if (peek() == '[') return list();
        if (peek() == '"') return builder_.scalar(NodeKind::text, string(), begin);
        if ((peek() == '-' && peek(1) != 'I') || std::isdigit(static_cast<unsigned char>(peek())) != 0)
            return builder_.scalar(NodeKind::number, digits_of_number(), begin);
        word();
    }
    void object() {
        builder_.begin_object(mark());
        take();
        skip_blank();
        if (peek() == '}') return close();
        do {
            if (peek() != '"') fail_key();
            const Mark begin = mark();
            builder_.key(string(), begin);
            skip_blank();
            if (peek() != ':') fail("a colon is missing after a key", "write \"key\": value");
            take();
            skip_blank();
            value();
        } while (more('}'));
    }
    void list() {
        builder_.begin_list(mark());
        take();
        skip_blank();
        if (peek() == ']') return close();
        do value();
        while (more(']'));
    }
    void close() {
        take();
        builder_.end();
    }
    /// After a value: a comma and another one (true), or the end.
    bool more(char closing) {
        skip_blank();
        if (peek() == closing) {
            close();
            return false;
        }
        if (at_end()) fail("the text ends inside of an object or a list", "close what is open");
        if (is_directive() || peek() == '$') fail_at_placeholder();
        const std::string bracket{closing};
        if (peek() != ',')
            fail("a comma or `" + bracket + "` is missing", "look for a comma, a quote or a bracket before it");
        const Mark comma = mark();
        take();
        skip_blank();
        if (peek() != closing) return true;
        if (!relaxed_) fail(comma, "a comma stands in front of `" + bracket + "`", "remove the comma");
        if (commas_++ == 0) comma_ = comma;
        close();
        return false;
    }
    [[noreturn]] void fail_key() {
        if (is_directive() || peek() == '$') fail_at_placeholder();
        if (at_end()) fail("the text ends inside of an object", "close what is open");
        if (peek() == ',') fail("two commas follow each other", "remove one");
        if (peek() == '\'') fail("a key in single quotes", "write it in double quotes");
        fail("a key without double quotes", "write \"key\": value");
    }

    /// true, false, null, or something that JSON does not have.
    void word() {
        const Mark begin = mark();
        const std::string found = shown_word();
        if (found == "true" || found == "false" || found == "null" ||
            (relaxed_ && (found == "Infinity" || found == "-Infinity"))) {
            take(found.size());
            return builder_.scalar(found == "null"                       ? NodeKind::null
                                   : found == "true" || found == "false" ? NodeKind::flag
                                                                         : NodeKind::number,
                                   found, begin);
        }
        if (found == "True" || found == "False") fail("`" + found + "` is Python's word", "write true or false");
        if (found == "None") fail("`None` is Python's word", "write null");
        if (peek() == '\'') fail("a text in single quotes", "write it in double quotes");
        if (std::string_view{",:]}"}.find(peek()) != std::string_view::npos)
            fail("a value is missing", "write one there, or remove its key");
        const bool is_name = std::none_of(found.begin(), found.end(), [](char c) { return c >= 'a' && c <= 'z'; }) &&
                             std::any_of(found.begin(), found.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
        if (is_name || is_directive() || peek() == '$' || peek() == '<' || found.find("CONFIG_") == 0)
            return placeholder();
        fail("`" + found + "` is no value of JSON's", "write text in double quotes, and numbers in digits");
    }

    [[nodiscard]] bool is_directive() const { return looking_at("{{") || looking_at("{%") || looking_at("<%"); }
    /// `{{ stage }}`, `$STAGE`, `${STAGE}`, `<stage>`, STAGE: all of it.
    [[nodiscard]] std::string directive() const {
        using Pair = std::pair<std::string_view, std::string_view>;
        for (const auto& [open, shut] :
             {Pair{"{{", "}}"}, Pair{"{%", "%}"}, Pair{"<%", "%>"}, Pair{"${", "}"}, Pair{"$(", ")"}, Pair{"<", ">"}})
            if (looking_at(open)) return std::string{up_to_closing(shut)};
        return std::string{up_to(" \t\r\n,]}#")};
    }
    /// Goes on as if a value stood there, so that all placeholders are named.
    void placeholder() {
        const std::string word = directive();
        placeholders_.emplace_back(mark(), core::printable(word.substr(0, 60)));
        builder_.scalar(NodeKind::null, "null", mark());
        take(word.size());
    }
    [[noreturn]] void fail_at_placeholder() {
        placeholders_.emplace_back(mark(), core::printable(directive().substr(0, 60)));
        fail("a placeholder", "");
    }

    std::string source_;
    bool relaxed_;
    DocumentBuilder builder_;
    std::vector<std::pair<Mark, std::string>> placeholders_;
    std::size_t comments_ = 0;
    Mark comment_;
    std::size_t commas_ = 0;
    Mark comma_;
};

}  // namespace detail

STRATA_INLINE Document parse_json(std::string_view text, std::string source, JsonDialect dialect) {
    text = detail::checked_text(text, source);
    return detail::JsonReader{text, std::move(source), dialect}.read();
}

}  // namespace strata::config
