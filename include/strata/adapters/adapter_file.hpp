#pragma once
// strata/adapters/adapter_file.hpp - AdapterFile: what a file of adapters has, by the names that its tensors have there.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/weights/weight_files.hpp>

namespace strata::adapters {

/// How a file of adapters names what it has. None of them has to be asked for: names tell.
enum class FileNaming : std::uint8_t {
    peft,   ///< diffusers and PEFT: `unet.PATH.lora_A.weight`; what they wrote before, `.lora.down.weight`, as well
    kohya,  ///< kohya's trainer, LyCORIS, OneTrainer: `lora_unet_PATH.lora_down.weight`
    cloneofsimo,  ///< cloneofsimo's library: `unet:12:down`. Only read
    comfyui,  ///< what SimpleTuner writes for ComfyUI, `diffusion_model.PATH.lora_A.weight` with `.alpha`; of U-Nets kohya's. Only written: read as one of the first two
};
[[nodiscard]] std::string_view name_of(FileNaming naming) noexcept;

/// What a file has for one layer. Undefined where it has none.
struct AdapterTensors {
    using Tensor = std::optional<weights::WeightFiles::Tensor>;

    std::string module{};               ///< the layer's name in the file, see LayerNames
    Tensor down{};                      ///< LoRA's first matrix, A: (rank, in), or (rank, in, kh, kw)
    Tensor up{};                        ///< and second, B: (out, rank), or (out, rank, 1, 1)
    Tensor middle{};                    ///< LoCon's third: (rank, rank, kh, kw)
    Tensor magnitude{};                 ///< DoRA's norm of each row, or of each column
    Tensor w1{}, w1_a{}, w1_b{};        ///< LoKr's first factor, whole or as w1_a w1_b
    Tensor w2{}, w2_a{}, w2_b{}, t2{};  ///< and second, whole, as w2_a w2_b, or with t2 between
    std::optional<double> alpha{};
    bool magnitude_is_of_rows = false;  ///< its name says so: PEFT's

    [[nodiscard]] bool is_lokr() const noexcept { return w1 || w1_a || w1_b || w2 || w2_a || w2_b || t2; }
};

/// The tensors of a file of adapters, layer by layer. Reads its header and its alphas. A value; copies share the file. Local.
class AdapterFile {
public:
    ///   path  a file; or a folder with pytorch_lora_weights.safetensors or PEFT's adapter_model.safetensors, beside which its
    ///         adapter_config.json says alphas
    /// Throws bad_adapter_file where nothing in the file is an adapter's, or its metadata cannot be read; what WeightFiles throws.
    explicit AdapterFile(const std::filesystem::path& path);

    [[nodiscard]] const weights::WeightFiles& files() const noexcept { return files_; }
    [[nodiscard]] FileNaming naming() const noexcept { return naming_; }
    /// By module.
    [[nodiscard]] const std::vector<AdapterTensors>& modules() const noexcept { return modules_; }
    /// Tensors that are of no kind of adapter that is read: a LoHa's, a trained embedding's.
    [[nodiscard]] const std::vector<std::string>& unread() const noexcept { return unread_; }
    /// Tensors that say anew what another one of the file has said: one half of a pair under two names.
    [[nodiscard]] const std::vector<std::string>& repeated() const noexcept { return repeated_; }
    /// alpha / rank of a layer of the part, as files and their metadata say it; 1 where they do not.
    ///
    ///   rank   of its matrices
    ///   alpha  for files that do not say
    [[nodiscard]] double scale_of(const AdapterTensors& tensors, std::string_view part, std::string_view path,
                                  std::int64_t rank, std::optional<double> alpha = {}) const;
    /// Of cloneofsimo's files: the classes whose layers have adapters, of a part. Empty: the file does not say.
    [[nodiscard]] std::vector<std::string> target_classes(std::string_view part) const;

private:
    /// What PEFT says of a part of the pipeline: `lora_adapter_metadata`.
    struct PeftConfig {
        std::optional<double> alpha{};
        // By a layer's name, or the end of it, or an expression for them; the first that fits counts.
        std::vector<std::pair<std::string, double>> alphas{};
        bool is_rank_stabilised = false;  // alpha / sqrt(rank), arXiv:2312.03732
        template <class Json>
        void take(std::string_view key, const Json& value);
    };
    void read_metadata();
    void read_config_beside();

    weights::WeightFiles files_;
    FileNaming naming_ = FileNaming::peft;
    std::vector<AdapterTensors> modules_;
    std::vector<std::string> unread_;
    std::vector<std::string> repeated_;
    std::map<std::string, PeftConfig, std::less<>> configs_;  // by part; of adapter_config.json "", which is any
};

}  // namespace strata::adapters

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/adapter_file.ipp>
#endif
