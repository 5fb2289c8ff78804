#pragma once
// strata/datasets/impl/sample_index.ipp - the index as two SQLite tables.

#include <array>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <sqlite3.h>

#include <strata/core/error.hpp>
#include <strata/core/fnv1a.hpp>
#include <strata/core/inline.hpp>
#include <strata/datasets/detail/index_rows.hpp>
#include <strata/datasets/sample_index.hpp>
#include <strata/http/url.hpp>

namespace strata::datasets {

namespace detail::index {

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

STRATA_INLINE SampleIndex::SampleIndex(std::filesystem::path file, std::chrono::milliseconds busy_timeout)
    : file_{std::move(file)}, busy_timeout_{busy_timeout} {}

STRATA_INLINE SampleIndex::SampleIndex(const std::filesystem::path& folder, std::string_view id, std::string_view place,
                                       std::chrono::milliseconds busy_timeout)
    : SampleIndex{folder / detail::index::file_name(id), busy_timeout} {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure)
        throw Error{Errc::output_not_writable,
                    "folder '" + folder.string() + "' for the index cannot be made: " + failure.message(),
                    "name a folder that can be written"};
    try {
        begin(place);
    } catch (const detail::index::Unusable& why) {
        set_aside(why.what());
        try {
            begin(place);
        } catch (const detail::index::Unusable& again) {
            throw Error{Errc::io_failed,
                        "index '" + file_.string() + "' is damaged as soon as it is made: " + again.what(),
                        "check the disk"};
        }
    }
}

STRATA_INLINE SampleIndex::~SampleIndex() = default;

STRATA_INLINE void SampleIndex::open() {
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
            "PRAGMA cache_size = -32768; PRAGMA cell_size_check = ON;",
            file_);
}

STRATA_INLINE void SampleIndex::begin(std::string_view place) {
    using namespace detail::index;
    open();
    ::sqlite3* const opened = database_.get();
    execute(opened, "BEGIN IMMEDIATE", file_);
    const std::int64_t application = number(opened, "PRAGMA application_id", file_);
    const std::int64_t version = number(opened, "PRAGMA user_version", file_);
    bool is_new = number(opened, "SELECT count(*) FROM sqlite_master", file_) == 0;
    if (!is_new && application != application_id) throw Unusable{"it is not an index of strata"};
    if (!is_new && version != format && version != earlier_format)
        throw Unusable{"it is of format " + std::to_string(version) + ", and this program knows " +
                       std::to_string(format)};
    if (!is_new && version == earlier_format) {
        execute(opened, "DROP TABLE IF EXISTS pictures; DROP TABLE IF EXISTS facts;", file_);
        notice_ = "index '" + file_.string() + "' was of an earlier version: it is begun anew";
        is_new = true;
    }
    if (is_new) {
        execute(opened, "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID", file_);
        const std::string pictures =
            "CREATE TABLE pictures (" + columns().declarations + ", check_sum INTEGER NOT NULL) WITHOUT ROWID";
        execute(opened, pictures.c_str(), file_);
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
    const auto prepared = [&](const std::string& text) {
        try {
            return std::make_unique<Statement>(database, text.c_str(), file_);
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
    for (const auto row = prepared(selected() + " ORDER BY key"); row->step();) {
        pictures_.push_back(picture_of(*row, buffer));
        if (pictures_.size() > 1 && pictures_[pictures_.size() - 2].sample.key >= pictures_.back().sample.key)
            throw Unusable{"its rows are not in order"};
    }
}

STRATA_INLINE void SampleIndex::add_contents(const std::filesystem::path& folder, std::string_view id,
                                             std::string_view place, std::span<const KnownContent> contents,
                                             std::chrono::milliseconds busy_timeout) {
    using namespace detail::index;
    const std::filesystem::path file = folder / file_name(id);
    std::error_code none;
    if (contents.empty() || !std::filesystem::exists(file, none)) return;
    SampleIndex index{file, busy_timeout};
    try {
        index.open();
        ::sqlite3* const database = index.database_.get();
        in_transaction(database, file, [&] {
            if (number(database, "PRAGMA application_id", file) != application_id ||
                number(database, "PRAGMA user_version", file) != format)
                return;
            Statement fact{database, "SELECT value FROM facts WHERE name = 'place'", file};
            if (fact.step() && fact.text(0) == place) index.add(contents);
        });
    } catch (const Unusable&) {
        return;  // the next start says so and begins it anew
    }
}

STRATA_INLINE void SampleIndex::add(std::span<const KnownContent> contents) {
    using namespace detail::index;
    Statement select{database_.get(), (selected() + " WHERE key = ?").c_str(), file_};
    Insert insert{database_.get(), file_};
    std::string buffer;
    for (const KnownContent& one : contents) {
        select << std::string_view{one.key};
        if (select.step()) {
            IndexedPicture picture = picture_of(select, buffer);
            if (picture.sample.version == one.version && picture.sample.content != one.content) {
                picture.sample.content = one.content;
                insert(picture);
            }
        }
        select.reset();
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
        in_transaction(database, file_, [&] {
            Insert insert{database, file_};
            for (const IndexedPicture* const picture : pictures) insert(*picture);
            Statement remove{database, "DELETE FROM pictures WHERE key = ?", file_};
            for (const std::string& key : gone) (remove << std::string_view{key}).run();
            Statement keep{database, "INSERT OR REPLACE INTO facts VALUES (?, ?)", file_};
            for (const auto& [name, value] : facts) (keep << std::string_view{name} << std::string_view{value}).run();
        });
    } catch (const Unusable& why) {
        throw Error{Errc::io_failed, "index '" + file_.string() + "' is damaged: " + why.what(),
                    "remove the file and start again: it is built anew"};
    }
    for (const auto& [name, value] : facts) facts_[name] = value;
}

}  // namespace strata::datasets
