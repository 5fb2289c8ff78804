// tests/compile_fail/kinds_make_adapters.cpp - a kind of one's own whose make() gives no adapter gets ST0154.

#include <memory>
#include <string_view>

#include <torch/torch.h>

#include <strata/adapters/lora.hpp>

using namespace strata;

struct Mine {
    struct Options {};
    static constexpr std::string_view name = "mine";
#ifdef STRATA_BAD
    static int make(const models::LayerShape&, const Options&);
#else
    static std::shared_ptr<models::LayerAdapter> make(const models::LayerShape&, const Options&);
#endif
};

int main() { return static_cast<int>(sizeof(Adapter<Mine>::work)); }
