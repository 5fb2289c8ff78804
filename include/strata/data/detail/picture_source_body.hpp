#pragma once
// strata/data/detail/picture_source_body.hpp - what of a PictureSource does not depend on the type of its recipe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <strata/comm/any_comm.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/comm/folder_keepers.hpp>
#include <strata/config/dataset_list.hpp>
#include <strata/data/detail/loaded_recipe.hpp>
#include <strata/data/detail/sample_work.hpp>
#include <strata/data/detail/source_identity.hpp>
#include <strata/data/detail/source_texts.hpp>
#include <strata/data/sample_stream.hpp>
#include <strata/data/source_options.hpp>
#include <strata/data/step_graph.hpp>
#include <strata/data/tensor_cache.hpp>
#include <strata/datasets/broken_samples.hpp>
#include <strata/datasets/captions.hpp>
#include <strata/datasets/collection.hpp>
#include <strata/datasets/contents.hpp>
#include <strata/datasets/latent_caching.hpp>
#include <strata/datasets/picture_notes.hpp>
#include <strata/datasets/ranks_on_machine.hpp>
#include <strata/datasets/report.hpp>
#include <strata/datasets/stores.hpp>

namespace strata::data::detail {

/// See PictureSource, which knows the type of the batches besides.
template <class Store>
class PictureSourceBody {
public:
    PictureSourceBody(const PictureSourceBody&) = delete;
    PictureSourceBody& operator=(const PictureSourceBody&) = delete;

    /// Finds the pictures and fills the caches, each rank its share; hosts with caches of their own fill each. It may be interrupted at any time, and goes on where it
    /// ended; a second call does nothing. Trainer::fit() calls it where the program has not.
    ///
    /// Collective; every rank gets the same exception when one fails. Throws Errc::no_samples (missing or empty folder, or
    /// every picture was skipped), small_bucket (see require_effective_batch), bad_reference (a cache folder cannot be
    /// written), no_space, io_failed, interrupted (options.stopped; what was cached stays), bad_recipe, and what the
    /// recipe's encoders throw at captions. A picture that cannot be read, decoded or encoded is skipped and named
    /// in the report.
    void prepare();
    [[nodiscard]] bool is_prepared() const noexcept { return prepared_; }

    /// Of the first epoch; later ones differ where a data set has a probability below 1, or joins or leaves.
    [[nodiscard]] std::int64_t micro_batches_per_epoch() const {
        require_prepared();
        return collection_.plan().batches_in(0) * options_.gradient_accumulation_steps;
    }
    /// Of so many epochs from the start; fewer where no data set takes part any more.
    [[nodiscard]] std::int64_t micro_batches_of(std::int64_t epochs) const {
        require_prepared();
        return collection_.plan().batches_before(epochs) * options_.gradient_accumulation_steps;
    }
    /// Of one rank, of data sets without their own train_batch_size.
    [[nodiscard]] std::int64_t samples_per_micro_batch() const { return options_.train_batch_size; }
    /// Of this rank in a micro-batch, those that count: as many as its data set's train_batch_size, and with each_once
    /// fewer or none at the end of a bucket; next() then returns one sample at least, so that all ranks have the same
    /// number of batches.
    [[nodiscard]] std::int64_t samples_in(std::int64_t micro_batch) const {
        require_prepared();
        const datasets::GlobalBatch part = part_of(micro_batch);
        return options_.each_once ? part.fresh : static_cast<std::int64_t>(part.visits.size());
    }

    /// Moves to a micro-batch, counted from the start of epoch 0. What comes is what an uninterrupted run gets there.
    void seek(std::int64_t micro_batch) {
        stream_.reset();
        position_ = micro_batch;
    }

    /// As of now: cache entries that were found damaged while training are in it.
    [[nodiscard]] datasets::Report report() const;

    /// What is to be shown at the end of a run: requests to buckets, and cache entries that were made again while
    /// training, of all ranks. Empty where there were none. Collective.
    template <comm::Communicator Comm>
    [[nodiscard]] std::vector<std::string> closing_lines(Comm& comm);

    /// Tells all ranks, and the index, what files turned out to hold since the last call: a run that is killed then
    /// need not read them again. fit() calls it with every checkpoint, and closing_lines() at the end. Batches may be
    /// made meanwhile. Collective. Throws what Contents::share() throws.
    template <comm::Communicator Comm>
    void remember(Comm& comm) {
        contents_->share(comm, collection_);
    }

