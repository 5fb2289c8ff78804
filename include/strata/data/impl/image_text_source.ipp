#pragma once
// strata/data/impl/image_text_source.ipp - options from a configuration; pixels to a tensor and rows to a batch.

#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>

#include <ATen/ops/empty.h>

#include <strata/data/decode_image.hpp>
#include <strata/data/image_text_source.hpp>
#include <strata/data/random.hpp>
#include <strata/data/resample.hpp>

namespace strata::data {

STRATA_INLINE ImageTextOptions ImageTextOptions::from(const config::TrainerConfig& config) {
    ImageTextOptions options;
    options.train_batch_size = config.train_batch_size;
    options.gradient_accumulation_steps = config.gradient_accumulation_steps;
    options.seed = static_cast<std::uint64_t>(config.seed);
    options.aspect_bucket_alignment = config.aspect_bucket_alignment;
    options.bucket_mode = config.bucket_mode;
    options.aspect_bucket_rounding = config.aspect_bucket_rounding;
    options.caption_dropout_probability = config.caption_dropout_probability;
    options.allow_dataset_oversubscription = config.allow_dataset_oversubscription;
    options.compress_disk_cache = config.compress_disk_cache;
    options.prefetch_batches = config.dataloader_prefetch_qlen;
    options.cache_memory_bytes = config.cache_memory_mib << 20;
    options.index_folder = config.output_dir / "index";
    return options;
}

namespace detail {

STRATA_INLINE at::Tensor picture_tensor(std::span<const std::byte> file, const Frame& frame, std::string_view source,
                                        ByteBudget& decoding) {
    const PictureSize least{static_cast<std::int64_t>(frame.width), static_cast<std::int64_t>(frame.height)};
    const ByteBudget::Part memory = decoding.take(decode_bytes(image_header(file, source), least));
    const Picture picture = decode_image(file, least, source);
    const at::Tensor tensor_3HW = at::empty({3, frame.target.height, frame.target.width}, at::kFloat);
    resize_and_crop_into(picture, frame,
                         {static_cast<float*>(tensor_3HW.data_ptr()), static_cast<std::size_t>(tensor_3HW.numel())});
    return tensor_3HW;
}

STRATA_INLINE std::string epoch_folder(std::string_view dataset) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number_of(dataset), 16).ptr;
    return "each_epoch/" + std::string{digits.data(), end} + "/";
}

STRATA_INLINE at::Tensor stack_rows(const std::vector<at::Tensor>& rows) {
    std::vector<std::int64_t> shape = rows.front().sizes().vec();
    shape.insert(shape.begin(), static_cast<std::int64_t>(rows.size()));
    const at::Tensor all = at::empty(shape, at::kFloat);
    auto* out = static_cast<std::byte*>(all.data_ptr());
    for (const at::Tensor& row : rows) {
        if (row.sizes() != rows.front().sizes())
            throw Error{Errc::bad_cache_entry, "two entries of one batch have different shapes",
                        "let the encoders return one shape for one size"};
        std::memcpy(out, row.data_ptr(), row.nbytes());
        out += row.nbytes();
    }
    return all;
}

}  // namespace detail

}  // namespace strata::data
