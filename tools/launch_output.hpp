#pragma once
// tools/launch_output.hpp - LaunchOutput: what ranks print, where it comes by way of the launcher.

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "launch_wire.hpp"

namespace strata::tools {

/// To standard output and standard error of this process, and to a file a rank. A reader who stops reading stops nobody here: what
/// cannot be written yet is kept.
class LaunchOutput {
public:
    ///   log_folder  empty: no files. Throws Error: output_not_writable, where it cannot be made.
    LaunchOutput(std::filesystem::path log_folder, bool tags);

    /// What rank `rank` wrote to file 1 or 2.
    void take(int rank, int file, std::string_view bytes);
    /// A rank prints no more: the last line need not have an end.
    void close(int rank);

    /// More than should be kept: ranks are to wait.
    [[nodiscard]] bool is_full() const noexcept { return waiting_[0].size() + waiting_[1].size() > most_kept; }
    [[nodiscard]] bool has_waiting() const noexcept { return !waiting_[0].empty() || !waiting_[1].empty(); }
    [[nodiscard]] bool has_waiting(int file) const noexcept { return !waiting_.at(file - 1).empty(); }
    /// Writes what file 1 or 2 takes without waiting.
    void write(int file);
    /// Writes the rest, for up to so long.
    void finish(int milliseconds);

private:
    static constexpr std::size_t most_kept = std::size_t{1} << 20U;
    void show(int rank, int file, std::string_view bytes);

    std::filesystem::path folder_;
    bool tags_;
    std::map<int, File> logs_;
    std::map<int, std::array<std::string, 2>> lines_;  // without an end so far
    std::array<std::string, 2> waiting_;
};

}  // namespace strata::tools
