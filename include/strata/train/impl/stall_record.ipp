#pragma once
// strata/train/impl/stall_record.ipp - one file a hang.

#include <chrono>
#include <cstddef>
#include <exception>

#include <strata/core/host_name.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/train/stall_record.hpp>
#include <strata/webhooks/event.hpp>

namespace strata::train {

STRATA_INLINE std::string keep_stall(const std::filesystem::path& folder, RunEvents& events, const comm::Stall& stall) {
    const std::string time = webhooks::iso_time(std::chrono::system_clock::now());
    std::string text = time + "\n" + stall.line + "\n";
    for (std::size_t rank = 0; rank < stall.stacks.size(); ++rank)
        text += "\n== rank " + std::to_string(rank) + ": " + stall.stacks[rank];
    std::string name = "hang_";  // of "2026-11-23T15:12:47.123Z" the digits up to the seconds
    for (const char letter : time.substr(0, time.find('.')))
        if (letter != '-' && letter != ':') name += letter;
    const std::filesystem::path file = folder / (name + ".txt");
    std::string line;
    try {
        storage::write_file(file, text);
        line = "what the threads of all ranks did is in " + file.string() + " on " + core::host_name();
    } catch (const std::exception& failure) {
        line = std::string{"what the threads of all ranks did cannot be kept: "} + failure.what();
    }
    events.hangs(stall.line + "; " + line);
    return line;
}

}  // namespace strata::train
