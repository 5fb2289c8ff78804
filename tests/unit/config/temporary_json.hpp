#pragma once
// tests/unit/config/temporary_json.hpp - a configuration file that lives as long as a test.

#include <filesystem>
#include <string_view>

#include <strata/storage/atomic_file.hpp>

#include "../../support/temporary_folder.hpp"

namespace strata_test {

class TemporaryJson {
public:
    explicit TemporaryJson(std::string_view text) { strata::storage::write_file(path(), text); }
    [[nodiscard]] std::filesystem::path path() const { return folder_.path() / "config.json"; }

private:
    TemporaryFolder folder_;
};

}  // namespace strata_test
