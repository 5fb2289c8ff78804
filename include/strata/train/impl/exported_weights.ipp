#pragma once
// strata/train/impl/exported_weights.ipp - what is there already, what is written, and what is taken away.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include <strata/comm/agree.hpp>
#include <strata/core/amounts.hpp>
#include <strata/core/error.hpp>
#include <strata/core/option_check.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/train/exported_weights.hpp>
#include <strata/train/written_adapter.hpp>
#include <strata/train/written_weights.hpp>
#include <strata/weights/remove_weights.hpp>
#include <strata/weights/save_weights.hpp>
#include <strata/weights/weight_files.hpp>

namespace strata::train {

namespace detail {

inline constexpr const char* export_key = "strata.export";
inline constexpr std::string_view weights_file_name = "model.safetensors";

inline std::optional<storage::Dtype> dtype_of(ExportType type) {
    switch (type) {
        case ExportType::bf16:
            return storage::Dtype::bf16;
        case ExportType::fp16:
            return storage::Dtype::f16;
        case ExportType::fp32:
            return storage::Dtype::f32;
        case ExportType::as_computed:
            break;
    }
    return std::nullopt;
}
inline std::string name_of(ExportType type) {
    for (const auto& [name, value] : export_type_names) {
        if (value == type) return std::string{name};
    }
    return {};
}

/// Beside the weights; an adapter's in a folder of its own with the name that programs look for.
inline std::filesystem::path file_of_average(const std::filesystem::path& file, bool is_adapter) {
    if (is_adapter) return file.parent_path() / "ema" / file.filename();
    return file.parent_path() / (file.stem().string() + "_ema.safetensors");
}

/// Whether a file lies somewhere in a folder, as far as their names tell.
inline bool is_within(const std::filesystem::path& folder, const std::filesystem::path& file) {
    const auto way = std::filesystem::absolute(file).lexically_normal().lexically_relative(
        std::filesystem::absolute(folder).lexically_normal());
    return !way.empty() && *way.begin() != "..";
}

/// Whether weights are there that say this of themselves: in the file, or in shards and an index beside it.
inline bool says(const std::filesystem::path& file, const std::string& what) {
    std::filesystem::path place = file;
    std::error_code unknown;
    if (!std::filesystem::exists(place, unknown)) place += ".index.json";
    if (!std::filesystem::exists(place, unknown)) return false;
    try {
        const weights::WeightFiles written{place};
        const auto found = written.metadata().find(export_key);
        return found != written.metadata().end() && found->second == what;
    } catch (const Error&) {  // damaged, or a shard of it is gone
        return false;
    }
}

}  // namespace detail

STRATA_INLINE std::string ExportedWeights::shown() const {
    std::string text;
    for (const std::filesystem::path& file : files) (text += text.empty() ? "" : ", ") += file.string();
    return text;
}

STRATA_INLINE ExportedWeights exported_weights(Session& session, AnyModel& model, AnyEngine& engine,
                                               const ExportSettings& settings) {
    auto& comm = session.comm();
    const ExportOptions& options = settings.options;
    const std::filesystem::path usual{settings.adapter ? adapters::adapter_file_name : detail::weights_file_name};
    const std::filesystem::path file = options.path.empty() ? settings.folder / usual : options.path;
    const std::string what = "step " + std::to_string(settings.step) + ", loss " + OptionCheck::shown(settings.loss) +
                             ", " + detail::name_of(options.dtype) + ", " + options.max_shard_size;
    ExportedWeights exported;
    for (const bool average : {false, true}) {
        if (average && !settings.averages) break;
        const std::filesystem::path its_file =
            average ? detail::file_of_average(file, settings.adapter.has_value()) : file;
        exported.files.push_back(its_file);
        std::array<std::byte, 1> is_there{};
        comm::agree(comm, [&] {
            if (session.rank() != 0) return;
            if (!its_file.parent_path().empty()) std::filesystem::create_directories(its_file.parent_path());
            is_there[0] = std::byte{detail::says(its_file, what)};
        });
        comm.broadcast(std::span{is_there}, 0);
        if (is_there[0] != std::byte{0}) continue;
        exported.is_new = true;
        if (settings.adapter) {
            WriteAdapterOptions of_adapter{
                .file = *settings.adapter, .dtype = detail::dtype_of(options.dtype), .average = average};
            of_adapter.file.metadata[detail::export_key] = what;
            static_cast<void>(write_adapter(session, model, engine, settings.averages, its_file, of_adapter));
            continue;
        }
        static_cast<void>(write_weights(session, model, engine, settings.averages, its_file,
                                        {.dtype = detail::dtype_of(options.dtype),
                                         .max_shard_size = core::bytes_in(options.max_shard_size).value_or(0),
                                         .average = average,
                                         .metadata = {{"format", "pt"}, {detail::export_key, what}}}));
    }
    return exported;
}

STRATA_INLINE std::vector<std::filesystem::path> remove_exported(const std::filesystem::path& folder,
                                                                 const ExportOptions& options,
                                                                 const std::filesystem::path& begins_with) {
    std::vector<std::filesystem::path> stay;
    std::error_code unknown;
    const auto of_run = [](const storage::SafetensorsMetadata& metadata) {
        return metadata.contains(detail::export_key);
    };
    const auto remove = [&](const std::filesystem::path& file) {
        if (!begins_with.empty() && std::filesystem::equivalent(file, begins_with, unknown)) {
            stay.push_back(file);
            return;
        }
        weights::remove_weights(file, of_run);
    };
    const auto remove_with_average = [&](const std::filesystem::path& file, bool is_adapter) {
        remove(file);
        remove(detail::file_of_average(file, is_adapter));
        if (is_adapter && std::filesystem::is_empty(file.parent_path() / "ema", unknown))
            std::filesystem::remove(file.parent_path() / "ema", unknown);
    };
    remove_with_average(folder / detail::weights_file_name, false);
    remove_with_average(folder / adapters::adapter_file_name, true);
    if (options.path.empty()) return stay;
    for (const bool is_adapter : {false, true}) {
        if (detail::is_within(folder, options.path)) {
            remove_with_average(options.path, is_adapter);
            continue;
        }
        for (std::filesystem::path file : {options.path, detail::file_of_average(options.path, is_adapter)}) {
            if (!std::filesystem::exists(file, unknown)) file += ".index.json";
            if (std::filesystem::exists(file, unknown)) stay.push_back(file);
        }
    }
    std::sort(stay.begin(), stay.end());
    stay.erase(std::unique(stay.begin(), stay.end()), stay.end());
    return stay;
}

}  // namespace strata::train
