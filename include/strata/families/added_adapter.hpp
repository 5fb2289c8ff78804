#pragma once
// strata/families/added_adapter.hpp - AddedAdapter: a file of adapters that is added to what a model was published with.

#include <filesystem>

namespace strata::families {

/// As adapters::merge_adapter_file() takes both.
struct AddedAdapter {
    std::filesystem::path file;
    double strength = 1;
};

}  // namespace strata::families
