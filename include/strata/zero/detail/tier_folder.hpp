#pragma once
// strata/zero/detail/tier_folder.hpp - TierFolder: the folder of a run's files, where a tier wants one.

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include <strata/comm/communicator.hpp>
#include <strata/offload/swap_folder.hpp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::zero::detail {

/// First all ranks call it what rank 0 does, then each opens its own; the files in it end with it.
///
///   wanted  false: there is none, and nothing is exchanged
template <bool wanted>
class TierFolder {
public:
    /// Collective.
    template <comm::Communicator Comm>
    void agree_on_name(Comm& comm) {
        run_id_ = comm.all_gather_varied(offload::new_run_id()).front();
    }
    /// Local. Throws what open_swap_folder() throws.
    void open(const std::filesystem::path& disk, int rank, std::chrono::milliseconds lock_timeout) {
        folder_ = open_swap_folder(disk, run_id_, rank, lock_timeout);
    }
    [[nodiscard]] const offload::SwapFolder* get() const noexcept { return folder_.get(); }

private:
    std::string run_id_;
    std::unique_ptr<offload::SwapFolder> folder_;
};
template <>
class TierFolder<false> {
public:
    template <comm::Communicator Comm>
    void agree_on_name(Comm&) noexcept {}
    void open(const std::filesystem::path&, int, std::chrono::milliseconds) noexcept {}
    [[nodiscard]] const offload::SwapFolder* get() const noexcept { return nullptr; }
};

}  // namespace strata::zero::detail
