#pragma once
// strata/train/impl/exported_weights.ipp - what is there already, and what is written.

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
#include <strata/train/leftovers.hpp>
#include <strata/train/written_adapter.hpp>
#include <strata/train/written_weights.hpp>
#include <strata/weights/save_weights.hpp>
#include <strata/weights/weight_files.hpp>

namespace strata::train {

namespace detail {

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

/// Whether weights are there that say this of themselves: in the file, or in shards and an index beside it.
inline bool says(const std::filesystem::path& file, const std::string& what) {
    std::filesystem::path place = file;
    std::error_code unknown;
    if (!std::filesystem::exists(place, unknown)) place += ".index.json";
    if (!std::filesystem::exists(place, unknown)) return false;
    try {
        const weights::WeightFiles written{place};
        const auto found = written.metadata().find(std::string{export_key});
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
    const std::filesystem::path usual{settings.adapter ? adapters::adapter_file_name : usual_weights_name};
    const std::filesystem::path file = options.path.empty() ? settings.folder / usual : options.path;
    const std::string what = "step " + std::to_string(settings.step) + ", loss " + OptionCheck::shown(settings.loss) +
                             ", " + detail::name_of(options.dtype) + ", " + options.max_shard_size;
    ExportedWeights exported;
    for (const bool average : {false, true}) {
        if (average && !settings.averages) break;
        const std::filesystem::path its_file = average ? file_of_average(file, settings.adapter.has_value()) : file;
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
            of_adapter.file.metadata[std::string{export_key}] = what;
            static_cast<void>(write_adapter(session, model, engine, settings.averages, its_file, of_adapter));
            continue;
        }
        static_cast<void>(write_weights(session, model, engine, settings.averages, its_file,
                                        {.dtype = detail::dtype_of(options.dtype),
                                         .max_shard_size = core::bytes_in(options.max_shard_size).value_or(0),
                                         .average = average,
                                         .metadata = {{"format", "pt"}, {std::string{export_key}, what}}}));
    }
    return exported;
}

}  // namespace strata::train
