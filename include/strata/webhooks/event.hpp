#pragma once
// strata/webhooks/event.hpp - Event: one thing that a run tells the world, and the functions that make those that there are.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/options/webhook_options.hpp>

namespace strata::webhooks {

enum class EventKind : std::uint8_t { stage, status, checkpoint, notification, error, gpu_fault };

/// `type` of payloads.
inline constexpr std::array<std::string_view, 6> event_kind_names{
    "lifecycle.stage", "training.status", "training.checkpoint", "notification", "error", "gpu.fault"};
[[nodiscard]] constexpr std::string_view name_of(EventKind kind) noexcept {
    return event_kind_names.at(static_cast<std::size_t>(kind));
}

/// The least time between two events of a kind, in seconds.
[[nodiscard]] double interval_of(const WebhookOptions& options, EventKind kind) noexcept;

/// What is told, without what is the same for all events of a rank.
struct Event {
    EventKind kind = EventKind::notification;
    Severity severity = Severity::info;
    std::string title{};
    std::string message{};
    std::string details = "{}";                     ///< a JSON object: what payloads of this kind have besides
    std::vector<std::filesystem::path> pictures{};  ///< files, read when the event is sent
    std::string
        replaces{};  ///< an older event with the same text that still waits is not sent any more; empty: none is
};

/// How far something has come.
struct EventProgress {
    std::string label{};
    std::int64_t current = 0;
    std::int64_t total = 0;
    std::optional<double> eta_seconds{};
};
using Numbers = std::vector<std::pair<std::string, double>>;  ///< names and values; one that is not finite is null

enum class StageStatus : std::uint8_t { running, completed, failed };

/// `lifecycle.stage`.
///
///   key    of SimpleTuner's stages: "init_resume_checkpoint", "checkpoint_save", "training_complete", "training_abort"
///   label  for people: "Saving a checkpoint"
[[nodiscard]] Event stage_event(std::string_view key, std::string_view label, StageStatus status,
                                const std::optional<EventProgress>& progress = {}, std::string message = {});
/// `training.status`.
///
///   status   "running", "completed"
///   numbers  loss, learning_rate, epoch, effective_batch_size
[[nodiscard]] Event status_event(std::string_view status, const EventProgress& progress, const Numbers& numbers);
/// `training.checkpoint`.
[[nodiscard]] Event checkpoint_event(const std::filesystem::path& path, std::string_view label, bool is_final);
[[nodiscard]] Event notification_event(Severity severity, std::string title, std::string message);
/// `error`, of severity error.
[[nodiscard]] Event error_event(std::string message, std::string title = "Error");

/// Who tells.
struct Origin {
    std::string job_id{};
    std::string host{};
    int rank = 0;
    int world = 1;
    std::string run{};  ///< what messages begin with where no message_prefix is set
};

/// An event as the queue has it.
struct QueuedEvent {
    std::string id{};  ///< no other event of any run has it
    EventKind kind = EventKind::notification;
    Severity severity = Severity::info;
    std::string replaces{};
    std::string payload = "{}";           ///< a JSON object, as raw webhooks get it
    std::vector<std::string> pictures{};  ///< paths, below the run's folder where they can be
    std::vector<std::string> to{};        ///< names of webhooks that it has not been delivered to
};

/// Its payload is cut to 64 KiB at most, by its message.
///
///   below  the run's folder
[[nodiscard]] QueuedEvent queued(const Event& event, const Origin& origin, std::string id,
                                 std::chrono::system_clock::time_point now, const std::filesystem::path& below);

/// "2026-11-23T15:12:47.123Z"
[[nodiscard]] std::string iso_time(std::chrono::system_clock::time_point time);
/// Sixteen hexadecimal digits of the system's random numbers.
[[nodiscard]] std::string random_digits();

}  // namespace strata::webhooks

#ifndef STRATA_COMPILED
#include <strata/webhooks/impl/event.ipp>
#endif
