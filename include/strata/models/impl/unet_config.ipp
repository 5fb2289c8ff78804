#pragma once
// strata/models/impl/unet_config.ipp - a UNet2DConditionModel's config.json as UnetOptions.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/findings.hpp>
#include <strata/core/error.hpp>
#include <strata/models/impl/unet_options.ipp>

namespace strata::models {

namespace detail {

/// A key that is read past where it says this, as JSON, or null where that means the same; else it asks for what this U-Net does not compute.
struct FixedKey {
    std::string_view key;
    std::string_view value;
};
inline constexpr auto fixed_unet_keys = std::to_array<FixedKey>({
    {"_class_name", "\"UNet2DConditionModel\""},
    {"act_fn", "\"silu\""},
    {"attention_type", "\"default\""},
    {"center_input_sample", "false"},
    {"class_embed_type", "null"},
    {"class_embeddings_concat", "false"},
    {"conv_in_kernel", "3"},
    {"conv_out_kernel", "3"},
    {"cross_attention_norm", "null"},
    {"downsample_padding", "1"},
    {"dropout", "0"},
    {"dual_cross_attention", "false"},
    {"encoder_hid_dim", "null"},
    {"encoder_hid_dim_type", "null"},
    {"flip_sin_to_cos", "true"},
    {"freq_shift", "0"},
    {"mid_block_only_cross_attention", "false"},
    {"mid_block_scale_factor", "1"},
    {"mid_block_type", "\"UNetMidBlock2DCrossAttn\""},
    {"num_attention_heads", "null"},
    {"num_class_embeds", "null"},
    {"only_cross_attention", "false"},
    {"resnet_out_scale_factor", "1"},
    {"resnet_skip_time_act", "false"},
    {"resnet_time_scale_shift", "\"default\""},
    {"reverse_transformer_layers_per_block", "null"},
    {"time_cond_proj_dim", "null"},
    {"time_embedding_act_fn", "null"},
    {"time_embedding_dim", "null"},
    {"time_embedding_type", "\"positional\""},
    {"timestep_post_act", "null"},
    {"upcast_attention", "false"},
});
/// Keys of which null is no default: a U-Net without a middle, another order of sines, no activation, no norms.
inline constexpr auto unet_keys_that_null_changes =
    std::to_array<std::string_view>({"act_fn", "flip_sin_to_cos", "mid_block_type", "norm_num_groups"});
/// Keys that become sizes.
inline constexpr auto unet_size_keys = std::to_array<std::string_view>(
    {"in_channels", "out_channels", "block_out_channels", "down_block_types", "up_block_types", "layers_per_block",
     "cross_attention_dim", "attention_head_dim", "transformer_layers_per_block", "norm_num_groups", "norm_eps",
     "use_linear_projection", "addition_embed_type", "addition_time_embed_dim",
     "projection_class_embeddings_input_dim"});
/// Keys that change nothing that a U-Net of this family computes.
inline constexpr auto unet_free_keys = std::to_array<std::string_view>(
    {"_diffusers_version", "_name_or_path", "sample_size", "addition_embed_type_num_heads"});

/// Reads one config.json, and goes on after a problem.
class UnetConfigReader {
public:
    explicit UnetConfigReader(const config::Document& document) : root_{&document.root} { findings_.take(document); }

    UnetOptions read() {
        if (!root_->is(config::NodeKind::object)) {
            refuse(*root_, "is no object", "give the config.json in the folder of a U-Net's weights");
            findings_.throw_if_refused();
        }
        for (const config::Node::Member& member : root_->members()) look_at(member);
        UnetOptions options;
        options.in_channels = whole("in_channels", 4);
        options.out_channels = whole("out_channels", 4);
        options.layers_per_block = whole("layers_per_block", 2);
        options.cross_attention_dim = whole("cross_attention_dim", 1280);
        options.norm_groups = whole("norm_num_groups", 32);
        if (const config::Node* const node = given("norm_eps")) {
            options.norm_eps = node->number().value_or(0);
            if (!(options.norm_eps > 0)) refuse(*node, "is no number above 0", "give a number such as 1e-05");
        }
        if (const config::Node* const node = given("use_linear_projection")) {
            if (!node->flag()) refuse(*node, "is neither true nor false", "give true or false");
            options.linear_projection = node->flag().value_or(false);
        }
        read_levels(options);
        read_addition(options);
        if (findings_.refused() == 0) {
            for (const std::string& problem : unet_problems(options))
                refuse(*root_, "has sizes that fit no U-Net: " + problem, "give the file as it came with the weights");
        }
        findings_.throw_if_refused();
        return options;
    }

private:
    using Node = config::Node;

