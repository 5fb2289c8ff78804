#pragma once
// strata/weights/weight_names.hpp - LoadOptions: how the names in files and those of a model belong together.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::weights {

/// A name that begins with `from` begins with `to` instead.
struct Rename {
    std::string from;
    std::string to;
};

struct LoadOptions {
    /// What the model's names have in front of them in the files: "model.diffusion_model.". Tensors without it are another model's,
    /// and are not looked at.
    std::string prefix{};
    /// Behind the prefix: the first one whose `from` a name in the files begins with is applied, once. One with an empty `from` puts
    /// `to` in front of all names.
    std::vector<Rename> renames{};
    /// Parameters and buffers of the model, by name, that keep the values they have where the files lack them. None: all have to be there.
    std::function<bool(std::string_view name)> may_be_missing{};
    /// Tensors of the files, by the name that they would have in the model, that it need not have. None: all have to be the model's.
    std::function<bool(std::string_view name)> may_be_left{};
};

}  // namespace strata::weights
