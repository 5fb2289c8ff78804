#pragma once
// strata/datasets/picture_notes.hpp - PictureNotes: what is wrong with pictures and does no harm, counted while they are decoded.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::datasets {

/// Notes of a rank's decoders (pictures::Picture::note): an ICC profile that is not used, say. Each picture counts
/// once, however often it is decoded. Thread-safe.
class PictureNotes {
public:
    ///   set   of the picture, in the list of data sets
    ///   note  nothing: nothing is noted
    void add(std::size_t set, const std::string& key, const std::string& note);

    /// What was added since the last call, for the other ranks.
    [[nodiscard]] std::string pack();

    /// "data set 'faces': a.jpg: NOTE; and so with 3 more", a line for each data set with notes, from pack() of all
    /// ranks. The one that is named is the first by its key.
    ///
    ///   ids  of the data sets
    [[nodiscard]] static std::vector<std::string> lines(const std::vector<std::string>& packed,
                                                        const std::vector<std::string>& ids);

private:
    struct Noted {
        std::int64_t count = 0;
        std::string first;  // the least key
        std::string note;
    };
    std::mutex mutex_;
    std::unordered_set<std::uint64_t> seen_;  // pictures; of keys hashes, because a whole data set may be among them
    std::map<std::size_t, Noted> news_;       // by data set
};

/// "data set 'faces': a.jpg: NOTE; and so with 3 more"
///
///   count  of pictures, the first included
[[nodiscard]] std::string picture_note_line(const std::string& id, const std::string& first, const std::string& note,
                                            std::int64_t count);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/picture_notes.ipp>
#endif