    void refuse(const Node& node, const std::string& what, const std::string& fix) {
        findings_.refuse(node, Errc::bad_model_config, what, fix);
    }
    /// The value of a key; nullptr where it is missing or null.
    [[nodiscard]] const Node* given(std::string_view key) const {
        const Node* const node = root_->find(key);
        return node == nullptr || node->is(config::NodeKind::null) ? nullptr : node;
    }
    void look_at(const Node::Member& member) {
        const auto has = [&](const auto& keys) {
            return std::find(keys.begin(), keys.end(), member.key) != keys.end();
        };
        if (has(unet_keys_that_null_changes) && member.value.is(config::NodeKind::null)) {
            refuse(member.value, "is null, which is no default: the U-Net is another one without it",
                   "remove the key where its default is meant");
            return;
        }
        if (has(unet_size_keys) || has(unet_free_keys)) return;
        const auto* const fixed = std::find_if(fixed_unet_keys.begin(), fixed_unet_keys.end(),
                                               [&](const FixedKey& each) { return each.key == member.key; });
        if (fixed == fixed_unet_keys.end()) {
            if (!member.value.is(config::NodeKind::null))
                refuse(member.value, "is a key that no U-Net of SDXL or SD 1.5 has, and might change what is computed",
                       "remove the key if it changes nothing; a model that needs it cannot be used here");
        } else if (!is_same(member.value, fixed->value)) {
            refuse(member.value,
                   "is " + member.value.shown() + ", and only " + std::string{fixed->value} + " is computed",
                   "give the config.json of SDXL, SD 1.5 or a model trained from them");
        }
    }
    /// null is the default here, 1, 1.0 and "1" are the same number, and a list says it of every level.
    static bool is_same(const Node& node, std::string_view value) {
        if (node.is(config::NodeKind::null)) return true;
        if (value == "null") return false;
        if (node.is(config::NodeKind::list))
            return std::all_of(node.elements().begin(), node.elements().end(),
                               [&](const Node& one) { return is_same(one, value); });
        if (value == "true" || value == "false") return node.flag() == (value == "true");
        if (value.front() == '"')
            return node.is(config::NodeKind::text) && node.scalar() == value.substr(1, value.size() - 2);
        return node.number() == static_cast<double>(value.front() - '0');
    }

