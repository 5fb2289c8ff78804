#pragma once
// strata/config/given_options.hpp - GivenOptions: what was given keys that are known only to whoever reads them later.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <strata/config/key.hpp>
#include <strata/config/value.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// What a file or a command line gives keys of a family.
class GivenOptions {
public:
    struct Given {
        std::string key;   ///< as a file has it, or with the dashes of a flag
        Source file;       ///< empty: a command line, or the program itself
        std::string json;  ///< the value
    };
    /// As if a file said so: set("optimizer_beta1", "0.8").
    void set(std::string key, std::string json) { put({std::move(key), "", std::move(json)}); }
    /// In place of what the key was given before.
    void put(Given given);
    /// Whoever gave it; nullptr if nobody did.
    [[nodiscard]] const Given* find(std::string_view key) const noexcept;
    [[nodiscard]] const std::vector<Given>& all() const noexcept { return all_; }

private:
    std::vector<Given> all_;
};

namespace detail {

/// What an object and a command line, which goes before it, say of a family's keys that are not `known`.
[[nodiscard]] std::vector<GivenOptions::Given> read_family(const nlohmann::json& object, const Source& source,
                                                           const KeyFamily& family, const std::vector<KeyInfo>& known,
                                                           const Overrides& overrides);
/// `value` as it was given.
[[nodiscard]] GivenOptions::Given given(const Value& value);
/// Calls `read` with what was given of the key; false if nothing was. Two spellings at once throw Errc::bad_value.
bool read_given(const GivenOptions& options, const KeyInfo& info, const std::function<void(const Value&)>& read);
/// Throws Errc::unknown_key, with the nearest that is known, for what neither `known` nor `passed_over` has.
void check_given(const GivenOptions& options, const std::vector<KeyInfo>& known,
                 const std::vector<std::string_view>& passed_over);

}  // namespace detail

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/given_options.ipp>
#endif
