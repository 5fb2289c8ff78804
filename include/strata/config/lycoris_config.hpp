#pragma once
// strata/config/lycoris_config.hpp - LycorisConfig: a JSON file of LyCORIS' arguments, as `lycoris_config` names one.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/document.hpp>
#include <strata/config/problems.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// The algorithms of LyCORIS that strata has.
enum class LycorisAlgo : std::uint8_t {
    lokr,   ///< Adapter<Lokr>
    locon,  ///< Adapter<Lora>, of convolutions too; `lora` is another name of it
};

/// Arguments of a class of modules, or of named layers (`module_algo_map`, `name_algo_map`). What is empty is as the rest has it.
struct LycorisExceptions {
    std::string of;  ///< the class of a module ("FeedForward"), or a pattern of names
    bool is_class = true;
    std::optional<std::int64_t> rank;
    std::optional<double> alpha;
    std::optional<std::int64_t> factor;
    std::optional<bool> full_matrix;
    std::optional<bool> decompose_both;
    std::optional<bool> weight_decompose;
    friend bool operator==(const LycorisExceptions&, const LycorisExceptions&) = default;
};

/// What LyCORIS' create_lycoris() is told, with its defaults for what the file leaves out. Its `multiplier` is 1.
struct LycorisConfig {
    LycorisAlgo algo = LycorisAlgo::lokr;
    std::int64_t rank = 4;     ///< `linear_dim`
    double alpha = 1;          ///< `linear_alpha`
    std::int64_t factor = -1;  ///< Lokr: rows and columns of the first factor at most; -1: nearest to a square
    bool full_matrix = false;  ///< Lokr: the second factor is not decomposed, whatever the rank
    bool decompose_both = false;
    double dropout = 0;
    bool weight_decompose = false;  ///< of locon: DoRA

    std::vector<std::string>
        modules;  ///< `target_module` and `module_algo_map`: classes, whose layers are adapted; see lycoris_layers()
    std::vector<std::string> names;  ///< `target_name` and `name_algo_map`: patterns of names of layers
    std::vector<std::string> excluded;
    std::vector<LycorisExceptions> exceptions;  ///< as the file has them, those of names in its order

    /// The arguments of what an exception is of: these, and in their place what it says.
    [[nodiscard]] LycorisConfig with(const LycorisExceptions& own) const;
    friend bool operator==(const LycorisConfig&, const LycorisConfig&) = default;
};

/// Reads the arguments in a file, or what stands in its place. What strata does not do alike is a problem with its place: an algorithm that
/// it does not have, dropout of ranks and modules, a trained scalar, layers of different algorithms.
[[nodiscard]] LycorisConfig read_lycoris(const Document& document, Problems& problems);

/// The same of a file. Throws everything that is wrong as one Error; unreadable_config.
[[nodiscard]] LycorisConfig load_lycoris(const std::filesystem::path& file);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/lycoris_config.ipp>
#endif