    std::int64_t whole_of(const Node& node) {
        const std::optional<std::int64_t> value = node.whole();
        if (value && *value >= 1 && *value <= largest) return *value;
        refuse(node, "is " + node.shown() + ", and must be a whole number from 1 to " + std::to_string(largest),
               "give the file as it came with the weights");
        return 1;
    }
    std::int64_t whole(std::string_view key, std::optional<std::int64_t> otherwise) {
        if (const Node* const node = given(key)) return whole_of(*node);
        if (!otherwise) lacks(key);
        return otherwise.value_or(1);
    }
    void lacks(std::string_view key) {
        refuse(*root_, "lacks " + std::string{key}, "give the config.json in the folder of a U-Net's weights");
    }
    /// A number for each level, or one for all.
    std::vector<std::int64_t> of_levels(std::string_view key, std::size_t levels, std::int64_t otherwise) {
        const Node* const node = given(key);
        if (node == nullptr) return std::vector<std::int64_t>(levels, otherwise);
        if (!node->is(config::NodeKind::list)) return std::vector<std::int64_t>(levels, whole_of(*node));
        std::vector<std::int64_t> values;
        for (const Node& each : node->elements()) values.push_back(whole_of(each));
        expect_size(*node, levels);
        values.resize(levels, 1);
        return values;
    }
    void expect_size(const Node& node, std::size_t levels) {
        if (node.elements().size() != levels)
            refuse(node,
                   "has " + std::to_string(node.elements().size()) + " entries, and block_out_channels has " +
                       std::to_string(levels),
                   "give an entry for every level");
    }
    /// Whether each level attends, as the types of its blocks say.
    ///
    ///   otherwise  of the levels where the key is missing
    std::vector<bool> attentions(std::string_view key, const std::string& plain, const std::string& attending,
                                 std::size_t levels, std::vector<bool> otherwise) {
        std::vector<bool> result;
        const Node* const node = given(key);
        if (node == nullptr && otherwise.size() == levels) return otherwise;
        if (node == nullptr || !node->is(config::NodeKind::list)) {
            lacks(key);
            return std::vector<bool>(levels, false);
        }
        for (const Node& each : node->elements()) {
            const std::string& type = each.scalar();
            if (type != plain && type != attending)
                refuse(each, "is " + each.shown() + ", and blocks are " + plain + " or " + attending,
                       "give the config.json of SDXL, SD 1.5 or a model trained from them");
            result.push_back(type == attending);
        }
        expect_size(*node, levels);
        result.resize(levels, false);
        return result;
    }
    void read_levels(UnetOptions& options) {
        std::vector<std::int64_t> channels{320, 640, 1280, 1280};
        if (const Node* const node = given("block_out_channels")) {
            if (!node->is(config::NodeKind::list) || node->elements().empty() ||
                node->elements().size() > most_levels) {
                refuse(*node, "is no list of 1 to " + std::to_string(most_levels) + " numbers",
                       "give the file as it came with the weights");
                return;
            }
            channels.clear();
            for (const Node& each : node->elements()) channels.push_back(whole_of(each));
        }
        const std::size_t levels = channels.size();
        const std::size_t refused = findings_.refused();
        // Where keys are missing, the class's own values: four levels, of which the coarsest does not attend.
        const auto down =
            attentions("down_block_types", "DownBlock2D", "CrossAttnDownBlock2D", levels, {true, true, true, false});
        auto up = attentions("up_block_types", "UpBlock2D", "CrossAttnUpBlock2D", levels, {false, true, true, true});
        std::reverse(up.begin(), up.end());
        if (down != up && findings_.refused() == refused)
            refuse(given("up_block_types") != nullptr ? *given("up_block_types") : *root_,
                   "has up_block_types that are not down_block_types the other way round",
                   "give the config.json of SDXL, SD 1.5 or a model trained from them");
        const auto heads = of_levels("attention_head_dim", levels, 8);
        const auto depths = of_levels("transformer_layers_per_block", levels, 1);
        for (std::size_t i = 0; i < levels; ++i) options.levels.push_back({channels[i], heads[i], depths[i], down[i]});
    }
    void read_addition(UnetOptions& options) {
        const Node* const type = given("addition_embed_type");
        if (type != nullptr && type->scalar() != "text_time") {
            refuse(*type, "is " + type->shown() + ", and only null and \"text_time\" are computed",
                   "give the config.json of SDXL, SD 1.5 or a model trained from them");
        } else if (type != nullptr) {
            options.addition_time_dim = whole("addition_time_embed_dim", std::nullopt);
            options.addition_input_dim = whole("projection_class_embeddings_input_dim", std::nullopt);
        }
    }

    static constexpr std::int64_t largest = 1 << 20;
    static constexpr std::size_t most_levels = 16;
    const Node* root_;
    config::Findings findings_;
};

}  // namespace detail

STRATA_INLINE UnetOptions unet_options_of(const config::Document& document) {
    return detail::UnetConfigReader{document}.read();
}

STRATA_INLINE UnetOptions load_unet_options(const std::filesystem::path& config_json) {
    return unet_options_of(config::load_document(config_json, config::JsonDialect::strict));
}

}  // namespace strata::models
