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

#include <strata/datasets/report.hpp>
#include <strata/datasets/sample.hpp>

struct sqlite3;

namespace strata::datasets {

/// Why a picture file cannot be used, whatever the settings are.
struct PictureFault {
    SkipReason reason = SkipReason::unreadable;
    std::string detail;
    bool damaged = false;  ///< the bytes are wrong, and not a limit, the memory or the way to the file

    friend bool operator==(const PictureFault&, const PictureFault&) = default;
};

/// What is known of a picture file of one version. Judging it by minimum_image_size and the like comes later, so other
/// settings need no second look at the file.
struct IndexedPicture {
    Sample sample;                              ///< key, version and bytes; size and captions as far as they are known
    std::uint64_t size_source = 0;              ///< fingerprint of what size or size_fault was read from; 0: not yet
    std::uint64_t caption_source = 0;           ///< the same of the captions
    bool decoded = false;                       ///< somebody tried to decode all of its pixels
    std::unique_ptr<PictureFault> size_fault;   ///< instead of a size
    std::unique_ptr<PictureFault> pixel_fault;  ///< what became of decoding; none: it decodes, or was not tried
};

/// 64 bits of FNV-1a over the parts, never 0: tells whether what was read from them would be read again.
[[nodiscard]] std::uint64_t fingerprint(std::initializer_list<std::string_view> parts) noexcept;

/// One file a data set: `<folder>/<id>.sqlite`, with a table `pictures` that sqlite3's shell can show.
///
/// Changes are made in transactions: after a crash the file is as it was before or after one. Every row has a check sum.
/// A file that is damaged, or that another version of strata wrote, is set aside as `<file>.damaged` and begun anew. An
/// index of another place (the data set was moved) is begun anew, too. For one thread and one process at a time.
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
    /// "index '...' is damaged (...): ..." if a file was set aside; else empty.
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
    void open(std::string_view place);
    void read(std::string_view place);
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
