#pragma once
// tests/support/temporary_folder.hpp - a folder that lives as long as a test, and what a call throws.

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include <strata/core/error.hpp>

namespace strata_test {

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "strata_test_XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
        path_ = name;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

    /// Files below the folder, hidden ones as well.
    [[nodiscard]] int count_files() const {
        int count = 0;
        for (const auto& entry : std::filesystem::recursive_directory_iterator{path_})
            count += entry.is_regular_file() ? 1 : 0;
        return count;
    }

private:
    std::filesystem::path path_;
};

struct Thrown {
    strata::Errc code;
    std::string message;
    [[nodiscard]] bool says(const std::string& text) const { return message.find(text) != std::string::npos; }
};

/// The strata::Error of a call that must throw one.
template <class Call>
Thrown thrown_by(Call&& call) {
    try {
        call();
    } catch (const strata::Error& error) {
        return {error.code(), error.what()};
    }
    throw std::logic_error{"the call threw nothing"};
}

}  // namespace strata_test
