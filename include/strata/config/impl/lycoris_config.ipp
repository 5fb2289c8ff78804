#pragma once
// strata/config/impl/lycoris_config.ipp - the keys of LyCORIS' arguments, and of the preset among them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/config/impl/json_of_node.ipp>
#include <strata/config/impl/key.ipp>
#include <strata/config/lycoris_config.hpp>
#include <strata/config/schema.hpp>

namespace strata::config {

namespace detail {

/// Letters, digits and what is between steps of a name, with '*' for any text. Regular expressions are no such pattern.
inline bool is_name_pattern(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
               c == '*';
    });
}

inline std::vector<std::string> read_name_patterns(const Value& value) {
    std::vector<std::string> patterns = value.texts();
    for (const std::string& one : patterns)
        if (!is_name_pattern(one))
            value.refuse(Errc::unsupported_key, "has the regular expression '" + one + "'",
                         "write names of layers, with * for any text: transformer_blocks.*.attn.to_q");
    return patterns;
}

inline constexpr const char* norms_of_columns = "is false, and DoRA's norms are those of rows";

inline bool says_false(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && *found == false;
}

/// {"factor": 8}, {"algo": "lokr", "dim": 16, "alpha": 8}.
inline LycorisExceptions read_exceptions(const std::string& of, bool is_class, const Value& value,
                                         const LycorisConfig& rest) {
    const auto member = [&](const char* key) {
        return Value{value.json().at(key), value.source(), value.key() + "." + key};
    };
    LycorisExceptions found;
    found.of = of;
    found.is_class = is_class;
    if (!value.is_object())
        value.refuse(Errc::bad_value, "is " + value.shown() + ", no object", R"(write {"factor": 8})");
    const auto whole = [&](const Value& number, double least) {
        const std::int64_t integer = number.integer();
        check_range(number, static_cast<double>(integer), {least, 1e9});
        return integer;
    };
    constexpr std::array<std::string_view, 5> off_only{"use_tucker", "use_cp", "use_scalar", "rs_lora",
                                                       "unbalanced_factorization"};
    for (const auto& [key, one] : value.json().items()) {
        if (one.is_null() || key == "bypass_mode" || key == "wd_on_out") continue;
        if (std::find(off_only.begin(), off_only.end(), key) != off_only.end() && !member(key.c_str()).flag()) continue;
        if (key == "factor") {
            found.factor = whole(member("factor"), -1);
            if (found.factor == 0)
                member("factor").refuse(Errc::bad_value, "is 0", "write -1, or a factor of the widths");
        } else if (key == "dim" || key == "linear_dim") {
            found.rank = whole(member(key.c_str()), 1);
        } else if (key == "alpha" || key == "linear_alpha") {
            found.alpha = member(key.c_str()).number();
            check_range(member(key.c_str()), *found.alpha, {0, 1e9});
        } else if (key == "full_matrix") {
            found.full_matrix = member("full_matrix").flag();
        } else if (key == "decompose_both") {
            found.decompose_both = member("decompose_both").flag();
        } else if (key == "weight_decompose" || key == "dora_wd") {
            found.weight_decompose = member(key.c_str()).flag();
            if (*found.weight_decompose && rest.algo == LycorisAlgo::lokr)
                member(key.c_str()).refuse(Errc::unsupported_key, "is of algo locon, and this is lokr", "remove it");
        } else if (key == "algo") {
            const bool is_lokr = one == "lokr", is_locon = one == "locon" || one == "lora";
            if ((rest.algo == LycorisAlgo::lokr && !is_lokr) || (rest.algo == LycorisAlgo::locon && !is_locon))
                member("algo").refuse(Errc::unsupported_key, "is " + one.dump() + ", and the rest has another",
                                      "give all layers the same 'algo'");
        } else {
            member(key.c_str())
                .refuse(Errc::unsupported_key, "differs from layer to layer",
                        "give factor, dim, alpha, full_matrix, decompose_both and weight_decompose here, and the rest "
                        "to all layers alike");
        }
    }
    if (found.weight_decompose.value_or(rest.weight_decompose) && says_false(value.json(), "wd_on_out"))
        member("wd_on_out").refuse(Errc::unsupported_key, norms_of_columns, "remove it");
    return found;
}

inline void read_algo_map(LycorisConfig& config, const Value& value, bool is_class) {
    if (!value.is_object())
        value.refuse(Errc::bad_value, "is " + value.shown() + ", no object", R"(write {"Attention": {"factor": 8}})");
    for (const auto& [name, one] : value.json().items()) {
        const Value inner{one, value.source(), value.key() + "." + name};
        if (!is_class && !is_name_pattern(name))
            inner.refuse(Errc::unsupported_key, "has a regular expression as its name",
                         "write names of layers, with * for any text: transformer_blocks.*.attn.to_q");
        config.exceptions.push_back(read_exceptions(name, is_class, inner, config));
        // LyCORIS adapts what a map of names has, whether it is a target besides or not.
        if (!is_class) config.names.push_back(name);
    }
}

