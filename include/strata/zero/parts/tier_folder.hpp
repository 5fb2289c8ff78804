#pragma once
// strata/zero/parts/tier_folder.hpp - TierFolder: the folder of a run's files, where a tier wants one.

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include <strata/offload/swap_folder.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/parts/exchange.hpp>

namespace strata::zero {

/// First all ranks call it what rank 0 does, then each opens its own; the files in it end with it.
class TierFolder {
public:
    ///   wanted  false: there is none, and nothing is exchanged
    explicit TierFolder(bool wanted) noexcept : wanted_{wanted} {}

    /// Collective.
    void agree_on_name(Exchange& exchange) {
        if (wanted_) run_id_ = exchange.all_gather_texts(offload::new_run_id()).front();
    }
    /// Local. Throws what open_swap_folder() throws.
    void open(const std::filesystem::path& disk, int rank, std::chrono::milliseconds lock_timeout) {
        if (wanted_) folder_ = detail::open_swap_folder(disk, run_id_, rank, lock_timeout);
    }
    [[nodiscard]] const offload::SwapFolder* get() const noexcept { return folder_.get(); }

private:
    bool wanted_;
    std::string run_id_;
    std::unique_ptr<offload::SwapFolder> folder_;
};

}  // namespace strata::zero
