#pragma once
// strata/datasets/contents.hpp - Contents: what the files of a run's pictures hold, from the index and as it becomes known.

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/collection.hpp>
#include <strata/datasets/sample.hpp>
#include <strata/datasets/sample_index.hpp>
#include <strata/storage/content_hash.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::datasets {

/// What latents are known by (latent_identity()): a hash of each picture's file. The index has it from earlier starts, for as
/// long as a listing shows the same version; else the whole file must be read, which whoever encodes it does anyway, and
/// learn() takes the hash from those bytes. share() tells it to the other ranks and to the index.
class Contents {
public:
    /// A file of a sample: 0 is its picture, 1 the first of Sample::conditioning, and so on.
    using Part = std::size_t;
    /// Where the index of a data set is.
    struct Place {
        std::string id;     ///< of the data set
        std::string place;  ///< what its index belongs to; see SampleIndex
    };

    ///   index_folder  of DiscoverOptions; empty: nothing is kept
    ///   sets          as they stand in the collection; only those of rank 0 matter
    ///   conditioning  as they stand in config::DatasetList::conditioning
    Contents(std::filesystem::path index_folder, std::vector<Place> sets, std::vector<Place> conditioning = {})
        : index_folder_{std::move(index_folder)}, own_sets_{sets.size()}, sets_{std::move(sets)} {
        sets_.insert(sets_.end(), std::make_move_iterator(conditioning.begin()),
                     std::make_move_iterator(conditioning.end()));
    }

    /// What a sample's file held when it was read last; nothing if nobody has read all of it. Thread-safe.
    [[nodiscard]] storage::ContentHash of(const Sample& sample, Part part = 0) const {
        const std::lock_guard lock{mutex_};
        return known(sample, part);
    }

    /// Takes all bytes of a sample's file, as they were just read; returns what they are known by from now on. The index is
    /// told only if they are of the version that was listed. Thread-safe. Throws what content_hash() throws.
    ///
    ///   set     of the sample, in the collection
    ///   sample  stays where it is until share()
    storage::ContentHash learn(std::size_t set, const Sample& sample, const storage::VersionedBytes& file,
                               Part part = 0) {
        const storage::ContentHash content = storage::content_hash(file.bytes);
        const std::string& listed = part == 0 ? sample.version : sample.conditioning[part - 1].version;
        const std::lock_guard lock{mutex_};
        if (content != known(sample, part)) learnt_[{&sample, part}] = {set, content, file.version == listed};
        return content;
    }

    /// Tells all ranks, and the index, what was learnt since the last call. Others may call of() and learn() meanwhile, and
    /// must not read Sample::content themselves. An index that another program holds is tried again at the next call.
    ///
    /// Collective. Throws what SampleIndex::add_contents() throws but for output_in_use, on all ranks.
    template <comm::Communicator Comm>
    void share(Comm& comm, Collection& collection) {
        FieldWriter mine;
        {
            const std::lock_guard lock{mutex_};
            for (const auto& [file, one] : learnt_)
                mine << one.set << (file.first - collection.sets()[one.set].samples.data()) << file.second
                     << (one.is_listed ? 1 : 0) << one.content.text();
            learnt_.clear();
        }
        const std::vector<std::string> all = comm.all_gather_varied(mine.bytes());
        {
            const std::lock_guard lock{mutex_};
            for (const std::string& bytes : all)
                for (FieldReader fields{bytes}; !fields.empty();) {
                    const auto set = static_cast<std::size_t>(fields.integer());
                    const auto index = static_cast<std::size_t>(fields.integer());
                    const auto part = static_cast<Part>(fields.integer());
                    const bool is_listed = fields.integer() != 0;
                    const auto content = storage::ContentHash::of_text(fields.text());
                    collection.set_content(set, index, part, content);
                    if (!is_listed || comm.rank() != 0) continue;
                    const Sample& sample = collection.sets()[set].samples[index];
                    if (part == 0) {
                        to_keep_[set].push_back({sample.key, sample.version, content});
                    } else {
                        const ConditioningPicture& one = sample.conditioning[part - 1];
                        to_keep_[own_sets_ + one.set].push_back({one.key, one.version, content});
                    }
                }
        }
        comm::agree(comm, [&] { keep(); });
    }

private:
    struct Learnt {
        std::size_t set = 0;
        storage::ContentHash content;
        bool is_listed = false;  // the file is of the version that the sample has
    };
    void keep();
    [[nodiscard]] storage::ContentHash known(const Sample& sample, Part part) const {
        const auto found = learnt_.find({&sample, part});
        if (found != learnt_.end()) return found->second.content;
        return part == 0 ? sample.content : sample.conditioning[part - 1].content;
    }

    std::filesystem::path index_folder_;
    std::size_t own_sets_;  // of sets_, that the collection has; behind them those of conditioning pictures
    std::vector<Place> sets_;
    mutable std::mutex mutex_;  // of learnt_
    std::map<std::pair<const Sample*, Part>, Learnt> learnt_;
    std::map<std::size_t, std::vector<KnownContent>> to_keep_;  // on rank 0
};

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/contents.ipp>
#endif
