#pragma once
// strata/zero/detail/tier_folder.hpp - TierFolder: the folder of a run's files, where a tier wants one.

#include <filesystem>
#include <memory>
#include <string>

#include <strata/comm/communicator.hpp>
#include <strata/core/error.hpp>
#include <strata/offload/swap_folder.hpp>

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
    /// Local. Throws bad_value for an empty `disk`, and what SwapFolder throws.
    void open(const std::filesystem::path& disk, int rank) {
        if (disk.empty()) {
            throw Error{Errc::bad_value, "OffloadTarget<...> keeps state on disk, and nvme_path is empty",
                        "set nvme_path to a folder on a local disk"};
        }
        folder_ = std::make_unique<offload::SwapFolder>(disk, run_id_, rank);
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
    void open(const std::filesystem::path&, int) noexcept {}
    [[nodiscard]] const offload::SwapFolder* get() const noexcept { return nullptr; }
};

}  // namespace strata::zero::detail
