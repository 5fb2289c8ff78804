#pragma once
// strata/datasets/impl/sample_index.ipp - the index as two SQLite tables.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <system_error>
#include <utility>

#include <sqlite3.h>

#include <strata/core/crc32c.hpp>
#include <strata/core/error.hpp>
#include <strata/core/fnv1a.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/lock_holder.hpp>
#include <strata/core/random.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/sample_index.hpp>
#include <strata/http/url.hpp>

namespace strata::datasets {

namespace detail::index {

inline constexpr int application_id = 0x73747261;  // "stra"
inline constexpr int format = 1;                   // user_version; another one is set aside

inline constexpr const char* schema = R"(
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE pictures (
        key TEXT PRIMARY KEY, version TEXT NOT NULL, bytes INTEGER NOT NULL,
        width INTEGER NOT NULL, height INTEGER NOT NULL, size_source INTEGER NOT NULL,
        size_fault INTEGER, size_detail TEXT,
        caption TEXT NOT NULL, other_captions BLOB, caption_source INTEGER NOT NULL,
        decoded INTEGER NOT NULL, pixel_fault INTEGER, pixel_detail TEXT, damaged INTEGER NOT NULL,
        check_sum INTEGER NOT NULL) WITHOUT ROWID;)";

/// The file is no index that can be used; what() says why.
class Unusable : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail(::sqlite3* database, int code, const std::filesystem::path& file) {
    const std::string why = database != nullptr ? ::sqlite3_errmsg(database) : ::sqlite3_errstr(code);
    const std::string what = "index '" + file.string() + "' cannot be used: " + why;
    switch (code & 0xFF) {
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
        case SQLITE_FORMAT:
            throw Unusable{why};
        case SQLITE_FULL:
            throw Error{Errc::no_space, what, "free some space and start again; nothing was lost"};
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            // By the kernel's list alone: to open the file here would end SQLite's own locks when it is closed.
            throw Error{Errc::output_in_use, "index '" + file.string() + "' is in use: " + core::lock_holder(file),
                        "wait for it to end, or use another output directory"};
        case SQLITE_NOMEM:
            throw std::bad_alloc{};
        default:
            throw Error{Errc::io_failed, what, "check the folder's permissions and the disk, or remove the file"};
    }
}

/// A prepared statement.
class Statement {
public:
    Statement(::sqlite3* database, const char* text, const std::filesystem::path& file)
        : database_{database}, file_{file} {
        check(::sqlite3_prepare_v2(database, text, -1, &statement_, nullptr));
    }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;
    ~Statement() { ::sqlite3_finalize(statement_); }

    /// True: there is a row.
    bool step() {
        const int code = ::sqlite3_step(statement_);
        if (code == SQLITE_ROW) return true;
        if (code != SQLITE_DONE) fail(database_, code, file_);
        next_ = 0;
        return false;
    }
    void run() {
        while (step()) {
        }
        ::sqlite3_reset(statement_);
    }

