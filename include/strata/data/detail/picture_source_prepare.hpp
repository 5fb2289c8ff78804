#pragma once
// strata/data/detail/picture_source_prepare.hpp - PictureSource::prepare(): pictures are found, and caches filled.

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/data/detail/picture_source_body.hpp>
#include <strata/datasets/byte_fields.hpp>

namespace strata::data::detail {

template <class Store>
void PictureSourceBody<Store>::prepare() {
    if (prepared_) return;
    collection_ = datasets::discover_all(
        *comm_, list_, stores_, options_.buckets(),
        {options_.index_folder, options_.threads, options_.decode_memory_bytes, options_.progress, options_.stopped});
    arrange();                  // first without the pixels: a bucket that is too small shows before hours of encoding
    require_writable_caches();  // makes the folders, so only when there is something to put into them
    find_cache_keepers();
    remove_leftovers();
    clear_epochs();
    prepare_pictures();
    if (!encodes_pictures_later_) recipe_->release_picture_encoders();
    prepare_captions();
    if (!encodes_captions_later_) recipe_->release_caption_encoders();
    prepared_ = true;
}

/// Of entries that were made.
///
///   where  (task) -> place of the entry
template <class Store>
template <class Where>
datasets::CacheReport PictureSourceBody<Store>::report_of(const std::vector<Missing>& missing, const Where& where) {
    datasets::CacheReport report;
    report.made = static_cast<std::int64_t>(missing.size());
    for (const Missing& one : missing) {
        if (one.why == CacheOutcome::rebuilt) report.rebuilt.push_back(where(one.task));
        if (one.why == CacheOutcome::replaced) report.replaced.push_back(where(one.task));
    }
    std::sort(report.rebuilt.begin(), report.rebuilt.end());
    std::sort(report.replaced.begin(), report.replaced.end());
    return report;
}

template <class Store>
void PictureSourceBody<Store>::prepare_pictures() {
    std::vector<PictureTask> tasks;
    for (const datasets::Bucket& bucket : collection_.buckets()) {
        if (sources_[bucket.dataset].caching != datasets::LatentCaching::ahead) continue;
        const datasets::PictureSet& set = collection_.sets()[bucket.dataset];
        for (const std::size_t i : bucket.samples)
            tasks.push_back({bucket.dataset, i, set.framer.frame(set.samples[i].size, bucket.size)});
    }
    const auto work_of = [&](std::size_t task) {
        SampleWork work;
        work.dataset = tasks[task].dataset;
        work.show(collection_.sets()[work.dataset].samples[tasks[task].index]);
        work.frame = tasks[task].frame;
        work.wants_caption = false;
        return work;
    };
    std::atomic<bool> met_old{false};
    const std::vector<Missing> missing = missing_of("latents looked up", tasks.size(), [&](std::size_t i) {
        SampleWork work = work_of(i);
        const TensorCache<Store>& cache = sources_[work.dataset].latents;
        // Beyond what fits into memory an entry is not read before it is needed, and damage shows then. Where one is of an
        // earlier version the others will be, too: they are made again now and not while training.
        if (know_contents(work) && !met_old && cache.memory().is_full() && cache.contains(picture_identity(work)))
            return CacheOutcome::found;
        look_up_picture(work);  // what nobody has read yet counts as missing: it is looked for when it is read
        if (work.picture_outcome == CacheOutcome::replaced) met_old = true;
        return work.picture_outcome;
    });

    std::vector<std::vector<Missing>> groups;  // each of one size
    // Of what is known to be there: pictures that hold the same are encoded once.
    std::map<std::string, std::size_t> group_of;
    const auto size_of = [&](const Missing& one) { return tasks[one.task].frame.target; };
    const auto together = static_cast<std::size_t>(std::max<std::int64_t>(options_.vae_batch_size, 1));
    std::size_t different = 0;  // in the last group
    for (const Missing& one : missing) {
        SampleWork work = work_of(one.task);
        const bool is_known = know_contents(work);
        if (is_known)
            if (const auto twin = group_of.find(picture_identity(work)); twin != group_of.end()) {
                groups[twin->second].push_back(one);
                continue;
            }
        if (groups.empty() || different == together || !(size_of(groups.back()[0]) == size_of(one))) {
            groups.emplace_back();
            different = 0;
        }
        groups.back().push_back(one);
        ++different;
        if (is_known) group_of.emplace(picture_identity(work), groups.size() - 1);
    }
    const auto begin = [&](const Missing& one) {
        SampleWork work = work_of(one.task);
        work.is_looked_up = true;
        (void)know_contents(work);
        work.picture_outcome = one.why;
        return work;
    };
    datasets::FieldWriter mine;  // task, outcome, and why it failed or nothing
    make("latents", groups, begin, [&](std::size_t task, CacheOutcome outcome, const std::exception_ptr& failure) {
        std::string why;
        try {
            if (failure) std::rethrow_exception(failure);
        } catch (const Error& error) {
            why = error.problem();
        }
        mine << task << static_cast<int>(outcome) << why;
    });

    notes_of_start_ = shared_notes(*comm_);

    std::vector<std::pair<std::size_t, std::string>> failures;
    std::vector<Missing> remade;
    for (const std::string& bytes : comm_->all_gather_varied(mine.bytes()))
        for (datasets::FieldReader fields{bytes}; !fields.empty();) {
            const auto task = static_cast<std::size_t>(fields.integer());
            const auto outcome = static_cast<CacheOutcome>(fields.integer());
            std::string why = fields.text();
            if (!why.empty())
                failures.emplace_back(task, std::move(why));
            else if (outcome != CacheOutcome::found)
                remade.push_back({task, outcome});
        }
    // Hosts with caches of their own make the same entries, and fail at the same pictures.
    std::sort(failures.begin(), failures.end());
    failures.erase(
        std::unique(failures.begin(), failures.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
        failures.end());
    std::sort(remade.begin(), remade.end(), [](const Missing& a, const Missing& b) { return a.task < b.task; });
    remade.erase(
        std::unique(remade.begin(), remade.end(), [](const Missing& a, const Missing& b) { return a.task == b.task; }),
        remade.end());
    latents_report_ = report_of(remade, [&](std::size_t task) {
        SampleWork work = work_of(task);
        (void)know_contents(work);
        return sources_[work.dataset].latents.where(picture_identity(work));
    });
    latents_report_.entries = static_cast<std::int64_t>(tasks.size() - failures.size());
    if (failures.empty()) return;
    if (options_.on_broken_sample == config::OnBrokenSample::replace &&
        !options_.each_once)  // whose turns nobody takes
        replace_later(tasks, std::move(failures));
    else
        leave_out(tasks, std::move(failures));
}

/// They stay in the plan, and their turns go to others.
template <class Store>
void PictureSourceBody<Store>::replace_later(const std::vector<PictureTask>& tasks,
                                             std::vector<std::pair<std::size_t, std::string>> failures) {
    for (auto& [task, text] : failures) {
        const std::size_t d = tasks[task].dataset;
        const datasets::Sample& sample = collection_.sets()[d].samples[tasks[task].index];
        broken_.add_known(sample, {list_.images[d].id, sources_[d].pictures.where(sample.key),
                                   datasets::SkipReason::unreadable, std::move(text)});
    }
    for (const datasets::Bucket& bucket : collection_.buckets()) (void)usable_place(bucket, 0);
}

template <class Store>
void PictureSourceBody<Store>::leave_out(const std::vector<PictureTask>& tasks,
                                         std::vector<std::pair<std::size_t, std::string>> failures) {
    std::vector<std::set<std::size_t>> broken(sources_.size());
    std::vector<datasets::Skipped> why;
    for (auto& [task, text] : failures) {
        const std::size_t d = tasks[task].dataset;
        const datasets::Sample& sample = collection_.sets()[d].samples[tasks[task].index];
        why.push_back({list_.images[d].id, sources_[d].pictures.where(sample.key), datasets::SkipReason::unreadable,
                       std::move(text)});
        broken[d].insert(tasks[task].index);
    }
    collection_.leave_out(broken, std::move(why));
    arrange();
}

template <class Store>
void PictureSourceBody<Store>::prepare_captions() {
    std::set<std::pair<std::size_t, std::string>> unique;
    for (std::size_t d = 0; d < sources_.size(); ++d) {
        const datasets::PictureSet& set = collection_.sets()[d];
        if (set.settings.skip_file_discovery.text) continue;
        const Sources& source = sources_[d];
        if (dropped_) unique.emplace(source.texts, *dropped_);
        for (const datasets::Sample& sample : set.samples)
            for (std::string& caption : source.captions.all(datasets::found_captions(sample, set.settings)))
                unique.emplace(source.texts, std::move(caption));
    }
    const std::vector<std::pair<std::size_t, std::string>> tasks(unique.begin(), unique.end());
    const auto work_of = [&](std::size_t i) {
        SampleWork work;
        work.texts = tasks[i].first;
        work.caption = tasks[i].second;
        return work;
    };
    std::atomic<bool> met_old{false};  // as for pictures
    const std::vector<Missing> missing = missing_of("captions looked up", tasks.size(), [&](std::size_t i) {
        SampleWork work = work_of(i);
        const TensorCache<Store>& cache = texts_[work.texts];
        if (!met_old && cache.memory().is_full() && cache.contains(caption_identity(work))) return CacheOutcome::found;
        look_up_caption(work);
        if (work.caption_outcome == CacheOutcome::replaced) met_old = true;
        return work.caption_outcome;
    });
    std::vector<std::vector<Missing>> groups;
    const auto together = static_cast<std::size_t>(std::max<std::int64_t>(options_.text_encoder_batch_size, 1));
    for (const Missing& one : missing) {
        if (groups.empty() || groups.back().size() == together) groups.emplace_back();
        groups.back().push_back(one);
    }
    const auto begin = [&](const Missing& one) {
        SampleWork work = work_of(one.task);
        work.is_looked_up = true;
        work.caption_outcome = one.why;
        return work;
    };
    make("captions", groups, begin, [](std::size_t, CacheOutcome, const std::exception_ptr&) {});

    texts_report_ = report_of(
        missing, [&](std::size_t task) { return texts_[tasks[task].first].where(caption_identity(work_of(task))); });
    texts_report_.entries = static_cast<std::int64_t>(tasks.size());
}

}  // namespace strata::data::detail
