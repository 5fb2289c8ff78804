#pragma once
// strata/datasets/contents.hpp - Contents: what the files of a run's pictures hold, from the index and as it becomes known.

#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
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
    /// Where the index of a data set is.
    struct Place {
        std::string id;     ///< of the data set
        std::string place;  ///< what its index belongs to; see SampleIndex
    };

    ///   index_folder  of DiscoverOptions; empty: nothing is kept
    ///   sets          as they stand in the collection; only those of rank 0 matter
    Contents(std::filesystem::path index_folder, std::vector<Place> sets)
        : index_folder_{std::move(index_folder)}, sets_{std::move(sets)} {}

    /// What a sample's file held when it was read last; nothing if nobody has read all of it. Thread-safe.
    [[nodiscard]] storage::ContentHash of(const Sample& sample) const {
        const std::lock_guard lock{mutex_};
        const auto found = learnt_.find(&sample);
        return found == learnt_.end() ? sample.content : found->second.content;
    }

    /// Takes all bytes of a sample's file, as they were just read; returns what they are known by from now on. The index is
    /// told only if they are of the version that was listed. Thread-safe. Throws what content_hash() throws.
    ///
    ///   set     of the sample, in the collection
    ///   sample  stays where it is until share()
    storage::ContentHash learn(std::size_t set, const Sample& sample, const storage::VersionedBytes& file) {
        const storage::ContentHash content = storage::content_hash(file.bytes);
        const std::lock_guard lock{mutex_};
        const auto found = learnt_.find(&sample);
        if (content != (found == learnt_.end() ? sample.content : found->second.content))
            learnt_[&sample] = {set, content, file.version == sample.version};
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
            for (const auto& [sample, one] : learnt_)
                mine << one.set << (sample - collection.sets()[one.set].samples.data()) << (one.is_listed ? 1 : 0)
                     << one.content.text();
            learnt_.clear();
        }
        const std::vector<std::string> all = comm.all_gather_varied(mine.bytes());
        {
            const std::lock_guard lock{mutex_};
            for (const std::string& bytes : all)
                for (FieldReader fields{bytes}; !fields.empty();) {
                    const auto set = static_cast<std::size_t>(fields.integer());
                    const auto index = static_cast<std::size_t>(fields.integer());
                    const bool is_listed = fields.integer() != 0;
                    const auto content = storage::ContentHash::of_text(fields.text());
                    collection.set_content(set, index, content);
                    const Sample& sample = collection.sets()[set].samples[index];
                    if (is_listed && comm.rank() == 0) to_keep_[set].push_back({sample.key, sample.version, content});
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

    std::filesystem::path index_folder_;
    std::vector<Place> sets_;
    mutable std::mutex mutex_;  // of learnt_
    std::unordered_map<const Sample*, Learnt> learnt_;
    std::map<std::size_t, std::vector<KnownContent>> to_keep_;  // on rank 0
};

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/contents.ipp>
#endif
