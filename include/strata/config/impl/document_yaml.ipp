#pragma once
// strata/config/impl/document_yaml.ipp - YAML, by the events of yaml-cpp, which know lines and columns.

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <strata/config/document.hpp>
#include <strata/config/impl/document.ipp>
#include <strata/config/impl/text_checks.ipp>
#include <strata/core/error.hpp>
#include <strata/core/text.hpp>

namespace strata::config {

namespace detail {

/// Turns what yaml-cpp meets into calls of a builder. A map's keys come as scalars like any other, so it counts.
class YamlEvents : public YAML::EventHandler {
public:
    explicit YamlEvents(std::string source)
        : source_{source}, builder_{std::move(source), DocumentBuilder::Twice::warn_where_same} {}

    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        if (is_key(mark, "")) return;
        no_merge(mark);
        builder_.scalar(NodeKind::null, "null", of(mark));
        ended(anchor);
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        if (is_key(mark, value)) return;
        no_merge(mark);
        if (value.find('\0') != std::string::npos) refuse(mark, "a text with the character \\0", "write it without");
        if (tag == "?" || tag.empty())
            builder_.plain(value, of(mark));
        else if (tag == "tag:yaml.org,2002:int" || tag == "tag:yaml.org,2002:float" || tag == "tag:yaml.org,2002:bool")
            builder_.plain(value, of(mark));
        else  // in quotes, or said to be text
            builder_.scalar(NodeKind::text, value, of(mark));
        ended(anchor);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end()) refuse(mark, "an alias inside of what it stands for", "write the value out");
        if (!levels_.empty() && levels_.back().is_map && !levels_.back().has_key)
            refuse(mark, "an alias as a key", "write the key out");
        if (!levels_.empty() && levels_.back().merges) {
            levels_.back().merges = levels_.back().has_key = false;
            if (!found->second.is(NodeKind::object))
                refuse(mark, "`<<` takes in what is no map", "name a map behind it");
            builder_.merge(found->second);
            return;
        }
        builder_.copy(found->second, of(mark));
        ended(0);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        no_key(mark);
        builder_.begin_list(of(mark));
        levels_.push_back({false, false, false, anchor});
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        no_key(mark);
        builder_.begin_object(of(mark));
        levels_.push_back({true, false, false, anchor});
    }
    void OnMapEnd() override { close(); }

    [[nodiscard]] Document finish() { return builder_.finish(); }

private:
    struct Level {
        bool is_map;
        bool has_key;  ///< what comes next is a value
        bool merges;   ///< of the key `<<`
        YAML::anchor_t anchor;
    };
    static Mark of(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }
    [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what, std::string_view fix) const {
        throw Error{Errc::unreadable_config,
                    source_ + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1) +
                        ": is no YAML that can be read: " + what,
                    fix};
    }
    /// Takes a scalar as the key that the open map waits for.
    bool is_key(const YAML::Mark& mark, const std::string& value) {
        if (levels_.empty() || !levels_.back().is_map || levels_.back().has_key) return false;
        levels_.back().has_key = true;
        levels_.back().merges = value == "<<";
        if (!levels_.back().merges) builder_.key(value, of(mark));
        return true;
    }
    void no_key(const YAML::Mark& mark) const {
        if (levels_.empty()) return;
        if (levels_.back().is_map && !levels_.back().has_key)
            refuse(mark, "a map or a list as a key",
                   "write text in front of the colon; is a text with {{ }} meant? "
                   "Then put it in quotes");
        no_merge(mark);
    }
    void no_merge(const YAML::Mark& mark) const {
        if (!levels_.empty() && levels_.back().merges)
            refuse(mark, "`<<` without an alias of a map behind it", "write it as <<: *name");
    }
    void close() {
        const YAML::anchor_t anchor = levels_.back().anchor;
        levels_.pop_back();
        builder_.end();
        ended(anchor);
    }
    /// After a value: the open map waits for a key again.
    void ended(YAML::anchor_t anchor) {
        if (anchor != 0) anchors_.insert_or_assign(anchor, builder_.last());
        if (!levels_.empty()) levels_.back().has_key = levels_.back().merges = false;
    }

    std::string source_;
    DocumentBuilder builder_;
    std::vector<Level> levels_;
    std::map<YAML::anchor_t, Node> anchors_;
};

/// What is commonly wrong in the line where yaml-cpp gave up, and otherwise where to look.
inline std::pair<std::string, std::string> yaml_fault(std::string_view text, int line) {
    std::size_t begin = 0;
    for (int i = 0; i < line && begin < text.size(); ++i) begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view all = text.substr(std::min(begin, text.size()));
    const std::string_view found = core::first_line(all);
    const std::string_view indent = found.substr(0, std::min(found.find_first_not_of(" \t"), found.size()));
    if (indent.find('\t') != std::string_view::npos) return {"a tab stands in front of the line", "indent with blanks"};
    if (found.find("{{") != std::string_view::npos || found.find("{%") != std::string_view::npos)
        return {"the file is a template", "give the file that it becomes"};
    return {"syntax error", "look at the indentation, colons, quotes and brackets there and on the line above"};
}

}  // namespace detail

STRATA_INLINE Document parse_yaml(std::string_view text, std::string source) {
    text = detail::checked_text(text, source);
    const auto refuse = [&](const YAML::Mark& mark, const std::string& what, std::string_view fix) {
        throw Error{Errc::unreadable_config,
                    source + ":" + std::to_string(std::max(mark.line, 0) + 1) + ":" +
                        std::to_string(std::max(mark.column, 0) + 1) + ": is no YAML: " + what,
                    fix};
    };
    std::istringstream stream{std::string{text}};
    detail::YamlEvents events{source};
    bool found = false;
    try {
        YAML::Parser parser{stream};
        found = parser.HandleNextDocument(events);
        detail::YamlEvents more{source};
        if (found && parser.HandleNextDocument(more))
            throw Error{Errc::unreadable_config, source + " holds more than one YAML document",
                        "keep one of them, up to the line ---"};
    } catch (const YAML::Exception& problem) {
        const auto [what, fix] = detail::yaml_fault(text, problem.mark.line);
        refuse(problem.mark, what, fix);
    }
    if (!found) throw Error{Errc::unreadable_config, source + " holds comments only", "write a configuration into it"};
    return events.finish();
}

}  // namespace strata::config
