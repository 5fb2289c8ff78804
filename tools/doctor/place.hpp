#pragma once
// tools/doctor/place.hpp - Place: a folder or a bucket that matters to a run, and for what.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <strata/s3/s3_options.hpp>

#include "line.hpp"

namespace strata::tools::doctor {

enum class Purpose : std::uint8_t {
    folder,   ///< a person named it, and nothing else is known
    output,   ///< output_dir: all hosts see it, checkpoints go there
    offload,  ///< state on a disk: each host's own, fast
    cache,    ///< latents and captions: written once, read in every epoch
    data,     ///< pictures: read
};

[[nodiscard]] std::string name_of(Purpose purpose);
/// None for what name_of() has never said.
[[nodiscard]] std::optional<Purpose> purpose_of(const std::string& name);

struct FolderPlace {
    Purpose purpose = Purpose::folder;
    std::filesystem::path folder;
};
struct BucketPlace {
    std::string name;        ///< "s3://bucket/prefix"
    s3::S3Options options;   ///< its data_prefix is the place's
    bool is_written = true;  ///< caches are; of pictures alone nothing is written
};

struct Places {
    std::vector<FolderPlace> folders;
    std::vector<BucketPlace> buckets;

    /// Once each: what is known of several purposes is looked at for each of them.
    void add(Purpose purpose, const std::filesystem::path& folder);
    /// Once each, written if any of them is.
    void add(BucketPlace bucket);
    /// Of Purpose::output, if there is one.
    [[nodiscard]] std::optional<std::filesystem::path> output() const;
};

/// "s3://bucket/prefix", with address and keys where s3::S3Options finds them. Throws Errc::bad_argument for what is none.
[[nodiscard]] BucketPlace bucket_of_url(const std::string& url);

/// Adds what a trainer's configuration or a dataset list names. A file that is refused is a line.
[[nodiscard]] Line add_places_of(const std::filesystem::path& file, Places& places);

}  // namespace strata::tools::doctor
