#pragma once
// strata/datasets/detail/examine.hpp - a rank reads of a picture what it is asked for.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/datasets/byte_budget.hpp>
#include <strata/datasets/caption_files.hpp>
#include <strata/datasets/detail/catalog.hpp>
#include <strata/datasets/detail/picture_reading.hpp>
#include <strata/datasets/for_all.hpp>
#include <strata/pictures/image_header.hpp>
#include <strata/pictures/picture_fault.hpp>
#include <strata/storage/content_hash.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::datasets::detail {

/// Threads that read from a store: requests to a bucket wait most of their time.
template <storage::ObjectStore Store>
int reading_threads(const Store& store, std::int64_t asked) {
    if constexpr (requires { store.requests_at_once(); })
        if (asked == 0 && store.requests_at_once() > 0) return std::min(store.requests_at_once(), 64);
    return threads_for(asked);
}

/// Bytes of a caption file; nothing if there is none.
template <storage::ObjectStore Store>
std::string caption_text(const Store& store, const std::string& key, std::uint64_t most) {
    try {
        const std::vector<std::byte> bytes = store.get_range(key, 0, most + 1);
        if (bytes.size() > most)
            throw Error{Errc::io_failed,
                        "'" + store.where(key) + "' is larger than " + std::to_string(most >> 10) + " KiB",
                        "shorten the caption, or keep it in a table"};
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    } catch (const Error& error) {
        if (error.code() != Errc::not_found) throw;
        return {};
    }
}

/// Does a task. Throws what says nothing about this one file.
template <storage::ObjectStore Store>
ReadAnswer examine(const Store& store, CaptionFile captions, const ReadTask& task, DecodeMemory& memory) {
    ReadAnswer answer{task.index, task.what, {}, {}, {}, {}, {}, {}, {}};
    const auto try_to = [&](const auto& read) -> std::optional<PictureFault> {
        try {
            read();
            return std::nullopt;
        } catch (const Error& error) {
            Verdict verdict = verdict_of(error);
            if (!verdict.failure.empty()) answer.failure = std::move(verdict.failure);
            return verdict.fault;
        }
    };
    const auto too_large = try_to([&] { pictures::require_file_within({}, task.bytes, "it"); });
    if (too_large) {
        if ((task.what & ReadTask::header) != 0) answer.size_fault = too_large;
        if ((task.what & ReadTask::pixels) != 0) answer.pixel_fault = too_large;
    } else if ((task.what & ReadTask::pixels) != 0) {
        const ByteBudget::Part file_memory = memory.files.take(static_cast<std::int64_t>(task.bytes));
        std::vector<std::byte> file;
        (void)try_to([&] {
            storage::VersionedBytes object = storage::get_versioned(store, task.key);
            file = std::move(object.bytes);
            if (file.size() != task.bytes || object.version != task.version)
                throw Error{Errc::io_failed, "'" + store.where(task.key) + "' was changed while it was read",
                            "start again"};
        });
        if (!answer.failure.empty()) return answer;
        answer.content = storage::content_hash(file);
        Look look = look_at(file, memory.pixels);
        answer.failure = std::move(look.failure);
        if (!answer.failure.empty()) return answer;
        if ((task.what & ReadTask::header) != 0) {
            answer.size = look.size;
            if (look.size == pictures::PictureSize{}) answer.size_fault = look.fault;
        }
        answer.pixel_fault = std::move(look.fault);
        answer.note = std::move(look.note);
    } else if ((task.what & ReadTask::header) != 0) {
        answer.size_fault = try_to([&] {
            const pictures::ImageHeader header = pictures::read_image_header(
                [&](std::uint64_t offset, std::size_t length) { return store.get_range(task.key, offset, length); },
                "it");
            require_usable(header);
            answer.size = header.size();
        });
    }
    if ((task.what & ReadTask::caption) != 0 && answer.failure.empty())
        (void)try_to([&] {
            constexpr std::uint64_t most_text = 64 << 10;
            constexpr std::uint64_t most_json = 1 << 20;
            answer.caption = captions == CaptionFile::text
                                 ? caption_from_text(caption_text(store, caption_key(task.key), most_text))
                                 : caption_from_json(caption_text(store, caption_key(task.key, ".json"), most_json));
        });
    return answer;
}

}  // namespace strata::datasets::detail
