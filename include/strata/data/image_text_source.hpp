#pragma once
// strata/data/image_text_source.hpp - ImageTextSource: captioned pictures as an endless, seekable stream of batches.

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/comm/communicator.hpp>
#include <strata/config/dataset_list.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/data/batch.hpp>
#include <strata/data/encoders.hpp>
#include <strata/data/ordered_stream.hpp>
#include <strata/data/tensor_cache.hpp>
#include <strata/datasets/byte_budget.hpp>
#include <strata/datasets/captions.hpp>
#include <strata/datasets/collection.hpp>
#include <strata/datasets/latent_caching.hpp>
#include <strata/datasets/report.hpp>
#include <strata/datasets/stores.hpp>
#include <strata/http/retry.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::data {

struct ImageTextOptions;
namespace detail {
/// Places of cache entries that were made again, by why.
using Remade = std::map<CacheOutcome, std::set<std::string>>;
[[nodiscard]] std::vector<std::pair<std::string, std::string>> source_identity(const ImageTextOptions& options,
                                                                               const datasets::Collection& collection,
                                                                               std::string_view autoencoder,
                                                                               std::string_view text_encoder);
}  // namespace detail

/// How data sets are used; the names are those of config::TrainerConfig.
struct ImageTextOptions {
    std::int64_t train_batch_size = 4;  ///< samples of one rank in one micro-batch, of data sets without their own
    std::int64_t gradient_accumulation_steps = 1;
    std::uint64_t seed = 42;
    std::int64_t aspect_bucket_alignment = 64;  ///< pixels; a multiple of pixels_per_latent() * latents_multiple
    config::BucketMode bucket_mode = config::BucketMode::nearest;
    std::int64_t aspect_bucket_rounding = 2;  ///< decimals of an aspect ratio in bucket_mode simpletuner
    std::int64_t latents_multiple = 1;        ///< what the model's latents must be a multiple of: its patch, or 1; >= 1
    bool trains_adapter = false;              ///< false: data sets with is_regularisation_data are refused
    double caption_dropout_probability = 0.1;
    bool allow_dataset_oversubscription = false;
    config::DataBackendSampling data_backend_sampling = config::DataBackendSampling::auto_weighting;
    bool compress_disk_cache = false;
    std::int64_t prefetch_batches = 10;                         ///< batches made ahead
    std::int64_t cache_memory_bytes = std::int64_t{512} << 20;  ///< of cached tensors kept in memory by this rank
    std::int64_t decode_memory_bytes =
        std::int64_t{2} << 30;      ///< of pictures decoded at the same time, their files included; a larger one alone
    std::int64_t threads = 0;       ///< 0: as many as there are cores
    http::RetryOptions retry = {};  ///< of requests to buckets
    std::filesystem::path index_folder = {};  ///< what is found out about pictures is kept here; empty: it is not

    /// Called from one thread at a time: while pictures are looked for, as DiscoverOptions say; while caches are filled,
    /// what ("latents", "captions"), entries of this rank's share that are done, and all of its share.
    std::function<void(std::string_view what, std::int64_t done, std::int64_t total)> progress = {};

    /// Called with a line that is to be shown, by one rank of each machine, from any thread, one at a time: a bucket's
    /// server fails, or answers again.
    std::function<void(const std::string& line)> note = {};

    /// Asked between pictures and between cached items, from one thread at a time: true ends the constructor with
    /// Errc::interrupted on all ranks within seconds, or when items under way are done. Must not throw.
    std::function<bool()> stopped = {};

    [[nodiscard]] static ImageTextOptions from(const config::TrainerConfig& config);
    [[nodiscard]] pictures::BucketSettings buckets() const {
        return {aspect_bucket_alignment, bucket_mode, aspect_bucket_rounding};
    }
    [[nodiscard]] datasets::DiscoverOptions discovery() const {
        return {index_folder, threads, decode_memory_bytes, progress, stopped};
    }
};

/// Folders and buckets of captioned pictures, ready to train on.
///
/// The constructor finds the pictures, sorts them into aspect buckets, and fills the caches of latents and embedded
/// captions, each rank its share; work that an earlier run did is not done again. next() then returns this
/// rank's part of micro-batch 0, 1, 2, ..., made ahead of time by a TBB flow graph. Which samples a step holds
/// is a pure function of (seed, position) and the buckets (sample_plan.hpp), and so are the captions, which of them are
/// dropped, and random crops; its micro-batches, and in them the ranks, take equal parts in turn.
///
/// latent_caching() says of which data sets the latents are made before the first step, and which are kept.
///
///   A      Autoencoder
///   T      TextEncoder
///   Store  `store` of the policy Backend<...>: an ObjectStore that is made of a folder; see Stores
template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
class ImageTextSource {
public:
    /// Collective; every rank gets the same exception when one fails.
    ///
    /// Throws Errc::no_samples (missing or empty folder, or every picture was skipped), small_bucket (see
    /// require_effective_batch), bad_value (alignment does not fit autoencoder or model; is_regularisation_data without an adapter), bad_reference (a cache
    /// folder cannot be written), no_space, io_failed, interrupted (options.stopped; what was cached stays),
    /// rank_mismatch (ranks were started with different settings). A picture that cannot be read or decoded is
    /// skipped and named in the report.
    template <comm::Communicator Comm>
    ImageTextSource(Comm& comm, config::DatasetList datasets, std::shared_ptr<const A> autoencoder,
                    std::shared_ptr<const T> text_encoder, ImageTextOptions options);
    /// Batches that are being made are given up, and requests to buckets with them.
    ~ImageTextSource() { stores_.interrupt(); }
    ImageTextSource(const ImageTextSource&) = delete;
    ImageTextSource& operator=(const ImageTextSource&) = delete;

