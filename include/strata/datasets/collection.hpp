#pragma once
// strata/datasets/collection.hpp - Collection: the pictures of a dataset list, sorted into buckets and put in order.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/config/dataset_list.hpp>
#include <strata/datasets/bucket_table.hpp>
#include <strata/datasets/conditioning_pairs.hpp>
#include <strata/datasets/discovery.hpp>
#include <strata/datasets/report.hpp>
#include <strata/datasets/sample_plan.hpp>
#include <strata/datasets/stores.hpp>
#include <strata/pictures/framing.hpp>

namespace strata::datasets {

/// The pictures of one data set that can be trained on.
struct PictureSet {
    config::ImageDataset settings;
    std::vector<Sample> samples;  ///< by key
    pictures::Framer framer;
    std::size_t first_bucket = 0;  ///< in Collection::buckets(); those of a data set stand together
};

/// What data sets hold, in which buckets, and in which order it comes. Reads no pixel and encodes nothing.
class Collection {
public:
    explicit Collection(const pictures::BucketSettings& settings) : settings_{settings} {}

    /// Adds a data set to train on. Throws what Framer's constructor throws.
    void add(const config::ImageDataset& dataset, Discovered found);
    /// Adds a line about a data set that is not trained on: to evaluate with, or of conditioning pictures.
    void add_line(const config::ImageDataset& dataset, const Discovered& found);

    /// Adds notes to the report.
    void add_lines(std::vector<std::string> lines) {
        for (std::string& line : lines) report_.notes.push_back(std::move(line));
    }

    [[nodiscard]] const std::vector<PictureSet>& sets() const noexcept { return sets_; }
    /// Of all data sets: as they are asked for until arrange() raises repeats, merges and drops.
    [[nodiscard]] const std::vector<Bucket>& buckets() const noexcept { return buckets_; }

    /// What a sample's file turned out to hold; see Contents.
    ///
    ///   part  as Contents::Part
    void set_content(std::size_t set, std::size_t sample, std::size_t part, const storage::ContentHash& content) {
        Sample& one = sets_[set].samples[sample];
        (part == 0 ? one.content : one.conditioning[part - 1].content) = content;
    }

    /// Drops and merges small buckets of data sets that say so, makes sure that the others hold an effective batch
    /// (require_effective_batch), and makes the plan. Samples that are dropped are in the report, as those that
    /// leave_out() takes out. Throws Errc::no_samples when nothing can be trained on or no data set takes part in the
    /// first step, and small_bucket.
    ///
    ///   sampling  in which order an epoch draws the data sets
    void arrange(const BatchShape& shape, std::uint64_t seed, bool allow_oversubscription,
                 config::DataBackendSampling sampling = config::DataBackendSampling::auto_weighting);
    /// Of the last arrange(), which must have been called.
    [[nodiscard]] const SamplePlan& plan() const noexcept { return *plan_; }

    /// Takes out samples that turned out to be broken; call arrange() then.
    ///
    ///   broken  for each data set indices of its samples
    ///   why     the same, to be reported
    void leave_out(const std::vector<std::set<std::size_t>>& broken, std::vector<Skipped> why);

    /// Its caches are empty. Buckets are the arranged ones; before arrange() as they are asked for.
    [[nodiscard]] Report report() const;

private:
    void add_buckets_of(std::size_t set);  // behind those of the sets before it
    void require_buckets() const;
    void drop_small_buckets(const BatchShape& shape);
    [[nodiscard]] std::vector<PlanDataset> plan_datasets(const BatchShape& shape,
                                                         config::DataBackendSampling sampling) const;

    pictures::BucketSettings settings_;
    std::vector<PictureSet> sets_;
    std::vector<Bucket> buckets_;
    BatchShape shape_;
    std::unique_ptr<const SamplePlan> plan_;
    Report report_;  // found, skipped, notes
};

/// Called before and after a data set is discovered, on every rank; those of conditioning pictures come first.
struct DiscoveryWatch {
    std::function<void(const config::ImageDataset& dataset)> begins = {};
    ///   place  of its pictures: where("") of its store
    std::function<void(const config::ImageDataset& dataset, const std::string& place, const Discovered& found)> found =
        {};
    /// In the end, for each data set of conditioning pictures: how many of them belong to a picture that is used.
    std::function<void(const config::ImageDataset& dataset, std::int64_t pictures)> paired = {};
};

/// Discovers all data sets of a list: those of conditioning pictures that others name, those to train on, and those to
/// evaluate with; see discover() and pair_conditioning(), whose errors it throws. A training start and `strata data` both
/// begin so. Collective; every rank gets the same.
template <comm::Communicator Comm, storage::ObjectStore Store>
[[nodiscard]] Collection discover_all(Comm& comm, const config::DatasetList& list, Stores<Store>& stores,
                                      const pictures::BucketSettings& settings, const DiscoverOptions& how,
                                      const DiscoveryWatch& watch = {}) {
    std::vector<Store> images;
    std::vector<Store> eval;
    std::map<std::size_t, Store> partners;  // by their place in list.conditioning
    stores.keep_indexes_in(how.index_folder);
    comm::agree(comm, [&] {  // credentials may be there on one host and not on another
        for (const config::ImageDataset& dataset : list.images) images.push_back(stores.pictures(dataset));
        for (const config::ImageDataset& dataset : list.eval) eval.push_back(stores.pictures(dataset));
        for (const auto* const sets : {&list.images, &list.eval})
            for (const config::ImageDataset& dataset : *sets)
                for (const std::size_t c : list.conditioning_of(dataset))
                    if (!partners.contains(c)) partners.emplace(c, stores.pictures(list.conditioning[c]));
    });
    std::map<std::size_t, Partners> conditioning;
    const auto look_into = [&](const Store& store, const config::ImageDataset& dataset) {
        if (watch.begins) watch.begins(dataset);
        Discovered found = discover(comm, store, dataset, how);
        for (const std::size_t c : list.conditioning_of(dataset))
            pair_conditioning(found, dataset, conditioning.at(c),
                              [&](const std::string& key) { return store.where(key); });
        if (watch.found) watch.found(dataset, store.where(""), found);
        return found;
    };
    Collection collection{settings};
    for (const auto& [c, store] : partners) {
        Discovered found = look_into(store, list.conditioning[c]);
        collection.add_line(list.conditioning[c], found);
        conditioning.emplace(c, Partners{c, list.conditioning[c], std::move(found.samples), store.where("")});
    }
    for (std::size_t d = 0; d < images.size(); ++d)
        collection.add(list.images[d], look_into(images[d], list.images[d]));
    for (std::size_t d = 0; d < eval.size(); ++d)  // what is wrong with them is worth knowing now
        collection.add_line(list.eval[d], look_into(eval[d], list.eval[d]));
    for (const auto& [c, one] : conditioning) {
        collection.add_lines(one.unused());
        if (watch.paired) watch.paired(list.conditioning[c], one.used());
    }
    return collection;
}

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/collection.ipp>
#endif
