#pragma once
// strata/config/impl/simpletuner_optimizers.ipp - SimpleTuner's names of optimizers.

#include <algorithm>
#include <array>

#include <strata/config/simpletuner.hpp>

namespace strata::config {

namespace detail {

struct OptimizerRow {
    std::string_view name;
    SimpleTunerOptimizer meaning;
};

/// Names with and without the library in front, and with what a library adds behind: "bnb-adamw8bit-paged".
inline const std::vector<OptimizerRow>& optimizer_rows() {
    using Rule = RuleName;
    static constexpr std::string_view whole =
        "its states are in the number formats of `Precision<>`, and not in fewer bits";
    static constexpr std::string_view host = "where its states lie is said by `deepspeed_config`";
    static const std::vector<OptimizerRow> rows = [] {
        std::vector<OptimizerRow> all;
        const auto add = [&all](SimpleTunerOptimizer meaning, std::initializer_list<std::string_view> names) {
            for (const std::string_view name : names) all.push_back({name, meaning});
        };
        add({Rule::adamw,
             {},
             true,
             "weights are in bf16 alone, rounded by chance: `Precision<PureBf16>`",
             "epsilon=1e-6"},
            {"adamw_bf16"});
        add({Rule::adamw, {}, false, {}, {}}, {"adamw", "torch-adamw", "bnb-adamw", "sdnq-adamw+no_quant"});
        add({Rule::adamw, {}, false, {}, "weight_decay=0"}, {"optimi-adamw"});
        add({Rule::adamw, {}, false, whole, {}},
            {"adamw8bit", "bnb-adamw8bit", "ao-adamw8bit", "ao-adamw4bit", "ao-adamwfp8", "sdnq-adamw"});
        add({Rule::adamw, {}, false, host, {}}, {"bnb-adamw-paged", "bnb-adamw8bit-paged", "cpuadam", "fusedadam"});
        add({Rule::adam, {}, false, {}, {}}, {"adam", "torch-adam", "optimi-adam", "bnb-adam"});
        add({Rule::adam, {}, false, whole, {}}, {"bnb-adam8bit", "ao-adamfp8"});
        add({Rule::adam, {}, false, host, {}}, {"bnb-adam-paged", "bnb-adam8bit-paged"});
        add({Rule::lion, {}, false, {}, {}}, {"lion", "bnb-lion"});
        add({Rule::lion, {}, false, {}, "weight_decay=0"}, {"optimi-lion"});
        add({Rule::lion, {}, false, whole, {}}, {"lion8bit", "bnb-lion8bit", "sdnq-lion"});
        add({Rule::lion, {}, false, host, {}}, {"bnb-lion-paged", "bnb-lion8bit-paged"});
        add({Rule::sgd, {}, false, {}, {}}, {"sgd", "torch-sgd", "optimi-sgd"});
        add({Rule::adagrad, {}, false, {}, {}}, {"adagrad", "torch-adagrad", "bnb-adagrad"});
        add({Rule::adagrad, {}, false, whole, {}}, {"bnb-adagrad8bit"});
        add({Rule::lamb, {}, false, {}, {}}, {"lamb"});
        add({{}, Rule::adamw, false, {}, {}}, {"adamw_schedulefree",
                                               "adamw_schedulefree+aggressive",
                                               "adamw_schedulefree+no_kahan",
                                               "optimi-stableadamw",
                                               "optimi-radam",
                                               "torch-radam",
                                               "torch-nadam",
                                               "optimi-ranger",
                                               "optimi-adan",
                                               "soap",
                                               "prodigy",
                                               "dadaptation",
                                               "adafactor",
                                               "torch-adafactor",
                                               "sdnq-adafactor",
                                               "sdnq-came",
                                               "came",
                                               "torch-adamax",
                                               "torch-sparseadam",
                                               "torch-rmsprop",
                                               "rmsprop",
                                               "bnb-ademamix",
                                               "bnb-ademamix8bit",
                                               "bnb-ademamix-paged",
                                               "bnb-ademamix8bit-paged"});
        add({{}, Rule::lion, false, {}, {}}, {"muon", "sdnq-muon", "sdnq-muon+quantized_matmul"});
        add({{}, Rule::adagrad, false, {}, {}}, {"torch-adadelta"});
        add({{}, Rule::sgd, false, {}, {}}, {"torch-asgd"});
        return all;
    }();
    return rows;
}

}  // namespace detail

STRATA_INLINE std::optional<SimpleTunerOptimizer> simpletuner_optimizer(std::string_view name) {
    const auto& rows = detail::optimizer_rows();
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
    return found == rows.end() ? std::nullopt : std::optional{found->meaning};
}

STRATA_INLINE const std::vector<std::string_view>& simpletuner_optimizer_names() {
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> all;
        for (const auto& row : detail::optimizer_rows()) all.push_back(row.name);
        return all;
    }();
    return names;
}

}  // namespace strata::config
