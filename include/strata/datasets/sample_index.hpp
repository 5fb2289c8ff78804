#pragma once
// strata/datasets/sample_index.hpp - SampleIndex: what earlier starts found out about the pictures of a data set, in SQLite.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/datasets/indexed_picture.hpp>
#include <strata/storage/content_hash.hpp>

struct sqlite3;

namespace strata::datasets {

/// What the whole file of a picture was found to hold.
struct KnownContent {
    std::string key;
    std::string version;  ///< of the file that was read
    storage::ContentHash content;
};

/// 64 bits of FNV-1a over the parts, never 0: tells whether what was read from them would be read again.
[[nodiscard]] std::uint64_t fingerprint(std::initializer_list<std::string_view> parts) noexcept;

/// One file a data set: `<folder>/<id>.sqlite`, with a table `pictures` that sqlite3's shell can show.
///
/// Changes are made in transactions: after a crash the file is as it was before or after one. Every row has a check sum.
/// A file that is damaged, or that a later version of strata wrote, is set aside as `<file>.damaged` and begun anew. One
/// of an earlier version, or of another place (the data set was moved), is begun anew, too. For one thread and one process
/// at a time.
///
/// Throws Errc::output_not_writable when the folder cannot be made, io_failed, no_space, and output_in_use when another
/// process holds the file.
class SampleIndex {
public:
    /// Opens the index and reads all of it. Cost: about a second for a million pictures.
    ///
    ///   place         of the data set: a folder's absolute path, a bucket's address
    ///   busy_timeout  how long another process that holds the file is waited for
    SampleIndex(const std::filesystem::path& folder, std::string_view id, std::string_view place,
                std::chrono::milliseconds busy_timeout = std::chrono::seconds{3});
    ~SampleIndex();
    SampleIndex(const SampleIndex&) = delete;
    SampleIndex& operator=(const SampleIndex&) = delete;

    [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }
    /// Adds to the index of a data set what files hold, where it still has them in that version; what it knows of others
    /// stays as it is. Reads no other rows: the cost is that of the pictures. Does nothing where there is no such index, or
    /// it is damaged or of another place, which the next start finds out. Throws what the constructor throws.
    static void add_contents(const std::filesystem::path& folder, std::string_view id, std::string_view place,
                             std::span<const KnownContent> contents,
                             std::chrono::milliseconds busy_timeout = std::chrono::seconds{3});

    /// "index '...' is damaged (...): ..." if a file was set aside, or what else became of it; else empty.
    [[nodiscard]] const std::string& notice() const noexcept { return notice_; }

    /// What was read when it was opened, sorted by key; only once.
    [[nodiscard]] std::vector<IndexedPicture> take_pictures() noexcept { return std::move(pictures_); }
    /// A text that was kept under a name; empty if there is none.
    [[nodiscard]] std::string fact(const std::string& name) const;

    /// Keeps pictures, removes keys, sets facts: all or nothing.
    void write(std::span<const IndexedPicture* const> pictures, std::span<const std::string> gone = {},
               const std::map<std::string, std::string>& facts = {});

private:
    struct Close {
        void operator()(sqlite3* database) const noexcept;
    };
    SampleIndex(std::filesystem::path file, std::chrono::milliseconds busy_timeout);
    void open();
    void begin(std::string_view place);
    void read(std::string_view place);
    void add(std::span<const KnownContent> contents);
    void set_aside(const std::string& why);

    std::filesystem::path file_;
    std::chrono::milliseconds busy_timeout_;
    std::string notice_;
    std::unique_ptr<sqlite3, Close> database_;
    std::vector<IndexedPicture> pictures_;
    std::map<std::string, std::string> facts_;
};

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/sample_index.ipp>
#endif
