#pragma once
// strata/webhooks/impl/request.ipp - payloads, signatures, embeds, and pictures as parts or as text.

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/core/error.hpp>
#include <strata/core/text.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/digest.hpp>
#include <strata/webhooks/impl/event.ipp>
#include <strata/webhooks/request.hpp>

namespace strata::webhooks {

namespace detail {

struct EventPicture {
    std::string name;
    std::string_view type;
    std::vector<std::byte> bytes;
};

inline std::string_view picture_type(const std::filesystem::path& file) {
    const std::string extension = core::lower_case(file.extension().string());
    if (extension == ".png") return "image/png";
    if (extension == ".jpg" || extension == ".jpeg") return "image/jpeg";
    return extension == ".webp" ? "image/webp" : "application/octet-stream";
}

/// Those that are there, as far as there is room; `left_out` counts the others.
inline std::vector<EventPicture> pictures_of(const Delivery::Waiting& one, const std::filesystem::path& below,
                                             std::size_t most, std::uint64_t& room, std::size_t& left_out) {
    std::vector<EventPicture> pictures;
    for (const std::string& path : one.event->pictures) {
        const std::filesystem::path file = below / path;
        std::error_code failed;
        const std::uint64_t size = std::filesystem::file_size(file, failed);
        if (one.no_pictures || failed || size > room || pictures.size() >= most) {
            ++left_out;
            continue;
        }
        try {
            pictures.push_back({file.filename().string(), picture_type(file), storage::read_file(file)});
            room -= std::min<std::uint64_t>(room, pictures.back().bytes.size());
        } catch (const Error&) {  // removed meanwhile
            ++left_out;
        }
    }
    return pictures;
}

inline std::string text_at(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

inline std::string count_text(std::int64_t count, std::string_view one, std::string_view more) {
    return std::to_string(count) + " " + std::string{count == 1 ? one : more};
}

inline std::string pictures_missing(std::size_t count) {
    return count_text(static_cast<std::int64_t>(count), "picture", "pictures") + " not attached";
}

// ---- raw ---------------------------------------------------------------------------------------------------------------

inline std::string raw_body(const WebhookOptions& options, const Delivery::Waiting& one,
                            const std::filesystem::path& below, std::int64_t dropped) {
    nlohmann::json body = nlohmann::json::parse(one.event->payload, nullptr, false);
    if (!body.is_object()) body = {{"id", one.event->id}, {"type", name_of(one.event->kind)}};
    if (!options.message_prefix.empty()) body["message_prefix"] = options.message_prefix;
    if (one.replaced > 0) body["replaced"] = one.replaced;
    if (dropped > 0) body["dropped"] = dropped;
    if (options.attach_samples && !one.event->pictures.empty()) {
        std::size_t left_out = 0;
        std::uint64_t room = discord::file_bytes;
        nlohmann::json images = nlohmann::json::array();
        for (const EventPicture& picture : pictures_of(one, below, discord::most_files, room, left_out))
            images.push_back("data:" + std::string{picture.type} + ";base64," + storage::to_base64(picture.bytes));
        body["images"] = std::move(images);
        if (left_out > 0) body["images_missing"] = left_out;
    }
    return text_of(body);
}

// ---- Discord -----------------------------------------------------------------------------------------------------------

/// What a person reads under an embed's title.
inline std::string description_of(const nlohmann::json& payload) {
    std::string text = text_at(payload, "message");
    const auto line = [&](const std::string& words) { text += (text.empty() ? "" : "\n") + words; };
    if (const auto stage = payload.find("stage"); stage != payload.end() && stage->is_object()) {
        line(text_at(*stage, "status"));
        if (stage->contains("progress") && (*stage)["progress"].contains("percent"))
            line((*stage)["progress"]["percent"].dump() + " %");
    }
    if (const auto progress = payload.find("progress"); progress != payload.end() && progress->is_object())
        line("step " + progress->value("current", nlohmann::json(0)).dump() + " of " +
             progress->value("total", nlohmann::json(0)).dump());
    if (const auto data = payload.find("data"); data != payload.end() && data->is_object())
        for (const auto& [name, value] : data->items())
            if (value.is_number()) line(name + ": " + value.dump());
    if (const auto checkpoint = payload.find("checkpoint"); checkpoint != payload.end() && checkpoint->is_object())
        line(text_at(*checkpoint, "path"));
    if (const auto fault = payload.find("fault"); fault != payload.end() && fault->is_object()) {
        line("fault: " + text_at(*fault, "type"));
        if (fault->contains("action_taken")) line("action: " + text_at(*fault, "action_taken"));
    }
    return text;
}

constexpr int colour_of(Severity severity) noexcept {
    constexpr std::array<int, 5> colours{0x8B0000, 0xD93025, 0xF9AB00, 0x1A73E8, 0x9AA0A6};
    return colours.at(static_cast<std::size_t>(severity));
}

inline std::size_t characters_in(std::string_view text) {
    std::size_t count = 0;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte & 0xC0U) != 0x80U) count += byte >= 0xF0 ? 2U : 1U;
    }
    return count;
}

inline std::string footer_of(const nlohmann::json& payload) {
    std::string text = text_at(payload, "host");
    if (payload.contains("rank")) text += (text.empty() ? "rank " : ", rank ") + payload["rank"].dump();
    return cut_characters(text + (text.empty() ? "id " : ", id ") + text_at(payload, "id"), 256);
}

struct DiscordMessage {
    nlohmann::json json;
    std::vector<EventPicture> files;
};

