#pragma once
// strata/datasets/detail/catalog.hpp - what rank 0 knows of a data set while it is discovered, and what it asks others.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/config/dataset.hpp>
#include <strata/core/inline.hpp>
#include <strata/datasets/detail/picture_reading.hpp>
#include <strata/datasets/discovered.hpp>
#include <strata/datasets/sample_index.hpp>
#include <strata/datasets/sample_table.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::datasets::detail {

/// Where captions are read from.
enum class CaptionFile : std::uint8_t { none, text, json, table };
[[nodiscard]] std::string_view name_of(CaptionFile kind) noexcept;
[[nodiscard]] CaptionFile caption_file(const config::ImageDataset& dataset) noexcept;

/// The table of captions and sizes, if there is one; the list of addresses is one where its captions are used.
[[nodiscard]] std::optional<config::ParquetColumns> table_of(const config::ImageDataset& dataset);

/// On rank 0: the pictures of one data set, from the index, the listing, the table and the answers of the ranks.
class Catalog {
public:
    ///   place  of the data set, which its index belongs to
    Catalog(const config::ImageDataset& dataset, const DiscoverOptions& options, const std::string& place);

    /// False: the listing of an earlier start is used.
    [[nodiscard]] bool needs_listing() const noexcept { return !trusted_; }
    /// Takes the next object of a listing, in the order of keys.
    void add(storage::ObjectInfo&& info);
    void end_listing();

    /// Tells which table there is now; true: it must be read.
    [[nodiscard]] bool begin_table(const std::string& place, const std::string& version);
    void add_row(TableRow&& row);
    void end_table();

    /// Call once when nothing more is added: what is left to be read.
    void plan_reading();
    [[nodiscard]] std::int64_t to_examine() const noexcept { return static_cast<std::int64_t>(tasks_); }
    /// The next tasks, `limit` at most; none: all was handed out.
    [[nodiscard]] std::vector<ReadTask> next_tasks(std::size_t limit);
    void apply(ReadAnswer&& answer);
    /// Writes what is new to the index.
    void keep(std::map<std::string, std::string> facts = {});

    /// Pictures whose pixels are damaged for sure.
    [[nodiscard]] std::vector<Sample> damaged() const;
    void removed(const std::string& key, const std::string& note);
    /// What a second look at the pixels showed; with a `failure` they are looked at again at the next start.
    void looked_again(const std::string& key, const std::optional<PictureFault>& fault, const std::string& failure);
    void note(std::string text) { notes_.push_back(std::move(text)); }

    [[nodiscard]] std::int64_t found() const noexcept { return static_cast<std::int64_t>(pictures_.size()); }
    /// Judges all pictures by the settings.
    ///
    ///   where  a picture's place, for what is skipped
    [[nodiscard]] Discovered finish(const std::function<std::string(const std::string& key)>& where);

private:
    [[nodiscard]] int missing(std::size_t index);
    [[nodiscard]] std::size_t find(std::string_view key) const;
    [[nodiscard]] bool sizes_from_table() const noexcept {
        return dataset_.metadata_backend == config::MetadataBackend::parquet;
    }
    [[nodiscard]] std::optional<Skipped> judge(const IndexedPicture& picture, std::size_t index) const;
    void touch(std::size_t index);

    const config::ImageDataset& dataset_;
    CaptionFile captions_;
    std::optional<SampleIndex> index_;
    bool trusted_ = false;
    bool forgot_ = false;                // what earlier programs could not decode
    std::vector<IndexedPicture> known_;  // from the index
    std::size_t next_known_ = 0;
    std::vector<IndexedPicture> pictures_;
    std::vector<std::pair<std::string, std::uint64_t>> caption_files_;  // by key, with the fingerprint of their version
    std::vector<std::string> gone_;
    std::vector<std::size_t> changed_;
    std::vector<char> is_changed_;
    std::map<std::size_t, std::string> failures_;
    std::int64_t noted_ = 0;   // pictures with a note
    std::string first_noted_;  // its key
    std::string first_note_;
    std::vector<std::string> notes_;

    std::uint64_t table_source_ = 0;
    std::string table_place_;
    std::vector<char> in_table_;
    std::int64_t rows_ = 0;
    std::int64_t orphans_ = 0;
    std::int64_t repeated_ = 0;
    std::string orphan_names_;

    std::size_t tasks_ = 0;
    std::size_t cursor_ = 0;
};

}  // namespace strata::datasets::detail

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/catalog.ipp>
#include <strata/datasets/impl/catalog_judgement.ipp>
#include <strata/datasets/impl/catalog_table.ipp>
#endif