    /// What batches follow from, for a comparison with the run that a checkpoint is of: encoders, seed, and for each data set
    /// its samples, what they hold, and its settings. Folders may be moved. The same on every rank.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> identity() const {
        return source_identity(options_, collection_, recipe_->picture_id(), recipe_->caption_id());
    }

    /// The pictures and buckets that are trained on; none before prepare().
    [[nodiscard]] const datasets::Collection& collection() const noexcept { return collection_; }

    /// Threads of this rank that make batches: as many as SourceOptions say, or its part of the machine's cores. Local.
    [[nodiscard]] int threads() const noexcept { return threads_; }
    /// Seconds that the steps which make batches took so far on this rank, together: whichever has most, for its number
    /// of threads, is what batches wait for. Local.
    [[nodiscard]] std::array<double, steps> step_seconds() const;
    /// That step, in words: "decoding"; empty where no batch was made. Local.
    [[nodiscard]] std::string bottleneck() const;

protected:
    /// See PictureSource.
    template <class Comm>
    PictureSourceBody(Comm& comm, config::DatasetList datasets, std::unique_ptr<LoadedRecipe> recipe,
                      SourceOptions options)
        : PictureSourceBody{view(comm), std::move(datasets), std::move(recipe), std::move(options)} {}
    /// Batches that are being made are given up, and requests to buckets with them.
    ~PictureSourceBody() { stores_.interrupt(); }

    /// A Batch of the recipe.
    [[nodiscard]] std::shared_ptr<void> next_batch();

private:
    using Stream = SampleStream<SampleWork>;
    using Graph = Stream::Graph;
    using Group = Stream::Group;

    /// What a data set of the collection has besides; the two lists go side by side.
    struct Sources {
        Store pictures;
        TensorCache<Store> latents;
        std::size_t texts;  // index in texts_
        datasets::CaptionRule captions;
        datasets::LatentCaching caching;
    };
    /// A cache entry that no batch needs any more.
    struct Stale {
        std::size_t dataset;
        std::string identity;
    };
    /// A picture that is encoded before the first step.
    struct PictureTask {
        std::size_t dataset;
        std::size_t index;  // of the sample in its data set
        pictures::Frame frame;
    };
    /// An entry that is to be made in the caches that this rank sees: which of a list, and why.
    struct Missing {
        std::size_t task;
        CacheOutcome why;
    };
    /// An AnyComm is taken as it is.
    template <class Comm>
    static std::shared_ptr<comm::AnyComm> view(Comm& comm) {
        if constexpr (std::is_same_v<Comm, comm::AnyComm>) {
            return {std::shared_ptr<void>{}, &comm};
        } else {
            return std::make_shared<comm::AnyComm>(comm);
        }
    }
    PictureSourceBody(std::shared_ptr<comm::AnyComm> comm, config::DatasetList datasets,
                      std::unique_ptr<LoadedRecipe> recipe, SourceOptions options);

    // picture_source_start.hpp
    void require_prepared() const;
    void require_same_settings();
    void require_settings_that_fit() const;
    void require_conditioning_that_fits() const;
    void share_the_cores();
    void open_stores();
    void require_writable_caches();
    void find_cache_keepers();
    void clear_epochs();
    void remove_leftovers();
    void arrange() {
        collection_.arrange(shape_, options_.seed, options_.allow_dataset_oversubscription,
                            options_.data_backend_sampling);
    }

    // picture_source_prepare.hpp
    void prepare_pictures();
    void prepare_captions();
    void replace_later(const std::vector<PictureTask>& tasks,
                       std::vector<std::pair<std::size_t, std::string>> failures);
    void leave_out(const std::vector<PictureTask>& tasks, std::vector<std::pair<std::size_t, std::string>> failures);
    template <class Where>
    [[nodiscard]] static datasets::CacheReport report_of(const std::vector<Missing>& missing, const Where& where);
    // picture_source_fill.hpp
    template <class Work>
    void pass_over_share(std::string_view what, std::size_t count, const Work& work);
    [[nodiscard]] std::vector<Missing> missing_of(std::string_view what, std::size_t count,
                                                  const std::function<CacheOutcome(std::size_t)>& look_up);
    /// What became of an entry; `found` where it turned out to be there when the picture was read.
    using Made = std::function<void(std::size_t task, CacheOutcome outcome, std::exception_ptr failure)>;
    void make(std::string_view what, const std::vector<std::vector<Missing>>& groups,
              const std::function<SampleWork(const Missing&)>& begin, const Made& made);

    /// Where one of a sample's files is.
    struct File {
        const Store& store;
        const std::string& key;
        std::uint64_t bytes;
        [[nodiscard]] std::string shown() const { return "'" + store.where(key) + "'"; }
    };

