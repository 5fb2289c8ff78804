#pragma once
// strata/config/document.hpp - a configuration as a tree whose values know where they stand, whatever format it was in.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::config {

/// Where something begins in a text: both counted from 1, columns in characters. 0: in no text, as a flag is.
struct Mark {
    int line = 0;
    int column = 0;
    friend bool operator==(const Mark&, const Mark&) = default;
};

enum class NodeKind : std::uint8_t { null, flag, number, text, list, object };

/// "null", "true or false", "a number", "text", "a list", "an object".
[[nodiscard]] std::string_view name_of(NodeKind kind) noexcept;

/// A value of a configuration, and everything in it.
///
/// A scalar keeps the text that it was written as: a number its digits, so that writing it back changes nothing.
class Node {
public:
    struct Member;

    [[nodiscard]] NodeKind kind() const noexcept { return kind_; }
    [[nodiscard]] bool is(NodeKind kind) const noexcept { return kind_ == kind; }
    /// Of a scalar: its text, without quotes and escapes.
    [[nodiscard]] const std::string& scalar() const noexcept { return scalar_; }
    [[nodiscard]] const std::vector<Node>& elements() const noexcept { return elements_; }
    [[nodiscard]] const std::vector<Member>& members() const noexcept { return members_; }
    /// The member of that name of an object; nullptr where there is none.
    [[nodiscard]] const Node* find(std::string_view key) const noexcept;
    /// What a path leads to: "zero_optimization.offload_param"; nullptr where there is nothing.
    [[nodiscard]] const Node* at(std::string_view path) const noexcept;

    /// True, false, and as text what YAML 1.1 calls so: yes, no, on, off.
    [[nodiscard]] std::optional<bool> flag() const;
    /// A number, or text that is one from its first character to its last; never NaN.
    [[nodiscard]] std::optional<double> number() const;
    /// number(), where it is whole: 5e8 is.
    [[nodiscard]] std::optional<std::int64_t> whole() const;

    [[nodiscard]] Mark mark() const noexcept { return mark_; }
    /// Of a file its name, else what a person gave the value with: "--zero_stage", "ACCELERATE_MIXED_PRECISION".
    [[nodiscard]] const std::string& source() const noexcept;
    /// RFC 6901: "/zero_optimization/offload_param"; of the root "".
    [[nodiscard]] const std::string& pointer() const noexcept { return pointer_; }
    /// The pointer as people write it: "zero_optimization.offload_param", "betas[0]"; of the root "".
    [[nodiscard]] std::string path() const;
    /// "ds_config.json:12:5", or the source alone where there is no text.
    [[nodiscard]] std::string place() const;
    /// The value as JSON, cut after 60 bytes.
    [[nodiscard]] std::string shown() const;

    /// The same value, wherever it stands and however its numbers are written.
    [[nodiscard]] bool same_as(const Node& other) const;

private:
    friend class DocumentBuilder;
    friend Node overlay(const Node& base, const Node& above);

    NodeKind kind_ = NodeKind::null;
    std::string scalar_;
    std::vector<Node> elements_;
    std::vector<Member> members_;
    Mark mark_;
    std::string pointer_;
    std::shared_ptr<const std::string> source_;
};

struct Node::Member {
    std::string key;
    Mark mark;  ///< of the key
    Node value;
};

/// What a reader of a format noticed: a key that stands twice, a comment where the format has none.
struct Remark {
    Mark mark;
    std::string pointer;
    bool refused = false;  ///< false: a warning
    std::string what;      ///< without a full stop
    std::string fix;
};

/// A whole configuration.
struct Document {
    std::string source;  ///< the file's name, or what the text came by
    Node root;
    std::vector<Remark> remarks;
};

/// Makes a Document, value by value, as a parser meets them. Every front door has its parser; the tree is made here, and
/// with it pointers, the check for keys that stand twice, and the limits on depth and size.
///
/// Calls come in the order of the text: begin_object(), key(), scalar(), key(), begin_list(), scalar(), end(), end(). A
/// parser that calls them in another order is wrong, and an assertion says so.
class DocumentBuilder {
public:
    static constexpr std::size_t deepest = 64;      ///< objects and lists in each other
    static constexpr std::size_t largest = 50'000;  ///< values

    /// What becomes of an object's key that stands twice.
    enum class Twice : std::uint8_t {
        refuse,           ///< as JSON's readers should
        warn_where_same,  ///< the same value again is a warning, another one is refused
    };

