#pragma once
// strata/config/hostfile.hpp - hostfiles of DeepSpeed and OpenMPI, and DeepSpeed's filters of hosts and slots.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::config {

/// A machine, and which of its slots (GPUs) take a rank each.
struct Host {
    std::string name;
    std::vector<std::int64_t> slots;  ///< in order, from 0
    friend bool operator==(const Host&, const Host&) = default;
};

/// Lines `host slots=N`, where `#` begins a comment; OpenMPI's `max_slots=N` is passed over. A line with a name alone is one slot, and each
/// further one of that name another. Throws one Error{unreadable_config} with all lines that are wrong, and for a file without hosts.
[[nodiscard]] std::vector<Host> parse_hostfile(std::string_view text, const std::string& source);

/// Throws as parse_hostfile(), and Errc::unreadable_config for a file that cannot be read.
[[nodiscard]] std::vector<Host> load_hostfile(const std::filesystem::path& file);

/// Leaves what `--include` names, or what `--exclude` does not: "worker-0:0,1@worker-1". Throws Errc::bad_argument for
/// both at once, a host or a slot that is not there, and text of another form.
[[nodiscard]] std::vector<Host> filter_hosts(const std::vector<Host>& hosts, std::string_view include,
                                             std::string_view exclude);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/hostfile.ipp>
#endif
