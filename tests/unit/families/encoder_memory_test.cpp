// What loading an encoder holds: its values once, in the type that it computes in, and little beside them.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/kept_blocks.hpp>
#include <strata/families/pretrained_encoders.hpp>
#include <strata/models/clip_text.hpp>
#include <strata/models/t5_encoder.hpp>

#include "../../support/made_models.hpp"
#include "../../support/made_pipeline.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

namespace families = strata::families;
namespace fs = std::filesystem;
namespace models = strata::models;
namespace made = strata_test::made;
using nlohmann::json;
using strata_test::PipelineKind;

constexpr std::int64_t mib = std::int64_t{1} << 20;

/// "VmRSS:" or "VmHWM:" of this process, in bytes.
std::int64_t status(const std::string& name) {
    std::ifstream lines{"/proc/self/status"};
    std::int64_t kib = 0;
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(name)) std::istringstream{line.substr(name.size())} >> kib;
    return kib * 1024;
}
/// From now on VmHWM is the most of what follows. False: the system does not let us.
bool begin_high_water() {
    std::ofstream refs{"/proc/self/clear_refs"};
    refs << "5" << std::flush;
    return refs.good();
}

std::int64_t numel_of(const strata_test::Shapes& shapes) {
    std::int64_t all = 0;
    for (const auto& [name, shape] : shapes) {
        std::int64_t numel = 1;
        for (const std::int64_t size : shape) numel *= size;
        all += numel;
    }
    return all;
}

/// Loads once for what a process loads at its first time, and then looks.
///
///   beside  bytes that there may be beside the values
template <class Loader>
void expect_little_beside(const Loader& loader, std::int64_t bytes, std::int64_t beside) {
    (void)loader.load(at::kCPU);
    strata::core::give_back_memory();
    if (!begin_high_water()) GTEST_SKIP() << "/proc/self/clear_refs cannot be written";
    const std::int64_t before = status("VmRSS:");
    const auto encoder = loader.load(at::kCPU);
    const std::int64_t most = status("VmHWM:") - before;
    EXPECT_GT(most, bytes / 2) << "the values are there";
    EXPECT_LT(most, bytes + beside) << "of " << bytes / mib << " MiB";
}

#ifdef __SANITIZE_ADDRESS__
#define STRATA_NOT_WITH_SANITIZER() GTEST_SKIP() << "AddressSanitizer keeps what was freed"
#else
#define STRATA_NOT_WITH_SANITIZER() static_cast<void>(0)
#endif

// The files are in fp32: a second copy of the values, or all of them in fp32 first, is beyond every bound.

TEST(EncoderMemory, T5IsReadTensorByTensor) {
    STRATA_NOT_WITH_SANITIZER();
    const strata_test::TemporaryFolder folder;
    made::write_t5(folder.path() / "t5", 1024);
    made::write_t5_tokenizer(folder.path() / "tokenizer");
    const fs::path config = folder.path() / "t5/config.json";
    std::ifstream text{config};
    const std::int64_t bytes = 2 * numel_of(strata_test::t5_shapes(json::parse(text)));
    ASSERT_GT(bytes, 24 * mib);
    expect_little_beside(families::t5_loader({folder.path() / "t5", config}, folder.path() / "tokenizer/spiece.model",
                                             models::read_t5_config(config), 16, at::kBFloat16),
                         bytes, 8 * mib);
}

TEST(EncoderMemory, ClipIsReadTensorByTensor) {
    STRATA_NOT_WITH_SANITIZER();
    const strata_test::TemporaryFolder folder;
    made::write_clip(folder.path() / "clip", 1024);
    made::write_clip_tokenizer(folder.path() / "tokenizer");
    const fs::path config = folder.path() / "clip/config.json";
    std::ifstream text{config};
    const std::int64_t bytes = 2 * numel_of(strata_test::clip_shapes(json::parse(text)));
    ASSERT_GT(bytes, 24 * mib);
    expect_little_beside(families::clip_loader({folder.path() / "clip", config}, folder.path() / "tokenizer",
                                               models::read_clip_text_config(config), {.type = at::kBFloat16}),
                         bytes, 8 * mib);
}

TEST(EncoderMemory, AnAutoencoderIsReadBlockByBlock) {
    STRATA_NOT_WITH_SANITIZER();
    const strata_test::TemporaryFolder folder;
    json config = made::autoencoder_config(PipelineKind::sdxl);
    config["block_out_channels"] = {64, 128, 256, 256};
    const strata_test::Shapes shapes = strata_test::autoencoder_shapes(config);
    made::write_json(folder.path() / "vae/config.json", config);
    strata_test::write_random_weights(folder.path() / "vae/diffusion_pytorch_model.safetensors", shapes);
    const std::int64_t bytes = 2 * numel_of(shapes);
    ASSERT_GT(bytes, 16 * mib);
    // A block is made in fp32, 12 MiB of the largest, and converted; what the heap keeps of blocks before it is a second one.
    expect_little_beside(
        families::autoencoder_loader({folder.path() / "vae", folder.path() / "vae/config.json"}, at::kBFloat16), bytes,
        28 * mib);
}

}  // namespace
