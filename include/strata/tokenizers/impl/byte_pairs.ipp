#pragma once
// strata/tokenizers/impl/byte_pairs.ipp - words merged pair by pair, with a queue of the pairs that stand beside each
// other.

#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include <strata/tokenizers/byte_pairs.hpp>

namespace strata::tokenizers {

STRATA_INLINE BytePairs::BytePairs(BytePairs&& other) noexcept
    : tokens_(std::move(other.tokens_)),
      merges_(std::move(other.merges_)),
      byte_(other.byte_),
      last_byte_(other.last_byte_),
      size_(other.size_),
      content_(std::move(other.content_)),
      kept_(std::move(other.kept_)) {}

STRATA_INLINE std::int64_t BytePairs::find(std::string_view spelled) const {
    const auto found = tokens_.find(std::string{spelled});
    return found == tokens_.end() ? -1 : found->second;
}

STRATA_INLINE std::vector<std::int32_t> BytePairs::merged(std::string_view word, std::int64_t unknown) const {
    // A list of symbols that merging shortens: symbol i is followed by next[i].
    const std::size_t n = word.size();
    constexpr std::size_t none = static_cast<std::size_t>(-1);
    constexpr std::int32_t taken = -2;  // of a symbol that became part of the one before it
    std::vector<std::int32_t> symbols(n);
    std::vector<std::size_t> next(n), previous(n);
    for (std::size_t i = 0; i < n; ++i) {
        const auto byte = static_cast<unsigned char>(word[i]);
        symbols[i] = i + 1 == n ? last_byte_[byte] : byte_[byte];
        next[i] = i + 1 == n ? none : i + 1;
        previous[i] = i == 0 ? none : i - 1;
    }

    // Pairs by rank and place. A pair whose symbols have changed since is passed over when its turn comes.
    struct Candidate {
        std::int32_t rank;
        std::size_t place;
        std::int32_t left, right, made;
        bool operator>(const Candidate& other) const {
            return std::tie(rank, place) > std::tie(other.rank, other.place);
        }
    };
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto look_at = [&](std::size_t i) {
        if (i == none || next[i] == none || symbols[i] < 0 || symbols[next[i]] < 0) return;
        const std::int32_t left = symbols[i], right = symbols[next[i]];
        const auto merge = merges_.find(static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right));
        if (merge != merges_.end()) queue.push({merge->second.rank, i, left, right, merge->second.made});
    };
    for (std::size_t i = 0; i < n; ++i) look_at(i);

    std::vector<std::size_t> changed;
    while (!queue.empty()) {
        // All pairs of one rank, from left to right, before any pair that these merges make.
        const std::int32_t rank = queue.top().rank;
        changed.clear();
        while (!queue.empty() && queue.top().rank == rank) {
            const Candidate pair = queue.top();
            queue.pop();
            const std::size_t i = pair.place, j = next[i];
            if (symbols[i] != pair.left || j == none || symbols[j] != pair.right) continue;
            symbols[i] = pair.made;
            symbols[j] = taken;
            next[i] = next[j];
            if (next[j] != none) previous[next[j]] = i;
            changed.push_back(i);
        }
        for (const std::size_t i : changed) {
            look_at(i);
            const std::size_t before = previous[i];
            if (before != none) look_at(before);
        }
    }

    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < n && i != none; i = next[i])
        ids.push_back(symbols[i] < 0 ? static_cast<std::int32_t>(unknown) : symbols[i]);
    return ids;
}

STRATA_INLINE void BytePairs::encode(std::string_view word, std::int64_t unknown,
                                     std::vector<std::int64_t>& ids) const {
    if (word.empty()) return;
    if (word.size() > longest_kept) {
        for (const std::int32_t id : merged(word, unknown)) ids.push_back(id);
        return;
    }
    const std::string key{word};
    {
        const std::shared_lock reading{lock_};
        if (const auto known = kept_.find(key); known != kept_.end()) {
            ids.insert(ids.end(), known->second.begin(), known->second.end());
            return;
        }
    }
    std::vector<std::int32_t> made = merged(word, unknown);
    ids.insert(ids.end(), made.begin(), made.end());
    const std::unique_lock writing{lock_};
    if (kept_.size() < most_kept) kept_.emplace(key, std::move(made));
}

}  // namespace strata::tokenizers
