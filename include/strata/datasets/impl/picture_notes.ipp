#pragma once
// strata/datasets/impl/picture_notes.ipp - notes of all ranks become lines.

#include <utility>

#include <strata/core/random.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/picture_notes.hpp>

namespace strata::datasets {

STRATA_INLINE void PictureNotes::add(std::size_t set, const std::string& key, const std::string& note) {
    if (note.empty()) return;
    const std::lock_guard lock{mutex_};
    if (!seen_.insert(core::combine({set, core::number_of(key)})).second) return;
    Noted& noted = news_[set];
    if (noted.count++ == 0 || key < noted.first) {
        noted.first = key;
        noted.note = note;
    }
}

STRATA_INLINE std::string PictureNotes::pack() {
    const std::lock_guard lock{mutex_};
    FieldWriter fields;
    for (const auto& [set, noted] : std::exchange(news_, {})) fields << set << noted.count << noted.first << noted.note;
    return fields.bytes();
}

STRATA_INLINE std::vector<std::string> PictureNotes::lines(const std::vector<std::string>& packed,
                                                           const std::vector<std::string>& ids) {
    std::map<std::size_t, Noted> all;
    for (const std::string& bytes : packed)
        for (FieldReader fields{bytes}; !fields.empty();) {
            Noted& noted = all[static_cast<std::size_t>(fields.integer())];
            const std::int64_t before = noted.count;
            noted.count += fields.integer();
            std::string key = fields.text();
            std::string note = fields.text();
            if (before > 0 && noted.first <= key) continue;
            noted.first = std::move(key);
            noted.note = std::move(note);
        }
    std::vector<std::string> lines;
    for (const auto& [set, noted] : all)
        lines.push_back(picture_note_line(ids[set], noted.first, noted.note, noted.count));
    return lines;
}

STRATA_INLINE std::string picture_note_line(const std::string& id, const std::string& first, const std::string& note,
                                            std::int64_t count) {
    return "data set '" + id + "': " + first + ": " + note +
           (count > 1 ? "; and so with " + std::to_string(count - 1) + " more" : "");
}

}  // namespace strata::datasets
