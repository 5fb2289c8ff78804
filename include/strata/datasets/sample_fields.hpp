#pragma once
// strata/datasets/sample_fields.hpp - what is kept and told of a sample, and of why one is left out: one list of each.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/picture_fault.hpp>
#include <strata/datasets/report.hpp>
#include <strata/datasets/sample.hpp>
#include <strata/storage/content_hash.hpp>

namespace strata::datasets {

/// Calls visit(name, member) for all of a sample. What ranks tell each other and the columns of the index follow from
/// this list; a member that is not in it is lost on the way.
template <class MaybeConstSample, class Visit>
requires std::same_as<std::remove_const_t<MaybeConstSample>, Sample>
void each_field(MaybeConstSample& sample, const Visit& visit) {
    visit("key", sample.key);
    visit("version", sample.version);
    visit("bytes", sample.bytes);
    visit("content", sample.content);
    visit("width", sample.size.width);
    visit("height", sample.size.height);
    visit("caption", sample.caption);
    visit("other_captions", sample.other_captions);
}

/// The same of a fault.
template <class MaybeConstFault, class Visit>
requires std::same_as<std::remove_const_t<MaybeConstFault>, PictureFault>
void each_field(MaybeConstFault& fault, const Visit& visit) {
    visit("reason", fault.reason);
    visit("detail", fault.detail);
    visit("damaged", fault.damaged);
}

/// The same of a picture that is left out.
template <class MaybeConstSkipped, class Visit>
requires std::same_as<std::remove_const_t<MaybeConstSkipped>, Skipped>
void each_field(MaybeConstSkipped& skipped, const Visit& visit) {
    visit("dataset", skipped.dataset);
    visit("place", skipped.place);
    visit("reason", skipped.reason);
    visit("detail", skipped.detail);
}

namespace detail {

/// A member as fields, and back.
inline void write_field(FieldWriter& to, const std::string& text) { to << text; }
inline void write_field(FieldWriter& to, const storage::ContentHash& hash) { to << (hash ? hash.text() : ""); }
inline void write_field(FieldWriter& to, SkipReason reason) { to << static_cast<int>(reason); }
inline void write_field(FieldWriter& to, std::integral auto number) { to << static_cast<std::int64_t>(number); }
inline void write_field(FieldWriter& to, const std::vector<std::string>& texts) {
    to << texts.size();
    for (const std::string& text : texts) to << text;
}
inline void read_field(FieldReader& from, std::string& text) { text = from.text(); }
inline void read_field(FieldReader& from, storage::ContentHash& hash) {
    hash = storage::ContentHash::of_text(from.text());
}
inline void read_field(FieldReader& from, SkipReason& reason) { reason = static_cast<SkipReason>(from.integer()); }
template <std::integral Number>
void read_field(FieldReader& from, Number& number) {
    number = static_cast<Number>(from.integer());
}
inline void read_field(FieldReader& from, std::vector<std::string>& texts) {
    texts.resize(static_cast<std::size_t>(from.integer()));
    for (std::string& text : texts) text = from.text();
}

}  // namespace detail

/// What each_field() lists: samples, faults and pictures that are left out.
template <class T>
concept HasFields = std::same_as<T, Sample> || std::same_as<T, PictureFault> || std::same_as<T, Skipped>;

/// Appends all of it.
template <HasFields T>
FieldWriter& operator<<(FieldWriter& to, const T& value) {
    each_field(value, [&](const char*, const auto& member) { detail::write_field(to, member); });
    return to;
}
/// Takes what was appended.
template <HasFields T>
FieldReader& operator>>(FieldReader& from, T& value) {
    each_field(value, [&](const char*, auto& member) { detail::read_field(from, member); });
    return from;
}

/// One that may be missing.
template <HasFields T>
FieldWriter& operator<<(FieldWriter& to, const std::optional<T>& value) {
    to << (value ? 1 : 0);
    return value ? to << *value : to;
}
template <HasFields T>
FieldReader& operator>>(FieldReader& from, std::optional<T>& value) {
    value.reset();
    return from.integer() != 0 ? from >> value.emplace() : from;
}

}  // namespace strata::datasets
