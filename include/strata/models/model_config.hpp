#pragma once
// strata/models/model_config.hpp - ModelConfig: the config.json beside a model's weights, held against what the model implements.

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/document.hpp>
#include <strata/core/inline.hpp>

namespace strata::models {

/// A config.json whose keys are asked for one by one. What is wrong is collected; finish() tells it all at once, keys that
/// nobody asked for included, because they could change what the model computes.
///
///   ModelConfig config{file, "AutoencoderKl"};
///   config.is_class("AutoencoderKL");
///   options.latent_channels = config.whole("latent_channels", 1);
///   config.only("act_fn", "silu");
///   config.pass_over({"sample_size"});
///   config.finish();
///
/// A key that is null counts as absent (but see never_null()). A getter whose key is absent or wrong returns its `otherwise`, or the least value
/// there can be, so that reading goes on.
class ModelConfig {
public:
    /// Throws Errc::unreadable_config for a file that is missing or no JSON.
    ModelConfig(const std::filesystem::path& file, std::string model);
    /// The text of such a file; `source` names it in messages.
    ModelConfig(std::string_view json, std::string source, std::string model);

    /// Refuses a `_class_name` that is another one. Keys that begin with "_" are about the file, and passed over.
    void is_class(std::string_view name);

    [[nodiscard]] bool has(std::string_view key) const;
    /// A whole number, at least `lowest`; required where there is no `otherwise`. Other getters likewise.
    std::int64_t whole(std::string_view key, std::int64_t lowest, std::optional<std::int64_t> otherwise = {});
    std::vector<std::int64_t> wholes(std::string_view key, std::int64_t lowest,
                                     std::optional<std::vector<std::int64_t>> otherwise = {});
    double number(std::string_view key, std::optional<double> otherwise = {});
    bool flag(std::string_view key, std::optional<bool> otherwise = {});
    std::vector<std::string> texts(std::string_view key, std::optional<std::vector<std::string>> otherwise = {});
    std::string text(std::string_view key, std::optional<std::string> otherwise = {});

    /// The key may be absent, and is otherwise `value`, the only one that the model implements. A number is compared as one.
    void only(std::string_view key, std::string_view value);
    /// Refuses null for keys of which it is no default, because the model's authors take it for "none" or "no".
    void never_null(std::initializer_list<std::string_view> keys);
    /// Keys that change nothing of what the model computes.
    void pass_over(std::initializer_list<std::string_view> keys);

    /// One more thing that is wrong: "FILE:LINE:COLUMN: 'KEY' <what>".
    void refuse(std::string_view key, std::string_view what);

    /// Throws Errc::bad_model_config with all that is wrong, each with its place.
    void finish();

private:
    [[nodiscard]] const config::Node* find(std::string_view key, bool is_required);

    std::string model_;
    config::Document document_;
    std::set<std::string, std::less<>> known_;
    std::vector<std::string> problems_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/model_config.ipp>
#endif
