#pragma once
// strata/weights/impl/weight_files.ipp - which files a path stands for, and what their headers say together.

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/core/error.hpp>
#include <strata/core/fnv1a.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/weights/weight_files.hpp>

namespace strata::weights {

namespace detail {

inline constexpr std::string_view weights_ending = ".safetensors";
inline constexpr std::string_view index_ending = ".safetensors.index.json";

/// What the ecosystem calls the weights of a model, the first one that is there counts.
inline constexpr std::array<std::string_view, 8> usual_names{"diffusion_pytorch_model.safetensors",
                                                             "diffusion_pytorch_model.safetensors.index.json",
                                                             "model.safetensors",
                                                             "model.safetensors.index.json",
                                                             "diffusion_pytorch_model.fp16.safetensors",
                                                             "diffusion_pytorch_model.safetensors.index.fp16.json",
                                                             "model.fp16.safetensors",
                                                             "model.safetensors.index.fp16.json"};

inline bool is_index(const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    return name.ends_with(index_ending) || name.ends_with(".safetensors.index.fp16.json");
}

/// "model" of model.safetensors.
inline std::string stem_of(const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    return name.substr(0, name.size() - weights_ending.size());
}
inline std::filesystem::path index_of(const std::filesystem::path& path) {
    return path.parent_path() / (stem_of(path) + std::string{index_ending});
}
/// Everything that is wrong, in one error.
class Wrongs {
public:
    void add(std::string what) { texts_.push_back(std::move(what)); }
    void finish(const std::string& where, std::string_view fix) const {
        if (texts_.empty()) return;
        std::string all;
        for (const std::string& text : texts_) all += (all.empty() ? "" : "; ") + text;
        throw Error{Errc::bad_weight_files, where + ": " + all, fix};
    }

private:
    std::vector<std::string> texts_;
};

/// The file or index that a folder stands for.
inline std::filesystem::path weights_in(const std::filesystem::path& folder) {
    for (const std::string_view name : usual_names) {
        std::error_code unknown;
        if (std::filesystem::exists(folder / name, unknown)) return folder / name;
    }
    std::vector<std::string> found;
    std::vector<std::string> below;  // folders that have some
    std::error_code failure;
    for (const auto& entry : std::filesystem::directory_iterator{folder, failure}) {
        const std::string name = entry.path().filename().string();
        std::error_code unknown;
        if (name.ends_with(weights_ending)) found.push_back(name);
        if (!entry.is_directory(unknown)) continue;
        for (const std::string_view usual : usual_names) {
            if (!std::filesystem::exists(entry.path() / usual, unknown)) continue;
            below.push_back(name);
            break;
        }
    }
    if (failure)
        throw Error{Errc::io_failed, "reading the folder '" + folder.string() + "': " + failure.message(),
                    "look at its rights"};
    if (found.size() == 1) return folder / found.front();
    std::sort(found.begin(), found.end());
    std::sort(below.begin(), below.end());
    const auto listed = [](const std::vector<std::string>& names) {
        std::string text;
        for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
        return text;
    };
    const std::string where = "the folder '" + folder.string() + "'";
    if (!found.empty())
        throw Error{Errc::bad_weight_files, where + " has several files of weights and no index: " + listed(found),
                    "give the path of the file that is meant"};
    throw Error{Errc::bad_weight_files, where + " has no weights: no file *.safetensors and no index",
                below.empty() ? "give the folder that has them, or convert the weights to safetensors"
                              : "give the folder of one model: " + listed(below)};
}

/// What an index says: the file of each tensor. Throws bad_weight_files when it is none.
inline std::map<std::string, std::string> weight_map_of(const std::filesystem::path& index) {
    const std::string where = "the index '" + index.string() + "'";
    constexpr std::string_view fix = "fetch the index anew, together with its shards";
    const std::vector<std::byte> bytes = storage::read_file(index);
    const auto* const text = reinterpret_cast<const char*>(bytes.data());
    const nlohmann::json json = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
    Wrongs wrongs;
    std::map<std::string, std::string> files;
    if (json.is_discarded()) {
        wrongs.add("it is no JSON");
    } else if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
        wrongs.add("it has no object \"weight_map\"");
    } else {
        for (const auto& [name, file] : json["weight_map"].items()) {
            const std::string shard = file.is_string() ? file.get<std::string>() : std::string{};
            if (shard.empty() || std::filesystem::path{shard}.filename() != shard || shard == "." || shard == "..")
                wrongs.add("the file of '" + name + "' is no name of a file beside it");
            else
                files.emplace(name, shard);
        }
        if (json["weight_map"].empty()) wrongs.add("its \"weight_map\" is empty");
    }
    wrongs.finish(where, fix);
    return files;
}

/// The files that an index of an earlier call names and that are of its making. None where there is no index.
inline std::set<std::string> shards_named_by(const std::filesystem::path& path) {
    std::set<std::string> shards;
    std::error_code unknown;
    if (!std::filesystem::exists(index_of(path), unknown)) return shards;
    try {
        for (const auto& [name, shard] : weight_map_of(index_of(path))) {
            if (shard.starts_with(stem_of(path) + "-")) shards.insert(shard);
        }
    } catch (const Error&) {  // then it is no index of ours
    }
    return shards;
}

}  // namespace detail