inline DiscordMessage discord_message(const WebhookOptions& options, std::span<const Delivery::Waiting> events,
                                      std::string_view run, const std::filesystem::path& below, std::int64_t dropped) {
    DiscordMessage message;
    nlohmann::json embeds = nlohmann::json::array();
    std::string content = "(" + (options.message_prefix.empty() ? std::string{run} : options.message_prefix) + ")";
    std::uint64_t bytes = discord::file_bytes;
    const std::size_t share = discord::message_characters / std::max<std::size_t>(1, events.size());
    for (const Delivery::Waiting& one : events) {
        nlohmann::json payload = nlohmann::json::parse(one.event->payload, nullptr, false);
        if (!payload.is_object()) payload = {{"id", one.event->id}};
        std::size_t left_out = 0;
        std::vector<EventPicture> pictures;
        if (options.attach_samples)
            pictures = pictures_of(one, below, discord::most_files - message.files.size(), bytes, left_out);
        std::string title = text_at(payload, "title");
        if (title.empty()) title = std::string{name_of(one.event->kind)};
        nlohmann::json embed{{"title", cut_characters(title, discord::title_characters)},
                             {"color", colour_of(one.event->severity)},
                             {"footer", {{"text", footer_of(payload)}}}};
        if (payload.contains("timestamp")) embed["timestamp"] = payload["timestamp"];
        std::string description = description_of(payload);
        if (left_out > 0) description += (description.empty() ? "" : "\n") + pictures_missing(left_out);
        const std::size_t used = characters_in(embed["title"].get<std::string>()) +
                                 characters_in(embed["footer"]["text"].get<std::string>());
        const std::size_t room = share > used ? std::min(share - used, discord::description_characters) : 0;
        description = cut_characters(description, room);
        if (!description.empty()) embed["description"] = std::move(description);
        for (EventPicture& picture : pictures) {
            picture.name = std::to_string(message.files.size()) + "-" + picture.name;
            std::replace_if(
                picture.name.begin(), picture.name.end(),
                [](unsigned char c) { return !core::is_unreserved(static_cast<char>(c)); }, '_');
            if (!embed.contains("image")) embed["image"] = {{"url", "attachment://" + picture.name}};
            message.files.push_back(std::move(picture));
        }
        embeds.push_back(std::move(embed));
        content += (events.size() == 1 ? " " : "\n") + title;
    }
    if (dropped > 0)
        content += "\n" + count_text(dropped, "event was", "events were") + " dropped, because too many waited";
    message.json = {{"content", cut_characters(content, discord::content_characters)},
                    {"embeds", std::move(embeds)},
                    {"allowed_mentions", {{"parse", nlohmann::json::array()}}}};  // a caption may say @everyone
    return message;
}

/// multipart/form-data (RFC 7578). Returns its boundary.
inline std::string make_multipart(const DiscordMessage& message, std::string& body) {
    const std::string boundary = "strata-" + random_digits() + random_digits();
    const auto part = [&](const std::string& name, std::string_view type) {
        body += "--" + boundary + "\r\nContent-Disposition: form-data; " + name + "\r\nContent-Type: ";
        body += type;
        body += "\r\n\r\n";
    };
    part("name=\"payload_json\"", "application/json");
    body += text_of(message.json);
    for (std::size_t i = 0; i < message.files.size(); ++i) {
        const EventPicture& file = message.files[i];
        body += "\r\n";
        part("name=\"files[" + std::to_string(i) + "]\"; filename=\"" + file.name + "\"", file.type);
        body.append(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
    }
    body += "\r\n--" + boundary + "--\r\n";
    return boundary;
}

}  // namespace detail

STRATA_INLINE std::string cut_characters(std::string_view text, std::size_t most) {
    if (detail::characters_in(text) <= most) return std::string{text};
    if (most == 0) return {};
    std::size_t count = 0, end = 0;
    while (end < text.size()) {
        const auto lead = static_cast<unsigned char>(text[end]);
        const std::size_t width = lead >= 0xF0 ? 2 : 1;
        if (count + width > most - 1) break;
        count += width;
        do {
            ++end;
        } while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U);
    }
    return std::string{text.substr(0, end)} + "…";
}

STRATA_INLINE Request make_request(const WebhookOptions& options, std::span<const Delivery::Waiting> events,
                                   std::string_view run, const std::filesystem::path& below, std::int64_t dropped,
                                   std::chrono::system_clock::time_point now) {
    Request request;
    std::string type = "application/json";
    if (options.webhook_type == WebhookType::raw) {
        request.body = detail::raw_body(options, events.front(), below, dropped);
    } else {
        const detail::DiscordMessage message = detail::discord_message(options, events, run, below, dropped);
        if (message.files.empty())
            request.body = detail::text_of(message.json);
        else
            type = "multipart/form-data; boundary=" + detail::make_multipart(message, request.body);
    }
    std::string ids, kinds;
    for (const Delivery::Waiting& one : events) {
        ids += (ids.empty() ? "" : ", ") + one.event->id;
        const std::string kind{name_of(one.event->kind)};
        if (kinds.find(kind) == std::string::npos) kinds += (kinds.empty() ? "" : ", ") + kind;
    }
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
    request.headers = {{"Content-Type", std::move(type)},
                       {"User-Agent", "strata"},
                       {"X-Strata-Event", std::move(kinds)},
                       {"X-Strata-Event-Id", std::move(ids)},
                       {"X-Strata-Timestamp", std::to_string(seconds)}};
    if (!options.auth_token.empty()) request.secret_headers.push_back({"X-API-Key", options.auth_token.reveal()});
    if (!options.secret.empty()) {
        const auto mac = storage::hmac_sha256(core::bytes_of(options.secret.reveal()), request.body);
        request.secret_headers.push_back({"X-Strata-Signature", "sha256=" + storage::to_hex(mac)});
    }
    return request;
}

}  // namespace strata::webhooks
