#pragma once
// tests/support/families.hpp - tiny models of all families in folders, as settings of a configuration, and what is said of those that cannot be used.

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include <strata/config/model_settings.hpp>
#include <strata/core/error.hpp>
#include <strata/families/family.hpp>
#include <strata/weights/weight_files.hpp>

#include "adapter_files.hpp"
#include "made_pipeline.hpp"
#include "temporary_folder.hpp"

namespace strata_test {

/// A tiny model of each kind, written once.
inline const std::filesystem::path& pipeline(PipelineKind kind) {
    static TemporaryFolder root;
    static std::map<PipelineKind, std::filesystem::path> written;
    std::filesystem::path& folder = written[kind];
    if (folder.empty()) {
        folder = root.path() / std::to_string(static_cast<int>(kind));
        write_pipeline(folder, kind);
    }
    return folder;
}

inline strata::config::ModelSettings settings_of(PipelineKind kind) {
    strata::config::ModelSettings settings;
    settings.path = pipeline(kind).string();
    settings.tokenizer_max_length = 12;
    return settings;
}

inline constexpr PipelineKind kinds[] = {PipelineKind::flux, PipelineKind::sdxl, PipelineKind::sd15};

struct Refusal {
    strata::Errc code{};
    std::string what;
    [[nodiscard]] bool says(const std::string& words) const { return what.find(words) != std::string::npos; }
};
inline Refusal refusal(const strata::config::ModelSettings& settings) {
    try {
        (void)strata::families::make_family(settings);
    } catch (const strata::Error& error) {
        return {error.code(), error.what()};
    }
    return {};
}

/// A copy of a pipeline whose files a test changes.
struct Changed {
    explicit Changed(PipelineKind kind) : settings{settings_of(kind)} {
        std::filesystem::copy(pipeline(kind), folder.path(), std::filesystem::copy_options::recursive);
        settings.path = folder.path().string();
    }
    /// Rewrites the weights of a part under other names, or with other shapes.
    void rewrite(const std::string& part, const std::function<void(Tensors& tensors)>& change) const {
        const strata::weights::WeightFiles files{folder.path() / part};
        Tensors tensors;
        for (const auto& [name, tensor] : files.tensors()) tensors.emplace_back(name, tensor_in(files, name));
        change(tensors);
        write_adapter(files.files().front(), tensors);
    }
    TemporaryFolder folder;
    strata::config::ModelSettings settings;
};

}  // namespace strata_test
