#pragma once
// strata/train/run_folders.hpp - RunFolders: which trainer of a session works in which folder.

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata::train {

/// The folders that the trainers of one session have taken. Two trainers in one folder would resume from each other's
/// checkpoints and write into each other's log.
class RunFolders {
public:
    static constexpr std::size_t longest_name = 64;
    /// What a name may be, as a fix.
    static constexpr std::string_view names_are =
        "use at most 64 letters, digits, '_', '-' and '.', with no '.' in front, and no name of a run's own files";
    /// Whether a trainer may have this name; the empty one is the output directory's own. Local.
    [[nodiscard]] static bool is_name(std::string_view name);

    /// OUTPUT, or OUTPUT/NAME for a trainer with a name, which makes no folder yet. Throws Error: bad_value for a name that
    /// is no folder's, or that of a file beside the checkpoints; output_in_use when it is taken. Local; the same on every rank.
    [[nodiscard]] std::filesystem::path take(const std::filesystem::path& output, const std::string& name);

    [[nodiscard]] const std::set<std::filesystem::path>& taken() const noexcept { return taken_; }

private:
    std::set<std::filesystem::path> taken_;
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/run_folders.ipp>
#endif
