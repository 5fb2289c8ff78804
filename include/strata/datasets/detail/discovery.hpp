#pragma once
// strata/datasets/detail/discovery.hpp - the body of discover().

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/datasets/byte_budget.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/detail/catalog.hpp>
#include <strata/datasets/detail/examine.hpp>
#include <strata/datasets/discovery.hpp>
#include <strata/datasets/folder_place.hpp>
#include <strata/datasets/for_all.hpp>
#include <strata/datasets/sample_fields.hpp>
#include <strata/datasets/url_store.hpp>
#include <strata/pictures/formats.hpp>
#include <strata/storage/local.hpp>

namespace strata::datasets {

namespace detail {

[[noreturn]] inline void throw_stopped() {
    throw Error{Errc::interrupted, "stopped before training began; what was found out about the pictures is kept",
                "run the same command again to go on"};
}

/// Rank 0: lists the data set, and reads its table if that is new.
template <storage::ObjectStore Store>
void fill_catalog(Catalog& catalog, const Store& store, const config::ImageDataset& dataset,
                  const DiscoverOptions& options) {
    std::int64_t listed = 0;
    const auto look = [&] {
        if (options.stopped && options.stopped()) throw_stopped();
        if (options.progress && listed > 0) options.progress("pictures listed", listed, 0);
    };
    if (catalog.needs_listing()) {
        std::int64_t objects = 0;
        auto looked = std::chrono::steady_clock::now();
        try {
            storage::list_each(store, "", [&](storage::ObjectInfo&& info) {
                if (pictures::is_picture_name(info.key)) ++listed;
                catalog.add(std::move(info));
                constexpr std::int64_t often = 10'000;
                ++objects;
                // Objects come slowly where listing them is fetching them.
                const auto now = std::chrono::steady_clock::now();
                if (objects % often == 0 || now - looked > std::chrono::milliseconds{200}) {
                    looked = now;
                    look();
                }
                return true;
            });
        } catch (const Error& error) {  // a folder that cannot even be opened is the wrong one
            if (error.code() != Errc::io_failed || dataset.type != config::StoreType::local || objects > 0) throw;
            throw Error{Errc::bad_reference, "data set '" + dataset.id + "': " + error.problem(), error.fix()};
        }
        catalog.end_listing();
    }
    if (catalog.found() == 0)
        throw Error{Errc::no_samples,
                    "data set '" + dataset.id + "': '" + store.where("") + "' is missing or holds no pictures",
                    !dataset.shards.empty()                    ? "correct shards, or put pictures into the tar files"
                    : dataset.type == config::StoreType::csv   ? "put addresses into csv_url_column"
                    : dataset.type == config::StoreType::local ? "correct instance_data_dir, or put pictures there"
                                                               : "correct aws_data_prefix, or put pictures there"};
    look();
    if (const std::optional<config::ParquetColumns> table = table_of(dataset)) {
        const auto read = [&](const auto& from, const std::string& key) {
            const auto info = from.head(key);
            const tables::TableFile file = table_file(from, key);
            if (!catalog.begin_table(file.place, info ? info->version : "")) return;
            read_table(file, *table, dataset.metadata_backend == config::MetadataBackend::parquet,
                       caption_file(dataset) == CaptionFile::table,
                       [&, rows = std::int64_t{0}](TableRow&& row) mutable {
                           constexpr std::int64_t often = 100'000;
                           if (++rows % often == 0 && options.stopped && options.stopped()) throw_stopped();
                           if (dataset.type == config::StoreType::csv) row.key = url_key(row.key);
                           catalog.add_row(std::move(row));
                       });
            catalog.end_table();
        };
        if (dataset.type != config::StoreType::aws) {
            const std::filesystem::path path{table->path};
            read(Local{path.has_parent_path() ? path.parent_path() : "."}, path.filename().string());
        } else {
            read(store, table->path);
        }
    }
    catalog.plan_reading();
}

/// Rank 0: removes files whose pixels are damaged, if they still are.
template <storage::ObjectStore Store>
void delete_damaged(Catalog& catalog, const Store& store, DecodeMemory& memory) {
    for (const Sample& sample : catalog.damaged()) {
        const std::string place = "'" + store.where(sample.key) + "'";
        try {
            const std::vector<std::byte> file = store.get(sample.key);
            const auto info = store.head(sample.key);
            if (!info || info->version != sample.version || file.size() != sample.bytes) {
                catalog.looked_again(sample.key, std::nullopt, place + " was changed while it was read");
                continue;
            }
            const Look look = look_at(file, memory.pixels);
            if (!look.fault || !look.fault->damaged) {
                catalog.looked_again(sample.key, look.fault, look.failure);
                continue;
            }
            if (const auto now = store.head(sample.key);
                !now || now->version != sample.version) {  // decoding took time
                catalog.looked_again(sample.key, std::nullopt, place + " was changed while it was read");
                continue;
            }
            store.remove(sample.key);
            catalog.removed(sample.key, "deleted " + place + " (" + look.fault->detail + ")");
        } catch (const Error& error) {
            if (verdict_of(error).failure.empty()) throw;
            catalog.note(place + " is damaged and could not be deleted: " + error.problem());
        }
    }
}

/// Gives rank 0's result to all ranks, a part at a time.
template <comm::Communicator Comm>
Discovered share(Comm& comm, Discovered mine) {
    if (comm.world() == 1) return mine;
    constexpr std::size_t part_bytes = 8 << 20;
    std::size_t sample = 0;
    std::size_t skipped = 0;
    Discovered all;
    for (bool first = true;; first = false) {
        FieldWriter fields;
        if (comm.rank() == 0) {
            if (first) {
                fields << 0 << mine.found << mine.examined;
                write_field(fields, mine.notes);
            }
            for (; sample < mine.samples.size() && fields.bytes().size() < part_bytes; ++sample)
                fields << 1 << mine.samples[sample];
            for (; skipped < mine.skipped.size() && fields.bytes().size() < part_bytes; ++skipped)
                fields << 2 << mine.skipped[skipped];
        }
        const std::string part = comm.all_gather_varied(fields.bytes())[0];
        if (part.empty()) break;
        if (comm.rank() == 0) continue;
        for (FieldReader from{part}; !from.empty();) {
            const std::int64_t kind = from.integer();
            if (kind == 0) {
                all.found = from.integer();
                all.examined = from.integer();
                read_field(from, all.notes);
            } else if (kind == 1) {
                from >> all.samples.emplace_back();
            } else {
                from >> all.skipped.emplace_back();
            }
        }
    }
    return comm.rank() == 0 ? mine : all;
}

}  // namespace detail

template <comm::Communicator Comm, storage::ObjectStore Store>
Discovered discover(Comm& comm, const Store& store, const config::ImageDataset& dataset,
                    const DiscoverOptions& options) {
    const bool leads = comm.rank() == 0;
    std::optional<detail::Catalog> catalog;
    comm::agree(comm, [&] {
        if (!leads) return;
        std::string place = store.where("");
        if (dataset.type == config::StoreType::local) place = folder_place(place);
        catalog.emplace(dataset, options, place);
        detail::fill_catalog(*catalog, store, dataset, options);
    });

    // Small parts: what was read is kept often, and a rank waits little for the others.
    const auto world = static_cast<std::size_t>(comm.world());
    const auto rank = static_cast<std::size_t>(comm.rank());
    const std::size_t part = (dataset.scan_for_errors ? 64 : 2048) * world;
    const int threads = detail::reading_threads(store, options.threads);
    DecodeMemory memory{options.decode_memory_bytes};
    std::int64_t examined = 0;
    while (true) {
        FieldWriter asked;
        if (leads) {
            const std::vector<detail::ReadTask> tasks = catalog->next_tasks(part);
            if (!tasks.empty()) asked << catalog->to_examine() << detail::pack(tasks);
        }
        const std::string heard = comm.all_gather_varied(asked.bytes())[0];
        if (heard.empty()) break;
        FieldReader fields{heard};
        const std::int64_t total = fields.integer();
        const std::vector<detail::ReadTask> tasks = detail::unpack_tasks(fields.text());

        std::vector<detail::ReadAnswer> answers(tasks.size() / world + (tasks.size() % world > rank ? 1 : 0));
        std::vector<char> is_done(answers.size(), 0);
        std::atomic<bool> stop{options.stopped && options.stopped()};
        std::exception_ptr failure;
        try {
            for_all(
                static_cast<std::int64_t>(answers.size()), threads,
                [&](std::int64_t i) {
                    if (stop) return;
                    const auto at = static_cast<std::size_t>(i);
                    answers[at] =
                        detail::examine(store, detail::caption_file(dataset), tasks[at * world + rank], memory);
                    is_done[at] = 1;
                },
                [&](std::int64_t) {
                    if (!stop && options.stopped && options.stopped()) stop = true;
                });
        } catch (...) {
            failure = std::current_exception();  // what was read before it is kept all the same
        }
        std::vector<detail::ReadAnswer> whole;
        for (std::size_t i = 0; i < answers.size(); ++i)
            if (is_done[i] != 0) whole.push_back(std::move(answers[i]));
        FieldWriter said;
        said << (stop ? 1 : 0) << detail::pack(whole);
        bool stopped = false;
        const std::vector<std::string> all = comm.all_gather_varied(said.bytes());
        comm::agree(comm, [&] {
            for (const std::string& one : all) {
                FieldReader from{one};
                stopped |= from.integer() != 0;
                if (!leads) continue;
                for (detail::ReadAnswer& answer : detail::unpack_answers(from.text()))
                    catalog->apply(std::move(answer));
            }
            if (leads) catalog->keep();
            if (failure) std::rethrow_exception(failure);
        });
        if (stopped) detail::throw_stopped();
        examined += static_cast<std::int64_t>(tasks.size());
        if (options.progress) options.progress("pictures examined", examined, total);
    }

    Discovered mine;
    comm::agree(comm, [&] {
        if (!leads) return;
        if (dataset.delete_problematic_images && options.deletes) detail::delete_damaged(*catalog, store, memory);
        if (dataset.delete_problematic_images && !options.deletes)
            catalog->note(
                "delete_problematic_images: this command deletes nothing; training removes files whose pixels are "
                "damaged");
        mine = catalog->finish([&](const std::string& key) { return store.where(key); });
    });
    return detail::share(comm, std::move(mine));
}

}  // namespace strata::datasets
