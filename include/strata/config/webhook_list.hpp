#pragma once
// strata/config/webhook_list.hpp - read_webhooks(): the servers that `webhook_config` names.

#include <filesystem>
#include <string>
#include <vector>

#include <strata/config/schema.hpp>
#include <strata/config/value.hpp>
#include <strata/core/inline.hpp>
#include <strata/options/webhook_options.hpp>

namespace strata::config {

/// The keys of one of them.
[[nodiscard]] const Schema<webhooks::WebhookOptions>& webhook_schema();

/// Those of a key `webhook_config`: an object, a list of them, either as JSON text, or the path of a file with either, seen from
/// the working directory or the folder of the file that names it. Null: none.
///
/// Throws Errc::unknown_key, bad_value or unreadable_config with all that is wrong; no message quotes an address, a token or a secret.
[[nodiscard]] std::vector<webhooks::WebhookOptions> read_webhooks(const Value& value);

/// Those of a file. Throws as read_webhooks() does.
[[nodiscard]] std::vector<webhooks::WebhookOptions> load_webhooks(const std::filesystem::path& file);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/webhook_list.ipp>
#endif
