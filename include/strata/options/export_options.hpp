#pragma once
// strata/options/export_options.hpp - ExportOptions: the weights that a run leaves for other programs when it is complete.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include <strata/core/amounts.hpp>
#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>

namespace strata::train {

/// What floating point weights are written as.
enum class ExportType : std::uint8_t {
    as_computed,  ///< what the model computes with: bf16 of a run in bf16
    bf16,
    fp16,
    fp32,
};

/// Each once, by the name that configuration files have.
inline constexpr std::array<NamedValue<ExportType>, 4> export_type_names{{
    {"as_computed", ExportType::as_computed},
    {"bf16", ExportType::bf16},
    {"fp16", ExportType::fp16},
    {"fp32", ExportType::fp32},
}};

/// Trainer::save_weights() at the end of a run, once it is complete: after its last step, and not where it was stopped before. A run that
/// is complete already and is started again writes what is missing. A trainer with a moving average writes that too, beside the weights:
/// model_ema.safetensors.
struct ExportOptions {
    bool weights = false;
    std::filesystem::path path{};  ///< ends in .safetensors; empty: model.safetensors in the trainer's folder
    ExportType dtype = ExportType::as_computed;
    std::string max_shard_size = "5GB";  ///< of a file, as core::bytes_in() reads it: "5GB", "500MB"; "0": one file

    static void describe(auto& option) {
        using T = ExportOptions;
        option("weights", &T::weights,
               "Whether a run that is complete ends with its weights as safetensors, of its moving average too");
        option("path", &T::path,
               {.help = "The file that the weights go into; the average's has `_ema` behind its name",
                .special = "empty: `model.safetensors` in `output_dir`"});
        option("dtype", &T::dtype, export_type_names,
               {.help = "What these weights are written as; `as_computed` is what the model computes with"});
        option("max_shard_size", &T::max_shard_size,
               {.help = "Bytes of tensors in a file at most: `5GB`, `500MB`; above that there are shards and an index",
                .special = "0 writes one file"});
    }
    void check(OptionCheck& check) const {
        check.described(*this);
        if (!path.empty() && (path.extension() != ".safetensors" || path.stem().empty()))
            check.refuse(check.name("path") + " is '" + path.string() + "', which does not end in .safetensors",
                         "name a file such as out/model.safetensors");
        if (!core::bytes_in(max_shard_size))
            check.refuse(check.name("max_shard_size") + " is '" + max_shard_size + "', which is no number of bytes",
                         "write 5GB, 500MB, a number of bytes, or 0 for one file");
    }
};

}  // namespace strata::train
