#pragma once
// tools/webhook_command.hpp - `strata webhook test`: one event for every webhook of a file, and what came back.

#include <span>
#include <string>

namespace strata::tools {

/// words  behind `strata webhook`. Returns the exit status. Throws Errc::bad_argument, webhook_failed, webhook_forbidden and what
///        config::read_webhooks() throws.
int webhook_command(std::span<const std::string> words);

}  // namespace strata::tools
