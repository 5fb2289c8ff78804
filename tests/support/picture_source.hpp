#pragma once
// tests/support/picture_source.hpp - a folder of captioned pictures and an PictureSource of it.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/comm/self_comm.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "fake_encoders.hpp"
#include "pictures.hpp"
#include "prepared.hpp"
#include "temporary_folder.hpp"

namespace strata_test {

/// Without waiting for the disk, which is most of the time of a test.
inline void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    strata::storage::write_file(path, bytes, strata::storage::Durability::process_end);
}
inline void write_file(const std::filesystem::path& path, std::string_view text) {
    write_file(path, std::as_bytes(std::span{text.data(), text.size()}));
}

/// A folder of 24 square and 12 wide pictures; picture i has the colour (10 i, 0, 0) and a caption of i + 1 letters.
struct PictureSource {
    using Source = strata::data::PictureSource<FakeRecipe, strata::Local>;

    TemporaryFolder folder;
    std::shared_ptr<MeanCodec> codec = std::make_shared<MeanCodec>();
    std::shared_ptr<LengthText> text = std::make_shared<LengthText>();
    strata::data::SourceOptions options;

    PictureSource() {
        for (int i = 0; i < 36; ++i) {
            const std::string stem = (i < 10 ? "p0" : "p") + std::to_string(i);
            write_file(data() / (stem + ".png"),
                       plain_png(i < 24 ? 64 : 100, 64, static_cast<std::uint8_t>(i * 7), 0, 0));
            write_file(data() / (stem + ".txt"), std::string(static_cast<std::size_t>(i) + 1, 'x'));
        }
        options.train_batch_size = 4;
        options.aspect_bucket_alignment = 16;
        options.caption_dropout_probability = 0;
        options.threads = 2;
    }
    [[nodiscard]] std::filesystem::path data() const { return folder.path() / "data"; }
    [[nodiscard]] strata::config::DatasetList list() const {
        strata::config::DatasetList list;
        strata::config::ImageDataset images;
        images.id = "pictures";
        images.instance_data_dir = data();
        images.cache_dir_vae = folder.path() / "vae";
        images.text_embeds = "text";
        images.resolution = 64;
        list.images.push_back(images);
        strata::config::TextEmbeds embeds;
        embeds.id = "text";
        embeds.cache_dir = folder.path() / "text";
        list.text_embeds.push_back(embeds);
        return list;
    }
    [[nodiscard]] std::unique_ptr<Source> open() const {
        static strata::comm::SelfComm comm;  // outlives every source
        return prepared<Source>(comm, list(), codec, text, options);
    }
    [[nodiscard]] std::vector<std::filesystem::path> latent_files() const {
        std::vector<std::filesystem::path> files;
        for (const auto& entry : std::filesystem::recursive_directory_iterator{folder.path() / "vae"})
            if (entry.is_regular_file()) files.push_back(entry.path());
        return files;
    }
};

}  // namespace strata_test
