#pragma once
// strata/options/adapter_options.hpp - AdapterOptions: which layers of a model have an adapter, and what it is like.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/options/layer_options.hpp>

namespace strata::train {

/// Of a trainer without adapters: nothing.
struct NoAdapterOptions {
    static void describe(auto&) {}
};

/// Names of tensors in the file that a run leaves: adapters::FileNaming has what they are.
enum class AdapterNames : std::uint8_t { diffusers, kohya, comfyui };

/// Each once, by the name that configuration files have.
inline constexpr std::array<NamedValue<AdapterNames>, 3> adapter_names{{
    {"diffusers", AdapterNames::diffusers},
    {"kohya", AdapterNames::kohya},
    {"comfyui", AdapterNames::comfyui},
}};

///   Kind  of adapter: Lora, Lokr, or one of your own
template <class Kind>
struct AdapterOptions {
    typename Kind::Options kind{};  ///< rank and what else there is of it
    /// In place of `kind`, for some of the layers: ranks and factors that differ. The first that fits a layer is the layer's.
    std::vector<LayerOptions<typename Kind::Options>> by_layer{};
    /// Layers by their paths or the ends of them, with commas between: "attn.to_q,to_out.0"; `*` is anything. Of a layer `a.b.c` the names
    /// are "c", "b.c" and "a.b.c". The usual four of attention at first.
    std::string targets = "to_q,to_k,to_v,to_out.0";
    std::string excluded{};  ///< those of them that have none, written alike
    /// A file of adapters that these begin with, of the same kind and rank: adapters::load_adapter_file(). Empty: the kind's own beginning.
    std::filesystem::path init{};
    AdapterNames names = AdapterNames::diffusers;  ///< in the file that a run leaves

    static void describe(auto& option) {
        option.part("kind", &AdapterOptions::kind, "");
        option("targets", &AdapterOptions::targets,
               "Layers that have an adapter: ends of their names, with commas between; `*` is anything");
        option("excluded", &AdapterOptions::excluded, "Layers of those that have none, written alike");
        option("init", &AdapterOptions::init,
               {.help = "File of adapters that these begin with, of the same kind and rank",
                .special = "empty: they begin by changing nothing",
                .key = "init_lora"});
        option("names", &AdapterOptions::names, adapter_names,
               {.help = "Names of tensors in the file that a run leaves", .key = "lora_format"});
    }
    void check(OptionCheck& check) const {
        check.part("kind", kind);
        for (std::size_t i = 0; i < by_layer.size(); ++i) {
            const std::string place = "by_layer[" + std::to_string(i) + "]";
            check.part(place, by_layer[i].options);
            if (by_layer[i].layers.find_first_not_of(" ,") == std::string::npos)
                check.refuse(check.name(place) + " names no layers", "name some, for instance \"ff.net.0.proj\"");
        }
        if (targets.find_first_not_of(" ,") == std::string::npos)
            check.refuse(check.name("targets") + " is empty, so that no layer has an adapter",
                         "name layers, for instance \"to_q,to_k,to_v,to_out.0\"");
    }
};

namespace detail {

template <class Adaptation, bool enabled>
struct AdapterOptionsOf {
    using type = NoAdapterOptions;
};
template <class Adaptation>
struct AdapterOptionsOf<Adaptation, true> {
    using type = AdapterOptions<typename Adaptation::kind>;
};

}  // namespace detail

/// The options of a policy about adapters.
template <class Adaptation>
using adapter_options_t = typename detail::AdapterOptionsOf<Adaptation, Adaptation::enabled>::type;

}  // namespace strata::train