/// What of `apply_preset` says which layers are adapted, and how.
inline void read_preset(LycorisConfig& config, const Value& value) {
    if (!value.is_object())
        value.refuse(Errc::unsupported_key, "is " + value.shown() + ", a preset of LyCORIS' own",
                     R"(write {"target_module": ["Attention", "FeedForward"]})");
    Problems problems;
    config.modules.clear();
    for (const auto& [key, one] : value.json().items()) {
        const Value inner{one, value.source(), value.key() + "." + key};
        problems.during([&, &key = key] {
            if (inner.is_null() || key.starts_with('_')) return;
            if (key == "target_module" || key == "unet_target_module") {
                for (std::string& module : inner.texts()) config.modules.push_back(std::move(module));
            } else if (key == "target_name" || key == "unet_target_name") {
                for (std::string& name : read_name_patterns(inner)) config.names.push_back(std::move(name));
            } else if (key == "exclude_name") {
                config.excluded = read_name_patterns(inner);
            } else if (key == "module_algo_map") {
                read_algo_map(config, inner, true);
            } else if (key == "name_algo_map") {
                read_algo_map(config, inner, false);
            } else if (key == "use_fnmatch" || key == "enable_conv" || key == "lora_prefix" ||
                       key.starts_with("text_encoder_")) {
                // Patterns are told by what is in them; text encoders are not trained; of convolutions see check_convolutions().
            } else {
                inner.refuse(Errc::unsupported_key, "is no key of a preset that strata has",
                             "use target_module, target_name, exclude_name, module_algo_map or name_algo_map");
            }
        });
    }
    problems.finish();
}

inline const std::vector<Choice<LycorisAlgo>>& lycoris_algos() {
    constexpr std::string_view none = "strata has LoKr and LoCon of LyCORIS' algorithms";
    static const std::vector<Choice<LycorisAlgo>> algos{
        {"lokr", LycorisAlgo::lokr},         {"locon", LycorisAlgo::locon},      {"lora", LycorisAlgo::locon},
        {"loha", LycorisAlgo::lokr, none},   {"ia3", LycorisAlgo::lokr, none},   {"full", LycorisAlgo::lokr, none},
        {"dylora", LycorisAlgo::lokr, none}, {"glora", LycorisAlgo::lokr, none}, {"diag-oft", LycorisAlgo::lokr, none},
        {"boft", LycorisAlgo::lokr, none},   {"tlora", LycorisAlgo::lokr, none},
    };
    return algos;
}

/// A key whose one value asks for nothing.
template <class Fine>
std::function<void(LycorisConfig&, const Value&)> only(Fine is_fine, std::string why, std::string fix) {
    return [=](LycorisConfig&, const Value& value) {
        if (!is_fine(value)) value.refuse(Errc::unsupported_key, "is " + value.shown() + ": " + why, fix);
    };
}

inline const Schema<LycorisConfig>& lycoris_schema() {
    using L = LycorisConfig;
    static const Schema<L> schema = [] {
        Schema<L> s;
        const auto off = [](const Value& value) { return value.is_null() || !value.flag(); };
        const auto none = [](const Value& value) { return value.is_null() || value.number() == 0; };
        s.choice<LycorisAlgo>("algo", &L::algo, lycoris_algos(), "The kind of adapter");
        s.custom("multiplier", "1", "1", "Strength of the adapter while it is trained",
                 only([](const Value& value) { return value.number() == 1; },
                      "an adapter is trained at its full strength", "write 1"));
        s.integer("linear_dim", &L::rank, {1, 1e9},
                  "Rank; of lokr one that is too large leaves the second factor whole");
        s.number("linear_alpha", &L::alpha, {0, 1e9}, "What is added is scaled by this / `linear_dim`");
        s.integer("factor", &L::factor, {-1, 1e9}, "Of lokr: rows and columns of the first factor at most");
        s.flag("full_matrix", &L::full_matrix, "Of lokr: the second factor is whole");
        s.flag("decompose_both", &L::decompose_both, "Of lokr: the first factor is decomposed too");
        s.number("dropout", &L::dropout, {0, 0.999}, "Of locon: share of a layer's input that is left out");
        s.flag("weight_decompose", &L::weight_decompose, "Of locon: DoRA").alias("dora_wd");
        s.custom("use_scalar", "false", "false", "",
                 only(off, "what is added is scaled by linear_alpha alone, and one of its factors begins with zeros",
                      "write false, or remove it"));
        for (const char* const key : {"rank_dropout", "module_dropout"})
            s.custom(key, "0", "0", "",
                     only(none, "neither ranks nor whole modules are left out in training", "write 0, or remove it"));
        s.custom("use_tucker", "false", "false", "",
                 only(off, "kernels of convolutions are not decomposed", "write false, or remove it"))
            .alias("use_cp");
        s.custom("rs_lora", "false", "false", "",
                 only(off, "the scale is linear_alpha / linear_dim", "write false, and another linear_alpha"));
        s.custom("unbalanced_factorization", "false", "false", "",
                 only(off, "the larger of two factors is the second", "write false, or remove it"));
        s.custom("train_norm", "false", "false", "", only(off, "norms are not trained", "write false, or remove it"));
        s.custom("apply_preset", "object", "{}", "Which layers, and their own arguments", read_preset);
        // Whose default is the linear layers' own.
        s.custom("conv_dim", "integer", "null", "", [](L& config, const Value& value) {
            if (!value.is_null() && value.integer() != config.rank)
                value.refuse(Errc::unsupported_key, "is " + value.shown() + ", and linear_dim another number",
                             "remove it: convolutions have the rank of linear layers");
        });
        s.custom("conv_alpha", "number", "null", "", [](L& config, const Value& value) {
            if (!value.is_null() && value.number() != config.alpha)
                value.refuse(Errc::unsupported_key, "is " + value.shown() + ", and linear_alpha another number",
                             "remove it: convolutions have the alpha of linear layers");
        });
        s.idle({{"bypass_mode", "the same is computed in another order"},
                {"rank_dropout_scale", "no ranks are left out"},
                {"wd_on_out", "norms are of rows"},
                {"block_size", "it is dylora's"},
                {"constraint", "it is diag-oft's"},
                {"rescaled", "it is diag-oft's"}});
        return s;
    }();
    return schema;
}

}  // namespace detail