    // Columns of a row, and parameters in their order.
    [[nodiscard]] std::int64_t integer(int column) const { return ::sqlite3_column_int64(statement_, column); }
    [[nodiscard]] bool is_null(int column) const { return ::sqlite3_column_type(statement_, column) == SQLITE_NULL; }
    [[nodiscard]] std::string_view text(int column) const {
        const void* const data = ::sqlite3_column_blob(statement_, column);  // the bytes of a text as they are
        if (data == nullptr) return {};
        return {static_cast<const char*>(data), static_cast<std::size_t>(::sqlite3_column_bytes(statement_, column))};
    }
    Statement& operator<<(std::int64_t number) {
        check(::sqlite3_bind_int64(statement_, ++next_, number));
        return *this;
    }
    /// The text must live until the statement has run.
    Statement& operator<<(std::string_view text) {
        check(::sqlite3_bind_text64(statement_, ++next_, text.empty() ? "" : text.data(), text.size(), SQLITE_STATIC,
                                    SQLITE_UTF8));
        return *this;
    }
    Statement& operator<<(std::nullptr_t) {
        check(::sqlite3_bind_null(statement_, ++next_));
        return *this;
    }

private:
    void check(int code) const {
        if (code != SQLITE_OK) fail(database_, code, file_);
    }
    ::sqlite3* database_;
    const std::filesystem::path& file_;
    ::sqlite3_stmt* statement_ = nullptr;
    int next_ = 0;
};

inline void execute(::sqlite3* database, const char* text, const std::filesystem::path& file) {
    if (const int code = ::sqlite3_exec(database, text, nullptr, nullptr, nullptr); code != SQLITE_OK)
        fail(database, code, file);
}

inline std::int64_t number(::sqlite3* database, const char* text, const std::filesystem::path& file) {
    Statement statement{database, text, file};
    return statement.step() ? statement.integer(0) : 0;
}

/// CRC32C over everything a row says. `buffer` is kept between calls.
inline std::uint32_t check_sum(const IndexedPicture& picture, std::string_view others, std::string& buffer) {
    buffer.clear();
    const auto number = [&](std::uint64_t value) {
        buffer.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    const auto text = [&](std::string_view value) {
        number(value.size());
        buffer += value;
    };
    const auto fault = [&](const std::unique_ptr<PictureFault>& value) {
        number(value ? 1 + static_cast<std::uint64_t>(value->reason) * 2 + (value->damaged ? 1 : 0) : 0);
        if (value) text(value->detail);
    };
    const Sample& sample = picture.sample;
    text(sample.key);
    text(sample.version);
    for (const std::uint64_t value :
         {sample.bytes, static_cast<std::uint64_t>(sample.size.width), static_cast<std::uint64_t>(sample.size.height),
          picture.size_source, picture.caption_source, std::uint64_t{picture.decoded ? 1U : 0U}})
        number(value);
    text(sample.caption);
    text(others);
    fault(picture.size_fault);
    fault(picture.pixel_fault);
    return core::crc32c(std::as_bytes(std::span{buffer.data(), buffer.size()}));
}

inline std::string joined(const std::vector<std::string>& captions) {
    if (captions.empty()) return {};
    FieldWriter fields;
    for (const std::string& caption : captions) fields << caption;
    return fields.bytes();
}

inline std::unique_ptr<PictureFault> fault_of(const Statement& row, int column, bool damaged) {
    if (row.is_null(column)) return nullptr;
    const std::int64_t reason = row.integer(column);
    if (reason < 0 || reason >= skip_reasons) throw Unusable{"a row has an unknown reason"};
    return std::make_unique<PictureFault>(
        PictureFault{static_cast<SkipReason>(reason), std::string{row.text(column + 1)}, damaged});
}

inline IndexedPicture picture_of(const Statement& row, std::string& buffer) {
    IndexedPicture picture;
    Sample& sample = picture.sample;
    sample.key = row.text(0);
    sample.version = row.text(1);
    sample.bytes = static_cast<std::uint64_t>(row.integer(2));
    sample.size = {row.integer(3), row.integer(4)};
    picture.size_source = static_cast<std::uint64_t>(row.integer(5));
    picture.size_fault = fault_of(row, 6, (row.integer(14) & 1) != 0);
    sample.caption = row.text(8);
    const std::string_view others = row.text(9);
    picture.caption_source = static_cast<std::uint64_t>(row.integer(10));
    picture.decoded = row.integer(11) != 0;
    picture.pixel_fault = fault_of(row, 12, (row.integer(14) & 2) != 0);
    if (check_sum(picture, others, buffer) != static_cast<std::uint32_t>(row.integer(15)))
        throw Unusable{"the check sum of a row is wrong"};
    for (FieldReader fields{others}; !fields.empty();) sample.other_captions.push_back(fields.text());
    return picture;
}

inline std::string file_name(std::string_view id) {
    constexpr std::size_t longest = 150;
    std::string name = http::percent_encode(id);
    if (name.size() > longest) name = name.substr(0, 100) + "-" + std::to_string(fingerprint({id}));
    return name + ".sqlite";
}

}  // namespace detail::index

STRATA_INLINE std::uint64_t fingerprint(std::initializer_list<std::string_view> parts) noexcept {
    std::uint64_t hash = core::fnv1a_start;
    for (const std::string_view part : parts) {
        std::array<char, sizeof(std::size_t)> size{};
        for (std::size_t i = 0; i < size.size(); ++i) size[i] = static_cast<char>(part.size() >> (8 * i));
        hash = core::fnv1a(part, core::fnv1a({size.data(), size.size()}, hash));
    }
    return hash == 0 ? 1 : hash;
}

STRATA_INLINE void SampleIndex::Close::operator()(sqlite3* database) const noexcept { ::sqlite3_close_v2(database); }

STRATA_INLINE SampleIndex::SampleIndex(const std::filesystem::path& folder, std::string_view id, std::string_view place,
                                       std::chrono::milliseconds busy_timeout)
    : file_{folder / detail::index::file_name(id)}, busy_timeout_{busy_timeout} {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure)
        throw Error{Errc::output_not_writable,
                    "folder '" + folder.string() + "' for the index cannot be made: " + failure.message(),
                    "name a folder that can be written"};
    try {
        open(place);
    } catch (const detail::index::Unusable& why) {
        set_aside(why.what());
        try {
            open(place);
        } catch (const detail::index::Unusable& again) {
            throw Error{Errc::io_failed,
                        "index '" + file_.string() + "' is damaged as soon as it is made: " + again.what(),
                        "check the disk"};
        }
    }
}

