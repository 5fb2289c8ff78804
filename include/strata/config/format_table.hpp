#pragma once
// strata/config/format_table.hpp - FormatTable: every key of a format, what it may be, and what strata does with it.
//
// One table a format drives reading (config/reading.hpp), did-you-mean, what `strata config explain` prints, the JSON
// Schema for editors, and the page in docs/config/.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <strata/config/findings.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/ranges.hpp>

namespace strata::config {

enum class ValueKind : std::uint8_t { flag, whole, number, text, choice, list, object, any };

/// One key. Words are Markdown without a full stop at the end.
struct KeyRow {
    std::string path;  ///< "zero_optimization.offload_param.device"; a last part `*` stands for any name
    ValueKind kind = ValueKind::any;
    std::string meaning;   ///< to the format's own program; empty: its name says it
    std::string fallback;  ///< the default there, as a person would write it; empty: none
    Range range{};
    std::vector<std::string> choices;
    bool any_case = false;     ///< a choice in capitals is the same
    bool can_be_auto = false;  ///< "auto" leaves it to who runs the configuration
    bool can_be_flag = false;  ///< true or false in place of an object or a text
    bool can_be_list = false;  ///< a list in place of one value
    std::string renamed;       ///< this is the old name of the key with that path
    Effect effect = Effect::none;
    bool is_option = false;  ///< acts: its value goes to the option `to` as it is
    std::string to;          ///< acts and mapped: an option of strata's, or a policy
    std::string why;         ///< mapped and none: what strata does, or why nothing; empty: as the object around it
    bool warns = false;      ///< a value that asks for something is a warning
    /// Of an object: a key that the table lacks is refused. Otherwise it is refused where it is nearly one of the others, and a
    /// warning where it is like none.
    bool strict = false;
    std::string variable;  ///< the environment variable that goes before it
    std::string flag;      ///< the command line's name for it, without dashes; empty: the last part of the path

    [[nodiscard]] std::string_view name() const noexcept;    ///< the last part of the path
    [[nodiscard]] std::string_view parent() const noexcept;  ///< the path without it; "" at the top

    // What a table is written with: t.flag("overlap_comm", "...").option("engine.overlap").
    KeyRow& option(std::string path);                     ///< acts: the value becomes that option
    KeyRow& acts(std::string what);                       ///< acts: reader's code makes it that
    KeyRow& mapped(std::string what, std::string words);  ///< mapped: by reader's code
    KeyRow& none(std::string words);
    KeyRow& none_and_warns(std::string words);
    KeyRow& or_auto();
    KeyRow& or_flag();
    KeyRow& or_list();
    KeyRow& in_any_case();
    KeyRow& within(Range allowed);
    KeyRow& by_default(std::string value);
    KeyRow& old_name_of(std::string newer);
    KeyRow& no_others();  ///< strict
    KeyRow& from(std::string environment_variable);
    KeyRow& flagged(std::string name);
};

/// The keys of a format, in the order of its documentation. An object stands before what is in it.
class FormatTable {
public:
    /// Keys below a path.
    class Rows {
    public:
        Rows(FormatTable& table, std::string prefix) : table_{&table}, prefix_{std::move(prefix)} {}
        KeyRow& flag(std::string key, std::string meaning = {}) {
            return add(std::move(key), ValueKind::flag, std::move(meaning));
        }
        KeyRow& whole(std::string key, std::string meaning = {}) {
            return add(std::move(key), ValueKind::whole, std::move(meaning));
        }
        KeyRow& number(std::string key, std::string meaning = {}) {
            return add(std::move(key), ValueKind::number, std::move(meaning));
        }
        KeyRow& text(std::string key, std::string meaning = {}) {
            return add(std::move(key), ValueKind::text, std::move(meaning));
        }
        KeyRow& list(std::string key, std::string meaning = {}) {
            return add(std::move(key), ValueKind::list, std::move(meaning));
        }
        KeyRow& any(std::string key, std::string meaning = {}) {
            return add(std::move(key), ValueKind::any, std::move(meaning));
        }
        KeyRow& choice(std::string key, std::vector<std::string> choices, std::string meaning = {});
        /// An object whose keys are added through the result of in().
        KeyRow& object(std::string key, std::string meaning = {}) {
            return add(std::move(key), ValueKind::object, std::move(meaning));
        }
        [[nodiscard]] Rows in(const std::string& key) const { return Rows{*table_, prefix_ + key + "."}; }

    private:
        KeyRow& add(std::string key, ValueKind kind, std::string meaning);
        FormatTable* table_;
        std::string prefix_;
    };

    /// What messages and pages call it ("DeepSpeed"), and the page itself.
    FormatTable(std::string name, std::string page) : name_{std::move(name)}, page_{std::move(page)} {}

    [[nodiscard]] Rows top() { return Rows{*this, ""}; }
    /// Of the top level: as KeyRow::strict.
    FormatTable& no_others() {
        strict_ = true;
        return *this;
    }

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const std::string& page() const noexcept { return page_; }
    [[nodiscard]] const std::deque<KeyRow>& rows() const noexcept { return rows_; }
    /// The row of a path of a document, by `*` where no row has the name itself; nullptr: an unknown key.
    [[nodiscard]] const KeyRow* find(std::string_view path) const;
    /// Whether keys that are like none in the object at that path are refused.
    [[nodiscard]] bool is_strict(std::string_view path) const;
    /// The names of the keys in the object at that path, without `*`.
    [[nodiscard]] std::vector<std::string_view> names_in(std::string_view path) const;
    /// The rows elsewhere whose name is this, outside of objects with names of the user's.
    [[nodiscard]] std::vector<const KeyRow*> elsewhere(std::string_view name, std::string_view parent) const;
    /// What becomes of the key, in words: its own, or those of the nearest object around it.
    [[nodiscard]] std::string why(const KeyRow& row) const;

private:
    friend class Rows;
    std::string name_;
    std::string page_;
    bool strict_ = false;
    std::deque<KeyRow> rows_;  // whose elements stay where they are
    std::unordered_map<std::string, std::size_t> index_;
};

/// "a whole number from 0 to 3", "one of `none`, `cpu`, `nvme`; or `auto`".
[[nodiscard]] std::string expected(const KeyRow& row);

/// The tables of the reference page: a section an object of the top level.
[[nodiscard]] std::string markdown(const FormatTable& table);

/// A JSON Schema (2020-12) of the format, for editors.
[[nodiscard]] std::string json_schema(const FormatTable& table);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/format_schema.ipp>
#include <strata/config/impl/format_table.ipp>
#endif
