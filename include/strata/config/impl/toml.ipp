#pragma once
// strata/config/impl/toml.ipp - a tree of toml++ as a Document.

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>
#include <vector>

#include <toml++/toml.h>

#include <strata/config/toml.hpp>
#include <strata/core/error.hpp>

namespace strata::config {

namespace detail {

inline Mark mark_of(const toml::source_region& region) {
    return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

inline bool stands_before(const Mark& a, const Mark& b) {
    return a.line != b.line ? a.line < b.line : a.column < b.column;
}

/// Walks a tree of toml++, whose tables are sorted by name, in the order of the text.
class TomlWalk {
public:
    explicit TomlWalk(DocumentBuilder& builder) : builder_{builder} {}

    void value(const toml::node& node) {
        const Mark mark = mark_of(node.source());
        if (const toml::table* const table = node.as_table()) {
            builder_.begin_object(mark);
            members(*table);
            builder_.end();
        } else if (const toml::array* const array = node.as_array()) {
            builder_.begin_list(mark);
            for (const toml::node& element : *array) value(element);
            builder_.end();
        } else if (const auto* const text = node.as_string()) {
            builder_.scalar(NodeKind::text, text->get(), mark);
        } else if (const auto* const whole = node.as_integer()) {
            builder_.scalar(NodeKind::number, std::to_string(whole->get()), mark);
        } else if (const auto* const real = node.as_floating_point()) {
            builder_.scalar(NodeKind::number, shortest(real->get()), mark);
        } else if (const auto* const flag = node.as_boolean()) {
            builder_.scalar(NodeKind::flag, flag->get() ? "true" : "false", mark);
        } else {
            builder_.scalar(NodeKind::text, written(node), mark);
        }
    }

private:
    void members(const toml::table& table) {
        struct Entry {
            const toml::key* key;
            const toml::node* node;
        };
        std::vector<Entry> entries;
        for (const auto& [key, node] : table) entries.push_back({&key, &node});
        std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
            return stands_before(mark_of(a.key->source()), mark_of(b.key->source()));
        });
        for (const Entry& entry : entries) {
            builder_.key(std::string{entry.key->str()}, mark_of(entry.key->source()));
            value(*entry.node);
        }
    }
    /// As JSON and YAML would have it: 1e-04, and inf as text-like numbers that no range takes.
    static std::string shortest(double number) {
        char buffer[32];
        return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
    }
    /// A date or a time, as TOML writes it.
    static std::string written(const toml::node& node) {
        std::ostringstream out;
        node.visit([&out](const auto& one) {
            if constexpr (toml::is_value<decltype(one)>) out << one.get();
        });
        return out.str();
    }

    DocumentBuilder& builder_;
};

}  // namespace detail

STRATA_INLINE Document parse_toml(std::string_view text, std::string source) {
    DocumentBuilder builder{source};
    try {
        const toml::table table = toml::parse(text, std::string_view{source});
        detail::TomlWalk{builder}.value(table);
    } catch (const toml::parse_error& problem) {
        const Mark mark = detail::mark_of(problem.source());
        throw Error{
            Errc::unreadable_config,
            source + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column) + ": is no TOML: syntax error",
            "look for a missing quote or bracket, a value without quotes, or a key that stands twice there"};
    }
    return builder.finish();
}

}  // namespace strata::config