STRATA_INLINE SampleIndex::~SampleIndex() = default;

STRATA_INLINE void SampleIndex::open(std::string_view place) {
    using namespace detail::index;
    ::sqlite3* opened = nullptr;
    const int code = ::sqlite3_open_v2(file_.c_str(), &opened,
                                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE, nullptr);
    database_.reset(opened);
    if (code != SQLITE_OK) fail(opened, code, file_);
    ::sqlite3_busy_timeout(opened, static_cast<int>(busy_timeout_.count()));
    // A rollback journal and not WAL: it needs no shared memory, so the folder may be on a network.
    execute(opened,
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; PRAGMA synchronous = NORMAL;"
            "PRAGMA cache_size = -32768; PRAGMA cell_size_check = ON; BEGIN IMMEDIATE;",
            file_);
    const std::int64_t application = number(opened, "PRAGMA application_id", file_);
    const std::int64_t version = number(opened, "PRAGMA user_version", file_);
    const bool is_new = number(opened, "SELECT count(*) FROM sqlite_master", file_) == 0;
    if (!is_new && application != application_id) throw Unusable{"it is not an index of strata"};
    if (!is_new && version != format)
        throw Unusable{"it is of format " + std::to_string(version) + ", and this program knows " +
                       std::to_string(format)};
    if (is_new) {
        execute(opened, schema, file_);
        execute(opened, ("PRAGMA application_id = " + std::to_string(application_id)).c_str(), file_);
        execute(opened, ("PRAGMA user_version = " + std::to_string(format)).c_str(), file_);
    }
    read(place);
    execute(opened, "COMMIT", file_);
}

STRATA_INLINE void SampleIndex::read(std::string_view place) {
    using namespace detail::index;
    facts_.clear();
    pictures_.clear();
    ::sqlite3* const database = database_.get();
    const auto prepared = [&](const char* text) {
        try {
            return std::make_unique<Statement>(database, text, file_);
        } catch (const Error& error) {
            throw Unusable{error.problem()};  // a table or a column is missing
        }
    };
    for (const auto row = prepared("SELECT name, value FROM facts"); row->step();)
        facts_.emplace(row->text(0), row->text(1));
    if (facts_["place"] != place) {
        execute(database, "DELETE FROM pictures; DELETE FROM facts;", file_);
        facts_ = {{"place", std::string{place}}};
        Statement fact{database, "INSERT INTO facts VALUES ('place', ?)", file_};
        (fact << place).run();
        return;
    }
    std::string buffer;
    for (const auto row =
             prepared("SELECT key, version, bytes, width, height, size_source, size_fault, size_detail, caption, "
                      "other_captions, caption_source, decoded, pixel_fault, pixel_detail, damaged, check_sum "
                      "FROM pictures ORDER BY key");
         row->step();) {
        pictures_.push_back(picture_of(*row, buffer));
        if (pictures_.size() > 1 && pictures_[pictures_.size() - 2].sample.key >= pictures_.back().sample.key)
            throw Unusable{"its rows are not in order"};
    }
}