    explicit DocumentBuilder(std::string source, Twice twice = Twice::refuse);

    /// A key, before its value. Throws Errc::bad_value for one with the character \u0000.
    void key(std::string name, Mark mark);
    /// Throws Errc::unreadable_config beyond `deepest` or `largest`; so does scalar().
    void begin_object(Mark mark) { begin(NodeKind::object, mark); }
    void begin_list(Mark mark) { begin(NodeKind::list, mark); }
    void end();
    void scalar(NodeKind kind, std::string text, Mark mark);
    /// A plain word, whose kind it tells itself: null, ~, true, 12, 1e-8, anything else. As YAML 1.1 has it, with numbers
    /// such as 1e-8 besides, which people mean as numbers; yes, no, on and off stay text (Node::flag() knows them).
    void plain(std::string text, Mark mark);
    /// A copy of a value that is already there, in another place: an alias of YAML.
    void copy(const Node& node, Mark mark);
    /// The members of an object that the open object does not have by now: YAML's `<<`.
    void merge(const Node& object);
    void remark(Remark remark) { remarks_.push_back(std::move(remark)); }

    /// The value that was closed last, wherever it went; for a parser that remembers anchors.
    [[nodiscard]] const Node& last() const;
    /// The pointer of what comes next.
    [[nodiscard]] std::string pointer() const;
    [[nodiscard]] std::size_t depth() const noexcept { return open_.size(); }
    /// The values by now.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    [[nodiscard]] Document finish();

private:
    struct Open {
        Node node;
        std::string key;
        Mark key_mark;
        std::unordered_map<std::string, std::size_t> index;
    };
    void begin(NodeKind kind, Mark mark);
    [[nodiscard]] Node made(NodeKind kind, Mark mark);
    void put(Node node);
    void add_member(Open& to, Node node);

    std::shared_ptr<const std::string> source_;
    Twice twice_;
    std::vector<Open> open_;
    std::optional<Node> root_;
    std::size_t size_ = 0;
    std::vector<Remark> remarks_;
};

/// `above` over `base`, object by object and key by key: a file, what the environment says over it, what a command line
/// says over both. Every value keeps the place that it came from.
[[nodiscard]] Node overlay(const Node& base, const Node& above);

/// A document of values that were given one by one: flags, variables. A later value goes before an earlier one.
struct GivenValue {
    std::string path;    ///< "deepspeed_config.zero_stage"
    std::string text;    ///< read as a plain word
    std::string source;  ///< "--zero_stage"; with a mark the name of the text that it stands in
    Mark mark{};
};
[[nodiscard]] Document document_of(const std::vector<GivenValue>& values, std::string source);

/// What else than strict JSON a reader of JSON takes. Either way all else is one Error{unreadable_config} that names line
/// and column, with no word of a library in it. A file with placeholders (`$STAGE`, `{{ stage }}`, `STAGE`) names them
/// all.
enum class JsonDialect : std::uint8_t {
    strict,
    relaxed,  ///< comments (// # /* */), commas before a closing bracket, Infinity; each kind is one remark
};
[[nodiscard]] Document parse_json(std::string_view text, std::string source, JsonDialect dialect);

/// YAML 1.1 as PyYAML reads it. Throws Errc::unreadable_config, with line and column.
[[nodiscard]] Document parse_yaml(std::string_view text, std::string source);

/// A file by its name: .yaml and .yml are YAML, others JSON where their first character is a bracket or a comment of
/// JSON's, and YAML otherwise. Throws Errc::unreadable_config.
[[nodiscard]] Document load_document(const std::filesystem::path& file, JsonDialect dialect = JsonDialect::relaxed);

/// A node as a text, keys in their order and scalars as they were: read again it is the same.
[[nodiscard]] std::string write_json(const Node& node);
[[nodiscard]] std::string write_yaml(const Node& node);

/// A file as it is named, or below the folder of the file that names it; empty where none is there.
[[nodiscard]] std::filesystem::path found_from(const std::filesystem::path& named, const std::filesystem::path& by);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/document.ipp>
#include <strata/config/impl/document_builder.ipp>
#include <strata/config/impl/document_json.ipp>
#include <strata/config/impl/document_overlay.ipp>
#include <strata/config/impl/document_text.ipp>
#include <strata/config/impl/document_yaml.ipp>
#endif