    // picture_source_steps.hpp
    [[nodiscard]] bool know_contents(SampleWork& work) const;
    [[nodiscard]] File file_of(const SampleWork& work, std::size_t p) const;
    [[nodiscard]] std::string picture_identity(const SampleWork& work) const;
    [[nodiscard]] std::string caption_identity(const SampleWork& work) const;
    [[nodiscard]] typename Graph::Steps graph_steps();
    [[nodiscard]] bool fetch(SampleWork& work);
    void look_up_picture(SampleWork& work) const;
    void look_up_content(SampleWork& work) const;
    void look_up_caption(SampleWork& work) const;
    [[nodiscard]] static CacheOutcome look_up(const TensorCache<Store>& cache, const std::string& identity,
                                              const std::vector<TensorSpec>& specs, NamedTensors& tensors);
    void read(SampleWork& work) const;
    // picture_source_encode.hpp
    void encode(Group& group);
    void encode_pictures(Group& group, std::span<const std::vector<std::size_t>> part);
    void encode_captions(Group& group, std::span<const std::vector<std::size_t>> part);
    // picture_source_steps.hpp
    void keep(Group& group);
    void collate(Group& group);
    [[nodiscard]] Error picture_failure(const SampleWork& work, Errc code, const std::string& problem,
                                        const std::string& fix) const;
    template <class Call>
    void as_fault_of_picture(const SampleWork& work, const Call& call) const;
    template <class Call>
    void named(const SampleWork& work, const Call& call) const;

    template <class Comm>
    [[nodiscard]] std::vector<std::string> shared_notes(Comm& comm);

    // picture_source_stream.hpp
    [[nodiscard]] datasets::GlobalBatch part_of(std::int64_t micro_batch) const;
    [[nodiscard]] std::shared_ptr<Group> visits_of(std::int64_t position) const;
    [[nodiscard]] std::size_t usable_place(const datasets::Bucket& bucket, std::size_t place) const;
    [[nodiscard]] std::string name_of(std::size_t dataset, const datasets::Sample& sample) const;
    void end_epochs_before(std::int64_t epoch);
    void remove_some_stale();

    std::shared_ptr<comm::AnyComm> comm_;
    SourceOptions options_;
    config::DatasetList list_;
    datasets::RanksOnMachine machine_;
    comm::FolderKeepers cache_keepers_;  // who sees the same caches, once these are written to
    datasets::Stores<Store> stores_;
    std::unique_ptr<LoadedRecipe> recipe_;
    datasets::BatchShape shape_;
    std::int64_t rank_;
    int threads_ = 1;
    StepBounds bounds_;
    datasets::Collection collection_;
    std::vector<Sources> sources_;
    std::vector<std::optional<Store>> conditioning_;  // in the order of list_.conditioning; those that are used
    std::vector<TensorCache<Store>> texts_;           // in the order of list_.text_embeds
    std::optional<std::string> dropped_;              // what stands in for a dropped caption
    bool ends_epochs_ = false;                        // a data set is cached each_epoch
    bool encodes_pictures_later_ = false;             // while training, as data sets ask for
    bool encodes_captions_later_ = false;
    bool prepared_ = false;
    std::int64_t largest_batch_ = 0;  // samples of a rank in a micro-batch
    std::int64_t leftovers_ = 0;      // temporary files of killed runs that the ranks removed from the caches
    std::int64_t position_ = 0;
    std::unique_ptr<datasets::Contents> contents_;
    datasets::BrokenSamples broken_;
    datasets::PictureNotes notes_;
    std::vector<std::string> notes_of_start_;

    mutable std::mutex mutex_;  // of what follows
    datasets::CacheReport latents_report_;
    datasets::CacheReport texts_report_;
    Remade remade_latents_;  // while training, by this rank
    Remade remade_texts_;
    std::map<std::int64_t, std::vector<Stale>> of_epoch_;  // entries that this rank wrote for one epoch
    std::vector<Stale> stale_;

    std::unique_ptr<Stream> stream_;  // last: its threads use everything above
};

}  // namespace strata::data::detail

#include <strata/data/detail/picture_source_encode.hpp>
#include <strata/data/detail/picture_source_fill.hpp>
#include <strata/data/detail/picture_source_prepare.hpp>
#include <strata/data/detail/picture_source_start.hpp>
#include <strata/data/detail/picture_source_steps.hpp>
#include <strata/data/detail/picture_source_stream.hpp>
