#pragma once
// strata/webhooks/impl/event.ipp - payloads, as SimpleTuner's users know them, with an id, a host and a rank.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <random>

#include <nlohmann/json.hpp>

#include <strata/webhooks/event.hpp>

namespace strata::webhooks {

namespace detail {

constexpr std::size_t most_message_bytes = 32'768;

/// JSON as a text, whatever bytes are in it.
inline std::string text_of(const nlohmann::json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// At most `most` bytes, cut between two characters.
inline std::string cut_bytes(std::string text, std::size_t most) {
    if (text.size() <= most) return text;
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text.resize(end);
    return text + "…";
}

inline nlohmann::json number(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

inline nlohmann::json progress_json(const EventProgress& progress) {
    nlohmann::json json{{"current", progress.current}, {"total", progress.total}};
    if (!progress.label.empty()) json["label"] = progress.label;
    if (progress.total > 0) {
        const double share = 100.0 * static_cast<double>(progress.current) / static_cast<double>(progress.total);
        json["percent"] = std::round(10.0 * share) / 10.0;
    }
    if (progress.eta_seconds) json["eta_seconds"] = number(*progress.eta_seconds);
    return json;
}

constexpr std::string_view name_of(StageStatus status) noexcept {
    constexpr std::array<std::string_view, 3> names{"running", "completed", "failed"};
    return names.at(static_cast<std::size_t>(status));
}

}  // namespace detail

STRATA_INLINE double interval_of(const WebhookOptions& options, EventKind kind) noexcept {
    switch (kind) {
        case EventKind::stage:
            return options.stage_interval_seconds;
        case EventKind::status:
            return options.status_interval_seconds;
        case EventKind::checkpoint:
            return options.checkpoint_interval_seconds;
        case EventKind::notification:
            return options.notification_interval_seconds;
        case EventKind::error:
            return options.error_interval_seconds;
        case EventKind::gpu_fault:
            return options.fault_interval_seconds;
    }
    return 0;
}

STRATA_INLINE Event stage_event(std::string_view key, std::string_view label, StageStatus status,
                                const std::optional<EventProgress>& progress, std::string message) {
    nlohmann::json stage{{"key", key}, {"label", label}, {"status", detail::name_of(status)}};
    if (progress) stage["progress"] = detail::progress_json(*progress);
    return {.kind = EventKind::stage,
            .severity = status == StageStatus::failed ? Severity::error : Severity::info,
            .title = std::string{label},
            .message = std::move(message),
            .details = detail::text_of({{"stage", std::move(stage)}}),
            .replaces = progress && status == StageStatus::running ? "stage " + std::string{key} : ""};
}

STRATA_INLINE Event status_event(std::string_view status, const EventProgress& progress, const Numbers& numbers) {
    nlohmann::json data{{"status", status}};
    for (const auto& [name, value] : numbers) data[name] = detail::number(value);
    return {.kind = EventKind::status,
            .title = "Training " + std::string{status},
            .details = detail::text_of({{"data", std::move(data)}, {"progress", detail::progress_json(progress)}}),
            .replaces = status == "running" ? "status" : ""};
}

STRATA_INLINE Event checkpoint_event(const std::filesystem::path& path, std::string_view label, bool is_final) {
    return {.kind = EventKind::checkpoint,
            .title = "Checkpoint " + std::string{label},
            .details =
                detail::text_of({{"checkpoint", {{"path", path.string()}, {"label", label}, {"is_final", is_final}}}})};
}

STRATA_INLINE Event notification_event(Severity severity, std::string title, std::string message) {
    return {.kind = EventKind::notification,
            .severity = severity,
            .title = std::move(title),
            .message = std::move(message)};
}

STRATA_INLINE Event error_event(std::string message, std::string title) {
    return {.kind = EventKind::error,
            .severity = Severity::error,
            .title = std::move(title),
            .message = std::move(message)};
}

STRATA_INLINE QueuedEvent queued(const Event& event, const Origin& origin, std::string id,
                                 std::chrono::system_clock::time_point now, const std::filesystem::path& below) {
    nlohmann::json payload = nlohmann::json::parse(event.details, nullptr, false);
    if (!payload.is_object()) payload = nlohmann::json::object();
    payload["type"] = name_of(event.kind);
    payload["id"] = id;
    payload["severity"] = name_of(event.severity);
    payload["job_id"] = origin.job_id;
    payload["timestamp"] = iso_time(now);
    payload["host"] = origin.host;
    payload["rank"] = origin.rank;
    payload["world"] = origin.world;
    if (!event.title.empty()) payload["title"] = detail::cut_bytes(event.title, 1024);
    if (!event.message.empty()) payload["message"] = detail::cut_bytes(event.message, detail::most_message_bytes);
    QueuedEvent queued{.id = std::move(id),
                       .kind = event.kind,
                       .severity = event.severity,
                       .replaces = event.replaces,
                       .payload = detail::text_of(payload)};
    for (const std::filesystem::path& picture : event.pictures) {
        const std::filesystem::path relative = picture.lexically_relative(below);
        const bool is_below = !relative.empty() && *relative.begin() != "..";
        queued.pictures.push_back((is_below ? relative : std::filesystem::absolute(picture)).string());
    }
    return queued;
}

STRATA_INLINE std::string iso_time(std::chrono::system_clock::time_point time) {
    using namespace std::chrono;
    const auto whole = floor<milliseconds>(time.time_since_epoch()).count();
    const auto second = static_cast<std::time_t>(floor<seconds>(time.time_since_epoch()).count());
    std::tm parts{};
    ::gmtime_r(&second, &parts);
    std::array<char, 64> date{};
    std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    std::array<char, 8> rest{};
    std::snprintf(rest.data(), rest.size(), ".%03dZ", static_cast<int>(((whole % 1000) + 1000) % 1000));
    return std::string{date.data()} + rest.data();
}

STRATA_INLINE std::string random_digits() {
    std::random_device device;
    std::array<char, 20> text{};
    std::snprintf(text.data(), text.size(), "%08x%08x", device(), device());
    return text.data();
}

}  // namespace strata::webhooks