    /// Of the first epoch; later ones differ where a data set has a probability below 1, or joins or leaves.
    [[nodiscard]] std::int64_t micro_batches_per_epoch() const {
        return collection_.plan().batches_in(0) * options_.gradient_accumulation_steps;
    }
    /// Of so many epochs from the start; fewer where no data set takes part any more.
    [[nodiscard]] std::int64_t micro_batches_of(std::int64_t epochs) const {
        return collection_.plan().batches_before(epochs) * options_.gradient_accumulation_steps;
    }
    /// Of one rank, of data sets without their own train_batch_size.
    [[nodiscard]] std::int64_t samples_per_micro_batch() const { return options_.train_batch_size; }

    /// This rank's part of the micro-batch at the position, which then moves on by one. For one thread at a time.
    /// Throws what making the batch threw, naming the file.
    [[nodiscard]] ImageTextBatch next();

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
    [[nodiscard]] std::vector<std::string> closing_lines(Comm& comm) const;

    /// What batches follow from, for a comparison with the run that a checkpoint is of: encoders, seed, and for each data set
    /// its samples, what they hold, and its settings. Folders may be moved. The same on every rank.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> identity() const {
        return detail::source_identity(options_, collection_, autoencoder_->id(), text_encoder_->id());
    }

    /// The pictures and buckets that are trained on.
    [[nodiscard]] const datasets::Collection& collection() const noexcept { return collection_; }

private:
    /// What a data set of the collection has besides; the two lists go side by side.
    struct Sources {
        Store pictures;
        TensorCache<Store> latents;
        std::string place;  // of the pictures, the same on all ranks: part of what latents are known by
        std::size_t texts;  // index in texts_
        datasets::CaptionRule captions;
        datasets::LatentCaching caching;
    };
    /// A picture as it is shown: in which frame, and with caching each_epoch in which epoch.
    struct View {
        std::size_t dataset;
        const datasets::Sample* sample;
        pictures::Frame frame;
        std::int64_t epoch;
    };
    /// A cache entry that no batch needs any more.
    struct Stale {
        std::size_t dataset;
        std::string identity;
    };

    void arrange() {
        collection_.arrange(shape_, options_.seed, options_.allow_dataset_oversubscription,
                            options_.data_backend_sampling);
    }
    template <class Comm>
    void require_writable_caches(Comm& comm) const;
    template <class Comm>
    void fill_latents(Comm& comm);
    template <class Comm>
    void fill_texts(Comm& comm);
    template <class Comm>
    void require_same_settings(Comm& comm) const;
    template <class Comm>
    void open_stores(Comm& comm);
    template <class Comm, class Work>
    void fill_share(Comm& comm, std::string_view what, std::size_t count, const Work& work);
    template <class Comm>
    void clear_epochs(Comm& comm) const;
    template <class Comm>
    void remove_leftovers(Comm& comm);

    [[nodiscard]] std::string identity_of(const View& view) const;
    [[nodiscard]] NamedTensors make_latents(const View& view) const;
    [[nodiscard]] std::pair<NamedTensors, CacheOutcome> latents_of(const View& view) const;
    [[nodiscard]] std::pair<NamedTensors, CacheOutcome> text_of(std::size_t texts, const std::string& caption) const;
    [[nodiscard]] ImageTextBatch make_batch(std::int64_t position, const std::atomic<bool>& stop);
    void note_latents(const View& view, CacheOutcome outcome);
    void end_epochs_before(std::int64_t epoch);
    void remove_some_stale();

    ImageTextOptions options_;
    config::DatasetList list_;
    datasets::Stores<Store> stores_;
    std::shared_ptr<const A> autoencoder_;
    std::shared_ptr<const T> text_encoder_;
    datasets::BatchShape shape_;
    std::int64_t rank_;
    std::unique_ptr<datasets::DecodeMemory> decoding_;
    datasets::Collection collection_;
    std::vector<Sources> sources_;
    std::vector<TensorCache<Store>> texts_;  // in the order of list_.text_embeds
    bool ends_epochs_ = false;               // a data set is cached each_epoch
    std::int64_t leftovers_ = 0;             // temporary files of killed runs that the ranks removed from the caches
    std::int64_t position_ = 0;

    mutable std::mutex mutex_;  // of what follows
    datasets::CacheReport latents_report_;
    datasets::CacheReport texts_report_;
    detail::Remade remade_latents_;  // while training, by this rank
    detail::Remade remade_texts_;
    std::map<std::int64_t, std::vector<Stale>> of_epoch_;  // entries that this rank wrote for one epoch
    std::vector<Stale> stale_;

    std::unique_ptr<OrderedStream<ImageTextBatch>> stream_;  // last: its threads use everything above
};

}  // namespace strata::data

#include <strata/data/detail/image_text_source.hpp>
#include <strata/data/detail/source_identity.hpp>

#ifndef STRATA_COMPILED
#include <strata/data/impl/image_text_source.ipp>
#endif
