#pragma once
// strata/config/impl/foreign_key_list.ipp - rows of a table of foreign keys, written by what they have in common.

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/config/simpletuner.hpp>

namespace strata::config::detail {

/// Keys that say the same, for a table.
class ForeignKeyList {
public:
    /// Keys that are read, and become `instead`.
    void mapped(std::string_view instead, std::initializer_list<std::string_view> keys, std::string_view fine = {}) {
        add(ForeignEffect::mapped, instead, keys, fine);
    }
    /// Keys that no result depends on: `instead` is what strata does.
    void other(std::string_view instead, std::initializer_list<std::string_view> keys, std::string_view fine = {}) {
        add(ForeignEffect::instead, instead, keys, fine);
    }
    /// Keys that would make another result, but for values that are `fine`.
    void refused(std::string_view instead, std::initializer_list<std::string_view> keys, std::string_view fine) {
        add(ForeignEffect::refused, instead, keys, fine);
    }
    [[nodiscard]] std::vector<ForeignKey> all() && { return std::move(all_); }

private:
    void add(ForeignEffect effect, std::string_view instead, std::initializer_list<std::string_view> keys,
             std::string_view fine) {
        for (const std::string_view key : keys) all_.push_back({key, effect, instead, fine});
    }
    std::vector<ForeignKey> all_;
};

}  // namespace strata::config::detail
