#pragma once
// strata/config/source.hpp - Source: what values stand in, and where in it each of them stands.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <strata/config/document.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// The name of a file, and the place of each key in it where that is known. Copies share the places.
class Source {
public:
    using Places = std::map<std::string, Mark, std::less<>>;  ///< by path: "parquet.path", "[2].repeats"

    /// Of a file whose places nobody knows; empty: a command line.
    Source(std::string name) : name_{std::move(name)} {}
    Source(const char* name) : name_{name} {}
    /// Of a document, whose values are called by their paths.
    explicit Source(const Document& document);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] bool empty() const noexcept { return name_.empty(); }
    /// "config.json:12:5" of a key, of the nearest value around it that has a place, or the name alone.
    [[nodiscard]] std::string at(std::string_view path) const;
    /// Where a key stands; line 0 where nobody knows.
    [[nodiscard]] Mark mark(std::string_view path) const;
    /// The same places under other names: "seed" for "--seed".
    [[nodiscard]] Source renamed(const std::map<std::string, std::string, std::less<>>& names) const;

private:
    std::string name_;
    std::shared_ptr<const Places> places_;
};

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/source.ipp>
#endif