namespace detail {

/// Names before classes, and names in the order of the file, which decides where two of them fit a layer.
inline void put_in_order(std::vector<LycorisExceptions>& exceptions, const Document& document) {
    const Node* const names = document.root.at("apply_preset.name_algo_map");
    const auto place = [&](const LycorisExceptions& one) {
        if (one.is_class || names == nullptr) return std::size_t{1} << 32U;
        const auto& members = names->members();
        const auto found = std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.key == one.of; });
        return static_cast<std::size_t>(found - members.begin());
    };
    std::stable_sort(exceptions.begin(), exceptions.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

/// A preset that leaves convolutions alone must have targets without any: they are not told from linear layers here.
inline void check_convolutions(const LycorisConfig& config, const nlohmann::json& json,
                               const std::function<void(const std::string& what, const char* fix)>& refuse) {
    const auto preset = json.find("apply_preset");
    if (preset == json.end() || !preset->is_object() || !says_false(*preset, "enable_conv")) return;
    constexpr const char* fix =
        R"(name modules without convolutions, as {"target_module": ["Attention", "FeedForward"]}, or remove 'enable_conv')";
    if (config.modules.empty() && config.names.empty())
        refuse("'apply_preset.enable_conv' is false, and without targets every layer is adapted", fix);
    for (const char* const module : {"ResnetBlock2D", "Downsample2D", "Upsample2D"})
        if (std::find(config.modules.begin(), config.modules.end(), module) != config.modules.end())
            refuse(
                "'apply_preset.enable_conv' is false, and the layers of " + std::string{module} + " are convolutions",
                fix);
}

}  // namespace detail

STRATA_INLINE LycorisConfig LycorisConfig::with(const LycorisExceptions& own) const {
    LycorisConfig config = *this;
    config.rank = own.rank.value_or(rank);
    config.alpha = own.alpha.value_or(alpha);
    config.factor = own.factor.value_or(factor);
    config.full_matrix = own.full_matrix.value_or(full_matrix);
    config.decompose_both = own.decompose_both.value_or(decompose_both);
    config.weight_decompose = own.weight_decompose.value_or(weight_decompose);
    return config;
}

STRATA_INLINE LycorisConfig read_lycoris(const Document& document, Problems& problems) {
    LycorisConfig config;
    const std::size_t before = problems.all().size();
    const nlohmann::json json = detail::json_of(document, problems);
    problems.during([&] { detail::lycoris_schema().read(json, Source{document}, "", config, {}, problems); });
    if (problems.all().size() > before) return config;
    const auto refuse = [&](const std::string& what, const char* fix) {
        problems.add({Errc::unsupported_key, document.source + ": " + what, fix});
    };
    if (config.algo == LycorisAlgo::lokr && config.dropout > 0)
        refuse("'dropout' is of algo locon, and this is lokr, which has none", "write 0, or remove it");
    if (config.algo == LycorisAlgo::lokr && config.weight_decompose)
        refuse("'weight_decompose' is of algo locon, and this is lokr", "write false, or remove it");
    if (config.weight_decompose && detail::says_false(json, "wd_on_out"))
        refuse("'wd_on_out' " + std::string{detail::norms_of_columns}, "remove it");
    detail::check_convolutions(config, json, refuse);
    detail::put_in_order(config.exceptions, document);
    // Without targets LyCORIS takes every linear layer and every convolution; what its map of classes has is a target besides.
    if (config.modules.empty() && config.names.empty()) {
        config.names = {"*"};
        return config;
    }
    for (const LycorisExceptions& one : config.exceptions)
        if (one.is_class && std::find(config.modules.begin(), config.modules.end(), one.of) == config.modules.end())
            config.modules.push_back(one.of);
    return config;
}

STRATA_INLINE LycorisConfig load_lycoris(const std::filesystem::path& file) {
    Problems problems;
    LycorisConfig config = read_lycoris(load_document(file), problems);
    problems.finish();
    return config;
}

}  // namespace strata::config
