#pragma once
// strata/config/reading.hpp - Reading: a document held against the table of its format.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/document.hpp>
#include <strata/config/findings.hpp>
#include <strata/config/format_table.hpp>
#include <strata/config/intent.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// What the keys of a document say, once each has been looked at: known, of the right type, in its range. What is wrong is
/// in the findings; a key that is wrong counts as absent, so that rules about several keys go on.
///
/// A reader of a format asks for values by their paths and says what it made of them; finish() says of every other key
/// what the table has for it.
class Reading {
public:
    /// Looks at all keys of `root`, which is an object: else that is the one finding. All three outlive the reading.
    Reading(const Node& root, const FormatTable& table, Findings& findings);

    /// The value of a key that is given, valid, and neither null nor "auto"; nullptr otherwise. By its new name where the
    /// document has the old one.
    [[nodiscard]] const Node* at(std::string_view path) const;
    [[nodiscard]] bool is_auto(std::string_view path) const;
    [[nodiscard]] std::optional<bool> flag(std::string_view path) const;
    [[nodiscard]] std::optional<double> number(std::string_view path) const;
    [[nodiscard]] std::optional<std::int64_t> whole(std::string_view path) const;
    /// A choice in any case comes in small letters.
    [[nodiscard]] std::string text(std::string_view path) const;
    /// True: `flag` is true. False where it is absent.
    [[nodiscard]] bool is_on(std::string_view path) const { return flag(path).value_or(false); }
    [[nodiscard]] const Node& root() const noexcept { return *root_; }
    [[nodiscard]] Findings& findings() noexcept { return *findings_; }

    // As Findings has them, of a key that is given: nothing of one that is not. Each key is told once: the first word counts,
    // but a refusal always does.
    void acts(std::string_view path, std::string to, std::string words = {});
    void mapped(std::string_view path, std::string to, std::string words);
    void warn_mapped(std::string_view path, std::string to, std::string words, std::string fix = {});
    void none(std::string_view path, std::string words);
    void warn_none(std::string_view path, std::string words, std::string fix = {});
    void refuse(std::string_view path, Errc code, std::string what, std::string fix);
    /// Everything in an object: it has no effect, for this reason.
    void none_within(std::string_view path, const std::string& words);

    /// Says the rest by the table: options go into the intent, keys that say "auto" into its list. Findings of this reading
    /// are then in the order of the document.
    void finish(Intent& intent);

private:
    struct Given {
        const Node* node;
        const KeyRow* row;
        bool is_auto;
        const KeyRow* old;  ///< the row of the old name that it was given by, or nullptr
    };
    void look(const Node& object, const std::string& path);
    void look_at_unknown(const Node::Member& member, const std::string& parent);
    void look_at_value(const Node& node, const KeyRow& row, const std::string& path);
    [[nodiscard]] bool fits(const Node& node, const KeyRow& row);
    [[nodiscard]] const Given* given(std::string_view path) const;
    /// A key, the first time that somebody speaks of it; nullptr otherwise.
    [[nodiscard]] const Given* untold(std::string_view path);
    void tell(std::string_view path, Effect effect, bool warns, std::string to, std::string words, std::string fix);

    const Node* root_;
    const FormatTable* table_;
    Findings* findings_;
    std::size_t first_finding_;
    std::map<std::string, Given, std::less<>> given_;
    std::vector<std::string> order_;
    std::set<std::string, std::less<>> told_;
};

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/reading.ipp>
#endif
