#pragma once
// strata/checkpoint/impl/manifest.ipp - manifests as JSON.

#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include <strata/checkpoint/manifest.hpp>
#include <strata/core/error.hpp>
#include <strata/storage/atomic_file.hpp>

namespace strata::checkpoint {
namespace detail {

inline constexpr std::string_view format_name = "strata checkpoint 1";

inline nlohmann::ordered_json to_json(const FileRecord& record) {
    auto pieces = nlohmann::ordered_json::array();
    for (const PieceRecord& piece : record.pieces)
        pieces.push_back(nlohmann::ordered_json{{"tensor", piece.tensor}, {"kind", piece.kind}, {"begin", piece.begin}, {"numel", piece.numel}});
    return {{"name", record.name}, {"bytes", record.bytes}, {"crc32", record.crc32}, {"pieces", std::move(pieces)}};
}

inline FileRecord file_record_from(const nlohmann::json& json) {
    FileRecord record{json.at("name"), json.at("bytes"), json.at("crc32"), {}};
    for (const auto& piece : json.at("pieces"))
        record.pieces.push_back({piece.at("tensor"), piece.at("kind"), piece.at("begin"), piece.at("numel")});
    return record;
}

inline Error unreadable(const std::filesystem::path& file, const std::string& why) {
    return Error{Errc::corrupt_checkpoint, "the checkpoint manifest " + file.string() + " cannot be read: " + why,
                 "delete its folder to resume from the checkpoint before it, or start over with --fresh"};
}

/// Throws std::runtime_error for numbers and names that no save ever wrote.
inline void check_numbers(const Manifest& manifest) {
    const auto require = [](bool holds, const std::string& what) {
        if (!holds) throw std::runtime_error{what};
    };
    constexpr std::int64_t most = std::int64_t{1} << 60;
    require(manifest.step >= 0 && manifest.samples >= 0 && manifest.world >= 1, "step, samples or world is out of range");
    for (const FileRecord& file : manifest.files) {
        require(!file.name.empty() && file.name.find('/') == std::string::npos, "a file name leaves the folder");
        for (const PieceRecord& piece : file.pieces)
            require(piece.begin >= 0 && piece.begin < most && piece.numel > 0 && piece.numel < most, "a piece is out of range");
    }
}

}  // namespace detail

STRATA_INLINE std::string to_text(const FileRecord& record) { return detail::to_json(record).dump(); }

STRATA_INLINE FileRecord file_record_from(const std::string& text) {
    return detail::file_record_from(nlohmann::json::parse(text));
}

STRATA_INLINE void write_manifest(const std::filesystem::path& file, const Manifest& manifest) {
    nlohmann::ordered_json json{{"format", detail::format_name},   {"step", manifest.step},   {"samples", manifest.samples},
                                {"seed", manifest.seed},           {"world", manifest.world}, {"update_rule", manifest.update_rule},
                                {"parameters", nlohmann::json::array()}, {"files", nlohmann::json::array()}};
    for (const zero::ParameterInfo& p : manifest.parameters)
        json["parameters"].push_back(nlohmann::ordered_json{{"name", p.name}, {"shape", p.shape}, {"begin", p.begin}});
    for (const FileRecord& record : manifest.files) json["files"].push_back(detail::to_json(record));
    if (!manifest.scalars.empty()) json["scalars"] = manifest.scalars;
    storage::write_file(file, json.dump(1));
}

STRATA_INLINE Manifest read_manifest(const std::filesystem::path& file) {
    try {
        const std::vector<std::byte> bytes = storage::read_file(file);
        const auto* text = reinterpret_cast<const char*>(bytes.data());
        const auto json = nlohmann::json::parse(text, text + bytes.size());
        if (json.at("format") != detail::format_name) throw std::runtime_error{"unknown format " + json.at("format").dump()};
        Manifest manifest{json.at("step"), json.at("samples"), json.at("seed"), json.at("world"), json.at("update_rule"), {}, {}, {}};
        for (const auto& p : json.at("parameters")) {
            zero::ParameterInfo info;
            info.name = p.at("name");
            info.shape = p.at("shape").get<std::vector<std::int64_t>>();
            info.begin = p.at("begin");
            manifest.parameters.push_back(std::move(info));
        }
        for (const auto& record : json.at("files")) manifest.files.push_back(detail::file_record_from(record));
        if (json.contains("scalars")) manifest.scalars = json.at("scalars").get<std::map<std::string, double>>();
        detail::check_numbers(manifest);
        return manifest;
    } catch (const Error& error) {
        throw detail::unreadable(file, error.problem());
    } catch (const std::exception& error) {
        throw detail::unreadable(file, error.what());
    }
}

}  // namespace strata::checkpoint
