#pragma once
// strata/config/impl/source.ipp - the places of a document, by path.

#include <strata/config/source.hpp>

namespace strata::config {

namespace detail {

/// Of every value below a node.
inline void add_places(const Node& node, Source::Places& places) {
    for (const Node::Member& member : node.members()) {
        places.insert_or_assign(member.value.path(), member.value.mark());
        add_places(member.value, places);
    }
    for (const Node& element : node.elements()) {
        places.insert_or_assign(element.path(), element.mark());
        add_places(element, places);
    }
}

}  // namespace detail

STRATA_INLINE Source::Source(const Document& document) : name_{document.source} {
    Places places;
    if (document.root.mark().line > 0) {
        places.emplace("", document.root.mark());
        detail::add_places(document.root, places);
    }
    places_ = std::make_shared<const Places>(std::move(places));
}

STRATA_INLINE Mark Source::mark(std::string_view path) const {
    if (places_ == nullptr) return {};
    for (;;) {
        if (const auto found = places_->find(path); found != places_->end()) return found->second;
        if (path.empty()) return {};
        const std::size_t end = path.find_last_of(".[");
        path = path.substr(0, end == std::string_view::npos ? 0 : end);
    }
}

STRATA_INLINE std::string Source::at(std::string_view path) const {
    const Mark found = mark(path);
    if (found.line == 0) return name_;
    return name_ + ":" + std::to_string(found.line) + ":" + std::to_string(found.column);
}

STRATA_INLINE Source Source::renamed(const std::map<std::string, std::string, std::less<>>& names) const {
    if (places_ == nullptr) return *this;
    Places renamed;
    for (const auto& [path, mark] : *places_) {
        const std::size_t end = std::min(path.find_first_of(".["), path.size());
        const auto found = names.find(std::string_view{path}.substr(0, end));
        renamed.insert_or_assign(found == names.end() ? path : found->second + path.substr(end), mark);
    }
    Source other{name_};
    other.places_ = std::make_shared<const Places>(std::move(renamed));
    return other;
}

}  // namespace strata::config