struct WeightFiles::Contents {
    std::filesystem::path path;
    std::vector<std::unique_ptr<storage::SafetensorsFile>> files;
    Tensors tensors;
    std::string digest;

    void open_file(const std::filesystem::path& file) {
        files.push_back(std::make_unique<storage::SafetensorsFile>(file));
        for (const storage::SafetensorsEntry& entry : files.back()->header().tensors)
            tensors.emplace(entry.name, Tensor{files.back().get(), &entry});
    }
    void open_index(const std::filesystem::path& index) {
        const std::map<std::string, std::string> file_of = detail::weight_map_of(index);
        std::set<std::string> shards;
        for (const auto& [name, shard] : file_of) shards.insert(shard);
        detail::Wrongs wrongs;
        for (const std::string& shard : shards) {
            std::error_code unknown;
            if (std::filesystem::exists(index.parent_path() / shard, unknown)) continue;
            std::size_t count = 0;
            for (const auto& [name, file] : file_of) count += file == shard ? 1 : 0;
            wrongs.add("the shard '" + shard + "' with " + std::to_string(count) + " tensors is missing");
        }
        wrongs.finish("the index '" + index.string() + "'", "fetch the missing files and put them beside the index");
        for (const std::string& shard : shards) {
            files.push_back(std::make_unique<storage::SafetensorsFile>(index.parent_path() / shard));
            for (const storage::SafetensorsEntry& entry : files.back()->header().tensors) {
                const auto [place, is_new] = tensors.emplace(entry.name, Tensor{files.back().get(), &entry});
                const auto said = file_of.find(entry.name);
                if (!is_new)
                    wrongs.add("the tensor '" + entry.name + "' is in '" +
                               place->second.file->path().filename().string() + "' and in '" + shard + "'");
                else if (said != file_of.end() && said->second != shard)
                    wrongs.add("the tensor '" + entry.name + "' is in '" + shard + "' and not in '" + said->second +
                               "'");
            }
        }
        for (const auto& [name, shard] : file_of) {
            if (!tensors.contains(name)) wrongs.add("the tensor '" + name + "' is not in '" + shard + "'");
        }
        wrongs.finish("the index '" + index.string() + "'",
                      "fetch the index and all of its shards anew: they are of different versions");
    }
    void sum() {
        std::string text;
        for (const auto& [name, tensor] : tensors) {
            text += name + ' ' + std::string{storage::name_of(tensor.entry->dtype)};
            for (const std::int64_t size : tensor.entry->shape) text += ' ' + std::to_string(size);
            text += ' ' + std::to_string(tensor.entry->begin) + '\n';
        }
        constexpr std::string_view digits = "0123456789abcdef";
        const std::uint64_t hash = core::fnv1a(text);
        for (int shift = 60; shift >= 0; shift -= 4) digest += digits[(hash >> shift) & 15U];
    }
};

STRATA_INLINE WeightFiles::WeightFiles(const std::filesystem::path& path) {
    const auto contents = std::make_shared<Contents>();
    contents->path = path;
    std::error_code unknown;
    const bool is_folder = std::filesystem::is_directory(path, unknown);
    const std::filesystem::path file = is_folder ? detail::weights_in(path) : path;
    if (!is_folder && !std::filesystem::exists(path, unknown))
        throw Error{Errc::not_found, "there are no weights at '" + path.string() + "'",
                    "give a file *.safetensors, its index, or the folder that has them"};
    if (detail::is_index(file))
        contents->open_index(file);
    else
        contents->open_file(file);
    contents->sum();
    contents_ = contents;
}

STRATA_INLINE const std::filesystem::path& WeightFiles::path() const noexcept { return contents_->path; }
STRATA_INLINE const WeightFiles::Tensors& WeightFiles::tensors() const noexcept { return contents_->tensors; }

STRATA_INLINE const WeightFiles::Tensor* WeightFiles::find(std::string_view name) const noexcept {
    const auto found = contents_->tensors.find(name);
    return found == contents_->tensors.end() ? nullptr : &found->second;
}

STRATA_INLINE std::vector<std::filesystem::path> WeightFiles::files() const {
    std::vector<std::filesystem::path> paths;
    for (const auto& file : contents_->files) paths.push_back(file->path());
    return paths;
}

STRATA_INLINE const storage::SafetensorsMetadata& WeightFiles::metadata() const noexcept {
    return contents_->files.front()->header().metadata;
}
STRATA_INLINE const std::string& WeightFiles::digest() const noexcept { return contents_->digest; }

}  // namespace strata::weights
