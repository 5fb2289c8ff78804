#pragma once
// strata/datasets/impl/picture_reading.ipp - tasks and answers as bytes, verdicts, and a look at all of a file.

#include <utility>

#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/detail/picture_reading.hpp>
#include <strata/datasets/sample_fields.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/picture_fault.hpp>

namespace strata::datasets::detail {

STRATA_INLINE std::string pack(const std::vector<ReadTask>& tasks) {
    FieldWriter fields;
    for (const ReadTask& task : tasks) fields << task.index << task.what << task.key << task.version << task.bytes;
    return fields.bytes();
}

STRATA_INLINE std::vector<ReadTask> unpack_tasks(std::string_view bytes) {
    std::vector<ReadTask> tasks;
    for (FieldReader fields{bytes}; !fields.empty();) {
        ReadTask& task = tasks.emplace_back();
        task.index = static_cast<std::size_t>(fields.integer());
        task.what = static_cast<int>(fields.integer());
        task.key = fields.text();
        task.version = fields.text();
        task.bytes = static_cast<std::uint64_t>(fields.integer());
    }
    return tasks;
}

STRATA_INLINE std::string pack(const std::vector<ReadAnswer>& answers) {
    FieldWriter fields;
    for (const ReadAnswer& answer : answers)
        fields << answer.index << answer.what << answer.failure << answer.size.width << answer.size.height
               << answer.caption << answer.content.text() << answer.size_fault << answer.pixel_fault << answer.note;
    return fields.bytes();
}

STRATA_INLINE std::vector<ReadAnswer> unpack_answers(std::string_view bytes) {
    std::vector<ReadAnswer> answers;
    for (FieldReader fields{bytes}; !fields.empty();) {
        ReadAnswer& answer = answers.emplace_back();
        answer.index = static_cast<std::size_t>(fields.integer());
        answer.what = static_cast<int>(fields.integer());
        answer.failure = fields.text();
        answer.size.width = fields.integer();
        answer.size.height = fields.integer();
        answer.caption = fields.text();
        answer.content = storage::ContentHash::of_text(fields.text());
        fields >> answer.size_fault >> answer.pixel_fault;
        answer.note = fields.text();
    }
    return answers;
}

STRATA_INLINE Verdict verdict_of(const Error& error) {
    switch (error.code()) {
        case Errc::no_picture_library:
            return {PictureFault{SkipReason::unsupported_format, error.problem() + ": " + error.fix(), false}, {}};
        case Errc::unsupported_picture:
            return {PictureFault{SkipReason::unsupported_format, error.problem(), false}, {}};
        case Errc::bad_picture:
        case Errc::picture_too_large:
            return {PictureFault{SkipReason::unreadable, error.problem(), pictures::is_damage(error.code())}, {}};
        case Errc::picture_undecided:
        case Errc::not_found:
        case Errc::io_failed:
        case Errc::object_changed:
        case Errc::url_failed:
            return {std::nullopt, error.what()};
        default:
            throw error;
    }
}

STRATA_INLINE void require_usable(const pictures::ImageHeader& header) {
    pictures::require_within({}, header.stored, "it");
    pictures::require_decoder(header.format, "it");
}

STRATA_INLINE Look look_at(std::span<const std::byte> file, ByteBudget& memory) {
    Look look;
    try {
        pictures::require_file_within({}, file.size(), "it");
        const pictures::ImageHeader header = pictures::image_header(file, "it");
        require_usable(header);
        look.size = header.size();
        const ByteBudget::Part taken = memory.take(pictures::decode_bytes(header));
        look.note = pictures::decode_image(file, header, {}, "it").note;
    } catch (const Error& error) {
        Verdict verdict = verdict_of(error);
        look.fault = std::move(verdict.fault);
        look.failure = std::move(verdict.failure);
    }
    return look;
}

}  // namespace strata::datasets::detail
