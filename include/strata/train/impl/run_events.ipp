#pragma once
// strata/train/impl/run_events.ipp - what happens in a run, as events.

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/printable.hpp>
#include <strata/core/text.hpp>
#include <strata/train/run_events.hpp>

namespace strata::train {

namespace detail {

inline std::string step_of_event(std::int64_t step) { return "step " + std::to_string(step); }

/// "pictures listed" and "pictures examined" come first, "latents" and the like behind.
inline const RunStage& stage_of_phase(std::string_view what) noexcept {
    return what.starts_with("pictures ") ? data_stage : cache_stage;
}

}  // namespace detail

STRATA_INLINE void RunEvents::begin(const std::filesystem::path& folder, webhooks::Origin origin,
                                    std::function<void(const std::string&)> say) {
    if (webhooks_.empty() || courier_ != nullptr) return;
    rank_ = origin.rank;
    webhooks::CourierHooks hooks;
    hooks.say = std::move(say);
    courier_ = std::make_unique<webhooks::Courier>(webhooks_, folder, std::move(origin), std::move(hooks));
    courier_->start();
}

STRATA_INLINE void RunEvents::tell(const webhooks::Event& event) noexcept {
    if (courier_ != nullptr) courier_->emit(event);
}

STRATA_INLINE void RunEvents::restarted(const std::string& restarts, const std::string& why) noexcept try {
    if (speaks_for_all()) tell(webhooks::error_event(why, "Restart " + restarts + " after a failure"));
} catch (const std::exception&) {
}

STRATA_INLINE void RunEvents::close_stage(webhooks::StageStatus status) {
    if (!stage_) return;
    const RunStage stage = *std::exchange(stage_, std::nullopt);
    tell(webhooks::stage_event(stage.key, stage.label, status));
}

STRATA_INLINE void RunEvents::begin_stage(const RunStage& stage,
                                          const std::optional<webhooks::EventProgress>& progress) noexcept try {
    if (!speaks_for_all()) return;
    const std::lock_guard lock{stage_mutex_};
    if (stage_ && stage_->key != stage.key) close_stage(webhooks::StageStatus::completed);
    stage_ = stage;
    tell(webhooks::stage_event(stage.key, stage.label, webhooks::StageStatus::running, progress));
} catch (const std::exception&) {  // no memory for an event: the run has other worries, here and below
}

STRATA_INLINE void RunEvents::end_stage(webhooks::StageStatus status) noexcept try {
    const std::lock_guard lock{stage_mutex_};
    close_stage(status);
} catch (const std::exception&) {
}

STRATA_INLINE void RunEvents::phase_goes_on(const PhaseNews& news) noexcept try {
    begin_stage(detail::stage_of_phase(news.what), webhooks::EventProgress{.label = std::string{news.what},
                                                                           .current = news.done,
                                                                           .total = news.total,
                                                                           .eta_seconds = news.seconds_left});
} catch (const std::exception&) {
}

STRATA_INLINE void RunEvents::stage_begins(const RunStage& stage) noexcept { begin_stage(stage, {}); }

STRATA_INLINE void RunEvents::during(const RunStage& stage, core::FunctionRef<void()> work) {
    stage_begins(stage);
    try {
        work();
    } catch (...) {
        end_stage(webhooks::StageStatus::failed);
        throw;
    }
    end_stage(webhooks::StageStatus::completed);
}

STRATA_INLINE void RunEvents::training_begins(std::int64_t step, std::int64_t max_steps) noexcept try {
    if (!speaks_for_all()) return;
    end_stage(webhooks::StageStatus::completed);
    tell(webhooks::stage_event(step > 0 ? "init_resume_checkpoint" : "init_prepare_models",
                               step > 0 ? "Training goes on" : "Training begins", webhooks::StageStatus::completed,
                               webhooks::EventProgress{.label = "steps", .current = step, .total = max_steps}));
} catch (const std::exception&) {
}

STRATA_INLINE void RunEvents::step_done(const StepMetrics& metrics, std::int64_t last_step) noexcept try {
    if (!speaks_for_all()) return;
    webhooks::EventProgress progress{.label = "steps", .current = metrics.step, .total = last_step};
    if (metrics.step > 0 && metrics.seconds > 0)
        progress.eta_seconds =
            metrics.seconds / static_cast<double>(metrics.step) * static_cast<double>(last_step - metrics.step);
    tell(webhooks::status_event("running", progress,
                                {{"loss", metrics.loss},
                                 {"learning_rate", metrics.learning_rate},
                                 {"epoch", metrics.epoch},
                                 {"grad_norm", metrics.grad_norm},
                                 {"samples_per_second", metrics.samples_per_second}}));
} catch (const std::exception&) {
}

STRATA_INLINE void RunEvents::checkpoint_saved(const std::filesystem::path& path, std::int64_t step,
                                               bool is_final) noexcept try {
    if (speaks_for_all()) tell(webhooks::checkpoint_event(path, detail::step_of_event(step), is_final));
} catch (const std::exception&) {
}

STRATA_INLINE void RunEvents::samples_drawn(const std::filesystem::path& folder, const DrawnSamples& drawn) noexcept
    try {
    if (!speaks_for_all()) return;
    std::string prompts;
    for (const std::string& prompt : drawn.prompts) prompts += (prompts.empty() ? "" : "\n") + prompt;
    webhooks::Event event = webhooks::notification_event(webhooks::Severity::info,
                                                         "Samples of " + detail::step_of_event(drawn.step), prompts);
    event.pictures = {folder / drawn.file};
    tell(event);
} catch (const std::exception&) {
}

STRATA_INLINE void RunEvents::straggler_found(const StragglerNote& straggler) noexcept try {
    if (!speaks_for_all()) return;
    const std::string who = "Rank " + std::to_string(straggler.found.rank) + " on " + straggler.condition.host;
    tell(straggler.found.is_slow
             ? webhooks::notification_event(webhooks::Severity::warning, who + " is slow", straggler.line())
             : webhooks::notification_event(webhooks::Severity::info, who + " keeps up again", straggler.line()));
} catch (const std::exception&) {
}

STRATA_INLINE void RunEvents::training_ends(std::int64_t step, std::int64_t max_steps) noexcept try {
    if (!speaks_for_all()) return;
    const bool is_complete = step >= max_steps;
    tell(webhooks::stage_event(is_complete ? "training_complete" : "training_abort",
                               is_complete ? "Training is complete" : "Training stops, and can go on",
                               webhooks::StageStatus::completed,
                               webhooks::EventProgress{.label = "steps", .current = step, .total = max_steps}));
} catch (const std::exception&) {
}

STRATA_INLINE void RunEvents::tell_and_keep(const webhooks::Event& event) noexcept {
    if (courier_ == nullptr) return;
    tell(event);
    static_cast<void>(courier_->keep(std::chrono::seconds{2}));
}

STRATA_INLINE void RunEvents::hangs(const std::string& what) noexcept try {
    tell_and_keep(webhooks::error_event(what, "Ranks wait for each other in vain"));
} catch (const std::exception&) {
}

STRATA_INLINE void RunEvents::failed(const std::exception_ptr& failure) noexcept try {
    if (courier_ == nullptr) return;
    std::string text = "unknown failure";
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        if (error.code() == Errc::interrupted) return;
        text = error.what();
    } catch (const std::exception& error) {
        text = core::printable(core::first_line(error.what()));
    } catch (...) {
    }
    end_stage(webhooks::StageStatus::failed);
    tell(webhooks::error_event(text, "Training failed"));
    tell_and_keep(
        webhooks::stage_event("training_abort", "Training failed", webhooks::StageStatus::failed, {}, std::move(text)));
} catch (const std::exception&) {
}

}  // namespace strata::train
