#pragma once
// strata/config/impl/trainer_translation_files.ipp - the files that a trainer's configuration names, and what stands in their place.

#include <system_error>
#include <vector>

#include <strata/config/accelerate.hpp>
#include <strata/config/disagreements.hpp>
#include <strata/config/impl/trainer_translation.ipp>

namespace strata::config::detail {

/// What families of models other than of still pictures make; nullopt: pictures, or a family that strata does not know.
inline std::optional<std::string> moving_kind_of(std::string_view family) {
    for (const std::string_view name :
         {"wan", "wan_s2v", "ltxvideo", "ltxvideo2", "hunyuanvideo", "hunyuan_video", "longcat_video", "sanavideo",
          "sana_video", "kandinsky5_video", "cosmos3", "minimaxh3"})
        if (family == name) return "video";
    for (const std::string_view name : {"ace_step", "acestep", "minimaxmusic", "heartmula"})
        if (family == name) return "sound";
    return std::nullopt;
}

inline void TrainerTranslation::model(const Node& node) {
    if (!node.is(NodeKind::text) && !node.is(NodeKind::number))
        return refuse(node, Errc::bad_value, "is " + node.shown() + ", not text", "write it in double quotes");
    const std::string key = plain_key(node);
    const auto kind = key == "model_family" ? moving_kind_of(lower(node.scalar())) : std::nullopt;
    if (kind)
        return refuse(node, Errc::unsupported_key, "is " + node.shown() + ", which makes " + *kind,
                      "train a model of still pictures: flux, sdxl, sd3");
    put(key, node, node.scalar());
    reading_.findings.mapped(node, "the model", "which model is meant; a program names its own");
}

inline std::optional<std::filesystem::path> TrainerTranslation::named_file(const Node& node, std::string_view what) {
    const std::filesystem::path name = node.scalar();
    const std::filesystem::path beside = std::filesystem::path{document_.source}.parent_path() / name.filename();
    const std::filesystem::path below = std::filesystem::path{document_.source}.parent_path() / name;
    std::error_code error;
    for (const std::filesystem::path& one : {name, below, beside})
        if (std::filesystem::is_regular_file(one, error)) return one;
    reading_.intent.missing_files.push_back(node.scalar());
    reading_.findings.warn_no_effect(node, std::string{what} + " is not there: what it says is missing here",
                                     "correct the path, or run in the folder that it is relative to");
    return std::nullopt;
}

/// {"name": "prompt", ...}, or {"name": {"prompt": "..."}, ...}.
inline void TrainerTranslation::prompt_library(const Node& node) {
    if (!node.is(NodeKind::text) || node.scalar().empty())
        return refuse(node, Errc::bad_value, "is " + node.shown() + ", not a file's name",
                      "name a JSON file of names and prompts");
    const auto file = named_file(node, "the prompt library");
    if (!file) return;
    Document library;
    try {
        library = load_document(*file);
    } catch (const Error& problem) {
        return refuse(node, problem.code(), "names a file that cannot be read: " + problem.problem(), problem.fix());
    }
    if (!library.root.is(NodeKind::object))
        return refuse(node, Errc::bad_value, "names " + file->string() + ", which is no JSON object",
                      "write {\"name\": \"prompt\", ...} there");
    for (const Node::Member& member : library.root.members()) {
        const Node* const text = member.value.is(NodeKind::object) ? member.value.find("prompt") : &member.value;
        if (text == nullptr || !text->is(NodeKind::text)) {
            refuse(member.value, Errc::bad_value, "is " + member.value.shown() + ", not text",
                   "write the prompt in double quotes");
            continue;
        }
        prompts_.push_back(text->scalar());
    }
    prompts_node_ = &node;
    reading_.findings.mapped(node, "validation_prompts", std::to_string(library.root.members().size()) + " prompts");
}

inline Node TrainerTranslation::with_disk(const Node& root) const {
    std::vector<GivenValue> disks;
    for (const std::string section : {"zero_optimization.offload_optimizer", "zero_optimization.offload_param"}) {
        const Node* const device = root.at(section + ".device");
        if (offload_path_ != nullptr && device != nullptr && device->scalar() == "nvme" &&
            root.at(section + ".nvme_path") == nullptr)
            disks.push_back({section + ".nvme_path", offload_path_->scalar(), offload_path_->place()});
    }
    return disks.empty() ? root : overlay(document_of(disks, document_.source).root, root);
}

/// An object, its JSON as text, a file's name, or one of SimpleTuner's presets: "zero2".
inline void TrainerTranslation::read_deepspeed_config() {
    const Node& node = *deepspeed_;
    const std::string text = node.is(NodeKind::text) ? node.scalar() : "";
    const DeepSpeedContext context{reading_.intent.launch.ranks};
    if (text.size() == 5 && text.starts_with("zero") && text[4] >= '0' && text[4] <= '3') {
        deepspeed_intent_.emplace().composition.stage = text[4] - '0';
        return reading_.findings.mapped(node, "ZeroStage<" + text.substr(4) + ">", "a preset of SimpleTuner's");
    }
    if (text.size() == 5 && text.starts_with("zero") && text[4] >= '4' && text[4] <= '9')
        return refuse(node, Errc::bad_value, "is " + node.shown() + ", and stages are 0, 1, 2 and 3",
                      "write zero1, zero2 or zero3");
    if (node.is(NodeKind::object)) {
        deepspeed_intent_ = read_deepspeed(with_disk(node), reading_.findings, context);
        return;
    }
    if (text.empty())
        return refuse(node, Errc::bad_value, "is " + node.shown() + ", no DeepSpeed configuration",
                      "write an object, its JSON as text, or a file's name");
    try {
        Document document;
        if (text.find('{') != std::string::npos) {
            document = parse_json(text, node.place() + " (" + node.path() + ")", JsonDialect::relaxed);
        } else {
            const auto file = named_file(node, "the DeepSpeed configuration");
            if (!file) return;
            document = load_document(*file);
        }
        reading_.findings.take(document);
        deepspeed_intent_ = read_deepspeed(with_disk(document.root), reading_.findings, context);
        reading_.findings.acts(node, "docs/config/deepspeed.md", "read as DeepSpeed's own");
    } catch (const Error& problem) {
        refuse(node, problem.code(), "cannot be read: " + problem.problem(), problem.fix());
    }
}

/// A file, which goes before the keys of this one, and behind `deepspeed_config`; what ACCELERATE_... variables say goes
/// before it.
inline void TrainerTranslation::accelerate_config(const Node& node) {
    if (!node.is(NodeKind::text) || node.scalar().empty())
        return refuse(node, Errc::bad_value, "is " + node.shown() + ", not a file's name",
                      "name a YAML of Accelerate's");
    const auto file = named_file(node, "the Accelerate configuration");
    if (!file) return;
    try {
        const Intent asked = load_accelerate({"--config_file", file->string()}, process_environment, reading_.findings);
        const auto against = deepspeed_intent_ ? disagreements(asked, *deepspeed_intent_) : std::vector<Disagreement>{};
        deepspeed_intent_ = deepspeed_intent_ ? overlay(asked, *deepspeed_intent_) : asked;
        if (deepspeed_ == nullptr) asked_by_ = &node;
        if (against.empty())
            reading_.findings.acts(node, "docs/config/accelerate.md", "read as Accelerate's own");
        else
            reading_.findings.warn_mapped(
                node, "docs/config/accelerate.md",
                "read as Accelerate's own, and `deepspeed_config` goes before it: " + sentence(against),
                "say it in one of the two");
    } catch (const Error& problem) {
        refuse(node, problem.code(), "cannot be read: " + problem.problem(), problem.fix());
    }
}

}  // namespace strata::config::detail