STRATA_INLINE void SampleIndex::set_aside(const std::string& why) {
    database_.reset();
    pictures_.clear();
    const std::filesystem::path aside = file_.string() + ".damaged";
    std::error_code failure;
    std::filesystem::rename(file_, aside, failure);
    if (failure)
        throw Error{Errc::io_failed,
                    "index '" + file_.string() + "' is damaged (" + why + ") and cannot be moved: " + failure.message(),
                    "remove it"};
    // The journal belongs to the damaged file: with a new one SQLite would play it back.
    std::filesystem::rename(file_.string() + "-journal", aside.string() + "-journal", failure);
    notice_ = "index '" + file_.string() + "' could not be used (" + why + "): it is kept as '" + aside.string() +
              "', and a new one was made";
}

STRATA_INLINE std::string SampleIndex::fact(const std::string& name) const {
    const auto found = facts_.find(name);
    return found == facts_.end() ? std::string{} : found->second;
}

STRATA_INLINE void SampleIndex::write(std::span<const IndexedPicture* const> pictures,
                                      std::span<const std::string> gone,
                                      const std::map<std::string, std::string>& facts) {
    using namespace detail::index;
    if (pictures.empty() && gone.empty() && facts.empty()) return;
    ::sqlite3* const database = database_.get();
    try {
        execute(database, "BEGIN IMMEDIATE", file_);
        try {
            Statement insert{database, "INSERT OR REPLACE INTO pictures VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                             file_};
            std::string buffer;
            for (const IndexedPicture* const picture : pictures) {
                const Sample& sample = picture->sample;
                const std::string others = joined(sample.other_captions);
                const auto fault = [&](const std::unique_ptr<PictureFault>& value) {
                    if (value)
                        insert << static_cast<std::int64_t>(value->reason) << std::string_view{value->detail};
                    else
                        insert << nullptr << nullptr;
                };
                insert << std::string_view{sample.key} << std::string_view{sample.version}
                       << static_cast<std::int64_t>(sample.bytes) << sample.size.width << sample.size.height
                       << static_cast<std::int64_t>(picture->size_source);
                fault(picture->size_fault);
                insert << std::string_view{sample.caption};
                if (others.empty())
                    insert << nullptr;
                else
                    insert << std::string_view{others};
                insert << static_cast<std::int64_t>(picture->caption_source) << std::int64_t{picture->decoded ? 1 : 0};
                fault(picture->pixel_fault);
                const auto is_damaged = [](const auto& value) { return value && value->damaged; };
                insert << std::int64_t{(is_damaged(picture->size_fault) ? 1 : 0) +
                                       (is_damaged(picture->pixel_fault) ? 2 : 0)}
                       << static_cast<std::int64_t>(check_sum(*picture, others, buffer));
                insert.run();
            }
            Statement remove{database, "DELETE FROM pictures WHERE key = ?", file_};
            for (const std::string& key : gone) (remove << std::string_view{key}).run();
            Statement keep{database, "INSERT OR REPLACE INTO facts VALUES (?, ?)", file_};
            for (const auto& [name, value] : facts) (keep << std::string_view{name} << std::string_view{value}).run();
            execute(database, "COMMIT", file_);
        } catch (...) {
            ::sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
            throw;
        }
    } catch (const Unusable& why) {
        throw Error{Errc::io_failed, "index '" + file_.string() + "' is damaged: " + why.what(),
                    "remove the file and start again: it is built anew"};
    }
    for (const auto& [name, value] : facts) facts_[name] = value;
}

}  // namespace strata::datasets
