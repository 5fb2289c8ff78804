#pragma once
// strata/data/detail/picture_source_stream.hpp - batches of a source, made ahead and handed out in order.

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/core/random.hpp>
#include <strata/data/detail/picture_source_body.hpp>

namespace strata::data::detail {

template <class Store>
void PictureSourceBody<Store>::require_prepared() const {
    if (!prepared_)
        throw Error{Errc::unprepared, "batches are asked of a source that is not prepared",
                    "call its prepare() on all ranks first, or fit(source), which does"};
}

template <class Store>
std::array<double, steps> PictureSourceBody<Store>::step_seconds() const {
    std::array<double, steps> seconds{};
    if (stream_)
        for (std::size_t s = 0; s < steps; ++s) seconds[s] = stream_->seconds(static_cast<Step>(s));
    return seconds;
}

template <class Store>
std::string PictureSourceBody<Store>::bottleneck() const {
    std::array<double, steps> seconds = step_seconds();
    for (std::size_t s = 0; s < steps; ++s) seconds[s] /= bounds_.calls[s];
    const auto most = std::max_element(seconds.begin(), seconds.end());
    return *most > 0 ? std::string{work_of(static_cast<Step>(most - seconds.begin()))} : std::string{};
}

template <class Store>
std::shared_ptr<void> PictureSourceBody<Store>::next_batch() {
    require_prepared();
    if (ends_epochs_)
        end_epochs_before(collection_.plan().batch(position_ / options_.gradient_accumulation_steps, 0, 0).epoch);
    while (true) {
        if (!stream_)
            stream_ = std::make_unique<Stream>(
                graph_steps(), [this](std::int64_t position) { return visits_of(position); }, position_,
                options_.prefetch_batches, bounds_, threads_);
        try {
            std::shared_ptr<void> made = std::move(stream_->next()->made);
            ++position_;
            return made;
        } catch (const PictureFailure& failure) {
            const std::string name = name_of(failure.dataset, *failure.sample);
            if (options_.on_broken_sample == config::OnBrokenSample::stop)
                throw Error{failure.code(), name + " cannot be used: " + failure.problem(),
                            failure.fix() + ", or set on_broken_sample to replace"};
            broken_.add(*failure.sample, {list_.images[failure.dataset].id,
                                          sources_[failure.dataset].pictures.where(failure.sample->key),
                                          datasets::SkipReason::unreadable, failure.problem()});
            stream_.reset();  // batches are planned anew from here, without it
        }
    }
}

/// The place in a bucket that takes the turn of `place`: itself, or the next that is not known to be broken.
template <class Store>
std::size_t PictureSourceBody<Store>::usable_place(const datasets::Bucket& bucket, std::size_t place) const {
    const datasets::PictureSet& set = collection_.sets()[bucket.dataset];
    const std::size_t count = bucket.samples.size();
    for (std::size_t before = 0; before < count; ++before) {
        const std::size_t next = datasets::BrokenSamples::place_of(place, before, count);
        if (!broken_.contains(set.samples[bucket.samples[next]])) return next;
    }
    datasets::throw_broken_bucket(bucket,
                                  sources_[bucket.dataset].pictures.where(set.samples[bucket.samples[place]].key));
}

template <class Store>
std::string PictureSourceBody<Store>::name_of(std::size_t dataset, const datasets::Sample& sample) const {
    return "sample '" + sources_[dataset].pictures.where(sample.key) + "' of data set '" + list_.images[dataset].id +
           "'";
}

/// This rank's part of a micro-batch.
template <class Store>
datasets::GlobalBatch PictureSourceBody<Store>::part_of(std::int64_t micro_batch) const {
    const std::int64_t accumulation = options_.gradient_accumulation_steps;
    return collection_.plan().part(micro_batch / accumulation, micro_batch % accumulation * shape_.ranks + rank_,
                                   shape_.ranks * accumulation);
}

/// What this rank shows in a micro-batch.
template <class Store>
std::shared_ptr<typename PictureSourceBody<Store>::Group> PictureSourceBody<Store>::visits_of(
    std::int64_t position) const {
    datasets::GlobalBatch global = part_of(position);
    const auto dataset = static_cast<std::size_t>(global.dataset);
    const datasets::PictureSet& set = collection_.sets()[dataset];
    const datasets::Bucket& bucket = collection_.buckets()[set.first_bucket + static_cast<std::size_t>(global.bucket)];
    if (options_.each_once) {
        // Positions and places in a batch depend on the number of ranks, and what is drawn must not.
        global.visits.resize(static_cast<std::size_t>(std::max<std::int64_t>(global.fresh, 1)));
        global.random = core::combine({options_.seed, SourcePurpose::bucket, core::number_of(set.settings.id),
                                       static_cast<std::uint64_t>(global.bucket)});
        for (datasets::Visit& visit : global.visits)
            visit.random = core::combine(
                {options_.seed, SourcePurpose::sample, core::number_of(set.settings.id),
                 core::number_of(set.samples[bucket.samples[static_cast<std::size_t>(visit.sample)]].key)});
    }
    const pictures::PictureSize size = pictures::drawn(bucket.shapes, global.random);
    auto group = std::make_shared<Group>();
    for (const datasets::Visit& visit : global.visits) {
        SampleWork& work = group->samples.emplace_back();
        work.dataset = dataset;
        const auto place = static_cast<std::size_t>(visit.sample);
        const std::size_t usable = usable_place(bucket, place);
        work.show(set.samples[bucket.samples[usable]]);
        if (usable != place) work.replaced = &set.samples[bucket.samples[place]];
        const std::uint64_t crop =
            core::combine({options_.seed, SourcePurpose::crop, core::number_of(set.settings.id),
                           core::number_of(work.sample->key), static_cast<std::uint64_t>(global.epoch)});
        work.frame = set.framer.frame(work.sample->size, size, crop);
        work.epoch = global.epoch;
        work.texts = sources_[dataset].texts;
        work.random = visit.random;
        work.is_dropped = core::unit_interval(core::combine({visit.random, SourcePurpose::caption_dropout})) <
                          options_.caption_dropout_probability;
        if (work.is_dropped) work.caption = dropped_;
    }
    return group;
}

/// After an epoch its entries are of no use; they are removed a few at a time by those who make batches.
template <class Store>
void PictureSourceBody<Store>::end_epochs_before(std::int64_t epoch) {
    const std::lock_guard lock{mutex_};
    while (!of_epoch_.empty() && of_epoch_.begin()->first < epoch) {
        std::vector<Stale>& entries = of_epoch_.begin()->second;
        stale_.insert(stale_.end(), std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()));
        of_epoch_.erase(of_epoch_.begin());
    }
}

template <class Store>
void PictureSourceBody<Store>::remove_some_stale() {
    for (std::int64_t left = 2 * largest_batch_; left > 0; --left) {  // more than a batch makes
        Stale entry;
        {
            const std::lock_guard lock{mutex_};
            if (stale_.empty()) return;
            entry = std::move(stale_.back());
            stale_.pop_back();
        }
        sources_[entry.dataset].latents.remove(entry.identity);
    }
}

}  // namespace strata::data::detail
