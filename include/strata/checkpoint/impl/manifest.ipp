#pragma once
// strata/checkpoint/impl/manifest.ipp - manifests as JSON.

#include <span>
#include <stdexcept>
#include <string_view>

#include <nlohmann/json.hpp>

#include <strata/checkpoint/manifest.hpp>
#include <strata/core/error.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/digest.hpp>

namespace strata::checkpoint {
namespace detail {

inline constexpr std::string_view format_name = "strata checkpoint 2";
inline constexpr std::string_view format_without_seal = "strata checkpoint 1";
inline constexpr std::string_view seal_begin = ",\n \"seal\": \"";
inline constexpr std::string_view seal_end = "\"\n}";

/// `text` is a JSON object of several lines; it gets one line more.
inline std::string sealed(std::string text) {
    text.resize(text.size() - 2);  // the line break and the brace that closes the object
    const std::string seal = storage::to_hex(storage::sha256(std::as_bytes(std::span{text})));
    return text.append(seal_begin).append(seal).append(seal_end);
}

/// The seal is of the file's bytes and not of what they mean: any program can check it, whatever its JSON library writes.
inline bool seal_holds(std::string_view text) {
    while (text.ends_with('\n') || text.ends_with('\r') || text.ends_with(' ')) text.remove_suffix(1);
    const std::size_t at = text.rfind(seal_begin);
    if (at == std::string_view::npos) return false;
    const std::string seal = storage::to_hex(storage::sha256(std::as_bytes(std::span{text.substr(0, at)})));
    return text.substr(at) == std::string{seal_begin}.append(seal).append(seal_end);
}

inline nlohmann::ordered_json to_json(const Facts& facts) {
    auto json = nlohmann::ordered_json::object();
    for (const auto& [name, value] : facts) json[name] = value;
    return json;
}

inline Facts facts_from(const nlohmann::ordered_json& json) {
    Facts facts;
    for (const auto& item : json.items()) facts.emplace_back(item.key(), item.value().get<std::string>());
    return facts;
}

inline nlohmann::ordered_json to_json(const FileRecord& record) {
    auto pieces = nlohmann::ordered_json::array();
    for (const PieceRecord& piece : record.pieces)
        pieces.push_back(nlohmann::ordered_json{
            {"tensor", piece.tensor}, {"kind", piece.kind}, {"begin", piece.begin}, {"numel", piece.numel}});
    return {{"name", record.name}, {"bytes", record.bytes}, {"crc32", record.crc32}, {"pieces", std::move(pieces)}};
}

inline FileRecord file_record_from(const nlohmann::ordered_json& json) {
    FileRecord record{json.at("name"), json.at("bytes"), json.at("crc32"), {}};
    for (const auto& piece : json.at("pieces"))
        record.pieces.push_back({piece.at("tensor"), piece.at("kind"), piece.at("begin"), piece.at("numel")});
    return record;
}

inline Error unreadable(const std::filesystem::path& file, const std::string& why) {
    return Error{Errc::corrupt_checkpoint, "the checkpoint manifest " + file.string() + " cannot be read: " + why,
                 "put back a copy of it, or start over with --fresh"};
}

/// Throws std::runtime_error for numbers and names that no save ever wrote.
inline void check_numbers(const Manifest& manifest) {
    const auto require = [](bool holds, const std::string& what) {
        if (!holds) throw std::runtime_error{what};
    };
    constexpr std::int64_t most = std::int64_t{1} << 60;
    require(manifest.step >= 0 && manifest.samples >= 0 && manifest.world >= 1,
            "step, samples or world is out of range");
    for (const FileRecord& file : manifest.files) {
        require(!file.name.empty() && file.name.find('/') == std::string::npos, "a file name leaves the folder");
        for (const PieceRecord& piece : file.pieces)
            require(piece.begin >= 0 && piece.begin < most && piece.numel > 0 && piece.numel < most,
                    "a piece is out of range");
    }
}

}  // namespace detail

STRATA_INLINE std::string to_text(const FileRecord& record) { return detail::to_json(record).dump(); }

STRATA_INLINE FileRecord file_record_from(const std::string& text) {
    return detail::file_record_from(nlohmann::ordered_json::parse(text));
}

STRATA_INLINE std::vector<std::string> began_with(const Manifest& manifest) {
    if (!manifest.began_with.empty()) return manifest.began_with;
    std::vector<std::string> names;
    for (const zero::ParameterInfo& parameter : manifest.parameters) names.push_back(parameter.name);
    return names;
}

STRATA_INLINE void write_manifest(const std::filesystem::path& file, const Manifest& manifest) {
    nlohmann::ordered_json json{{"format", detail::format_name},
                                {"step", manifest.step},
                                {"samples", manifest.samples},
                                {"seed", manifest.seed},
                                {"world", manifest.world},
                                {"update_rule", manifest.update_rule},
                                {"parameters", nlohmann::ordered_json::array()},
                                {"files", nlohmann::ordered_json::array()}};
    for (const zero::ParameterInfo& p : manifest.parameters)
        json["parameters"].push_back(nlohmann::ordered_json{{"name", p.name}, {"shape", p.shape}, {"begin", p.begin}});
    for (const FileRecord& record : manifest.files) json["files"].push_back(detail::to_json(record));
    if (!manifest.began_with.empty()) json["began_with"] = manifest.began_with;
    if (!manifest.settled.empty()) json["settled"] = manifest.settled;
    if (!manifest.scalars.empty()) json["scalars"] = manifest.scalars;
    json["plan"] = detail::to_json(manifest.plan);
    json["data"] = detail::to_json(manifest.data);
    if (!manifest.base.empty()) json["base"] = manifest.base;
    if (!manifest.adapter.empty()) json["adapter"] = detail::to_json(manifest.adapter);
    json["environment"] = detail::to_json(manifest.environment);
    storage::write_file(file, detail::sealed(json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

STRATA_INLINE Manifest read_manifest(const std::filesystem::path& file) {
    std::vector<std::byte> bytes;
    try {
        bytes = storage::read_file(file);
    } catch (const Error& error) {
        throw detail::unreadable(file, error.problem());
    }
    return manifest_of_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
}

STRATA_INLINE Manifest manifest_of_text(std::string_view text, const std::filesystem::path& file) {
    try {
        const auto json = nlohmann::ordered_json::parse(text);
        Manifest manifest;
        manifest.sealed = json.at("format") != detail::format_without_seal;
        if (manifest.sealed && json.at("format") != detail::format_name)
            throw std::runtime_error{"unknown format " + json.at("format").dump()};
        if (manifest.sealed && !detail::seal_holds(text))
            throw std::runtime_error{"it was changed after it was written, its seal does not match"};
        manifest.step = json.at("step");
        manifest.samples = json.at("samples");
        manifest.seed = json.at("seed");
        manifest.world = json.at("world");
        manifest.update_rule = json.at("update_rule");
        for (const auto& p : json.at("parameters")) {
            zero::ParameterInfo info;
            info.name = p.at("name");
            info.shape = p.at("shape").get<std::vector<std::int64_t>>();
            info.begin = p.at("begin");
            manifest.parameters.push_back(std::move(info));
        }
        for (const auto& record : json.at("files")) manifest.files.push_back(detail::file_record_from(record));
        if (json.contains("began_with")) manifest.began_with = json.at("began_with").get<std::vector<std::string>>();
        if (json.contains("settled")) manifest.settled = json.at("settled").get<std::vector<std::string>>();
        if (json.contains("scalars")) manifest.scalars = json.at("scalars").get<std::map<std::string, double>>();
        if (json.contains("plan")) manifest.plan = detail::facts_from(json.at("plan"));
        if (json.contains("data")) manifest.data = detail::facts_from(json.at("data"));
        if (json.contains("base")) manifest.base = json.at("base");
        if (json.contains("adapter")) manifest.adapter = detail::facts_from(json.at("adapter"));
        if (json.contains("environment")) manifest.environment = detail::facts_from(json.at("environment"));
        detail::check_numbers(manifest);
        return manifest;
    } catch (const std::exception& error) {
        throw detail::unreadable(file, error.what());
    }
}

}  // namespace strata::checkpoint
