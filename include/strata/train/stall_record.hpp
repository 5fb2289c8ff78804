#pragma once
// strata/train/stall_record.hpp - keep_stall(): what all ranks did when they waited for each other in vain, in a file.

#include <filesystem>
#include <string>

#include <strata/comm/stall.hpp>
#include <strata/core/inline.hpp>
#include <strata/train/run_events.hpp>

namespace strata::train {

/// Writes `hang_<UTC>.txt` with the stacks of all ranks, and tells webhooks (RunEvents::hangs). Returns a line that names the file, or says why there
/// is none.
///
///   folder  of the run, on this host
/// Local. Waits for the disk, and 2 s for the event's at most.
[[nodiscard]] std::string keep_stall(const std::filesystem::path& folder, RunEvents& events, const comm::Stall& stall);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/stall_record.ipp>
#endif
