#include <algorithm>
#include <array>
#include <cstring>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/storage/atomic_file.hpp>
#include <strata/storage/safetensors.hpp>

#include "temporary_folder.hpp"

namespace {

using namespace strata::storage;
using strata::Errc;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;
using Bytes = std::vector<std::byte>;

/// A file from its parts: the header text, then `data` zero bytes.
Bytes file_of(const std::string& header, std::size_t data = 0) {
    const std::uint64_t length = header.size();
    Bytes file(8 + header.size() + data);
    std::memcpy(file.data(), &length, 8);
    std::memcpy(file.data() + 8, header.data(), header.size());
    return file;
}

bool accepts(const Bytes& file) {
    try {
        (void)parse_safetensors(file);
        return true;
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), Errc::corrupt_safetensors);
        return false;
    }
}

struct Sample {
    std::array<float, 6> floats{1, 2, 3, 4, 5, 6};
    std::array<std::int64_t, 1> step{42};
    std::array<std::uint8_t, 3> flags{1, 0, 1};
    [[nodiscard]] std::vector<TensorBytes> tensors() const {
        return {{"flags", Dtype::boolean, {3}, std::as_bytes(std::span{flags})},
                {"weight", Dtype::f32, {2, 3}, std::as_bytes(std::span{floats})},
                {"empty", Dtype::bf16, {0, 4}, {}},
                {"step", Dtype::i64, {}, std::as_bytes(std::span{step})}};
    }
};

TEST(Safetensors, TensorsThatComeInPartsGiveTheSameFile) {
    const TemporaryFolder folder;
    const std::vector<float> a{1, 2, 3, 4};
    const std::vector<std::int16_t> b{5, 6};
    const std::vector<TensorBytes> whole{{"b", Dtype::i16, {2}, std::as_bytes(std::span{b})},
                                         {"a", Dtype::f32, {2, 2}, std::as_bytes(std::span{a})}};
    write_safetensors(folder.path() / "whole", whole);
    const std::vector<TensorOutline> outlines{{"b", Dtype::i16, {2}}, {"a", Dtype::f32, {2, 2}}};
    SafetensorsWriter writer{folder.path() / "parts", outlines};
    writer.write(1, whole[1].bytes.subspan(4), 4);
    writer.write(0, whole[0].bytes);
    EXPECT_EQ(thrown_by([&] { writer.publish(); }).code, Errc::corrupt_safetensors) << "4 bytes never came";
    EXPECT_EQ(thrown_by([&] { writer.write(1, whole[1].bytes.first(4), 16); }).code, Errc::corrupt_safetensors);
    writer.write(1, whole[1].bytes.first(4));
    writer.publish();
    EXPECT_EQ(read_file(folder.path() / "whole"), read_file(folder.path() / "parts"));
}

TEST(Safetensors, ReturnsNamesShapesTypesValuesAndMetadata) {
    const Sample sample;
    const auto tensors = sample.tensors();
    const Bytes file = encode_safetensors(tensors, {{"format", "pt"}, {"quote", "\"é\n"}});
    const SafetensorsHeader header = parse_safetensors(file);
    EXPECT_EQ(header.metadata, (SafetensorsMetadata{{"format", "pt"}, {"quote", "\"é\n"}}));
    ASSERT_EQ(header.tensors.size(), 4U);
    for (const TensorBytes& tensor : tensors) {
        const SafetensorsEntry& entry = header.at(tensor.name);
        EXPECT_EQ(entry.dtype, tensor.dtype);
        EXPECT_EQ(entry.shape, tensor.shape);
        EXPECT_TRUE(std::ranges::equal(tensor_bytes(file, header, tensor.name), tensor.bytes));
    }
    EXPECT_EQ(thrown_by([&] { (void)header.at("bias"); }).code, Errc::corrupt_safetensors);
}

TEST(Safetensors, WritesLargeElementsFirstAlignedWhateverTheOrderOfTheInput) {
    const Sample sample;
    auto tensors = sample.tensors();
    const Bytes file = encode_safetensors(tensors);
    std::ranges::reverse(tensors);
    EXPECT_EQ(file, encode_safetensors(tensors));
    const SafetensorsHeader header = parse_safetensors(file);
    EXPECT_EQ(header.data_begin % 8, 0U);
    EXPECT_EQ(header.tensors.front().name, "step");
    EXPECT_EQ(header.tensors.back().name, "flags");
}

TEST(Safetensors, RefusesToWriteWhatCouldNotBeRead) {
    const Sample sample;
    const auto bytes = std::as_bytes(std::span{sample.floats});
    const auto refuses = [](const std::vector<TensorBytes>& tensors) {
        return thrown_by([&] { (void)encode_safetensors(tensors); }).code == Errc::corrupt_safetensors;
    };
    EXPECT_TRUE(refuses({{"a", Dtype::f32, {5}, bytes}}));
    EXPECT_TRUE(refuses({{"a", Dtype::f32, {-6}, bytes}}));
    EXPECT_TRUE(refuses({{"a", Dtype::f32, {6}, bytes}, {"a", Dtype::f32, {6}, bytes}}));
    EXPECT_TRUE(refuses({{"__metadata__", Dtype::f32, {6}, bytes}}));
    EXPECT_TRUE(refuses({{"\xFF", Dtype::f32, {6}, bytes}}));
}

TEST(Safetensors, FileOnDiskEqualsTheBytesInMemoryAndIsReadInParts) {
    const TemporaryFolder folder;
    const Sample sample;
    const auto tensors = sample.tensors();
    const auto path = folder.path() / "deep" / "model.safetensors";
    write_safetensors(path, tensors, {{"a", "b"}});
    EXPECT_EQ(read_file(path), encode_safetensors(tensors, {{"a", "b"}}));
    EXPECT_EQ(folder.count_files(), 1);

    const SafetensorsFile file{path};
    const SafetensorsEntry& entry = file.header().at("weight");
    std::array<float, 6> all{};
    file.read(entry, std::as_writable_bytes(std::span{all}));
    EXPECT_EQ(all, sample.floats);
    std::array<float, 2> part{};
    file.read(entry, std::as_writable_bytes(std::span{part}), 3 * sizeof(float));
    EXPECT_EQ(part, (std::array<float, 2>{4, 5}));
    EXPECT_EQ(thrown_by([&] { file.read(entry, std::as_writable_bytes(std::span{part}), 20); }).code,
              Errc::corrupt_safetensors);
}

TEST(Safetensors, EveryTruncationIsRefusedWithTheFilesName) {
    const TemporaryFolder folder;
    const Sample sample;
    const Bytes file = encode_safetensors(sample.tensors());
    for (std::size_t size = 0; size < file.size(); ++size)
        EXPECT_FALSE(accepts({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)})) << size;
    const auto path = folder.path() / "cut.safetensors";
    write_file(path, std::span{file}.first(file.size() - 1));
    const auto error = thrown_by([&] { SafetensorsFile{path}; });
    EXPECT_EQ(error.code, Errc::corrupt_safetensors);
    EXPECT_TRUE(error.says("cut.safetensors")) << error.message;
}

TEST(Safetensors, RefusesEveryViolationOfTheGrammar) {
    const std::string good = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    ASSERT_TRUE(accepts(file_of(good, 4)));
    ASSERT_TRUE(accepts(file_of("{}")));
    for (const char* header : {
             R"([])", R"("a")", R"(1)", R"(null)", R"({"a":1})", R"({"a":"x"})", R"({"a":[1]})", R"({"a":null})",
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})",
             R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             R"({"a":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})",
             R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})",
             R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})",
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4]}})",
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})",
             R"({"a":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}})",
             R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})",
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":{"0":4}}})",
             R"({"a":{"shape":[1],"data_offsets":[0,4]}})", R"({"a":{"dtype":"F32","data_offsets":[0,4]}})",
             R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})",
             R"({"__metadata__":{"a":"1","a":"2"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             R"({"__metadata__":{},"__metadata__":{},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             R"({"__metadata__":["a"],"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             R"({"__metadata__":{"a":null},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})",
         })
        EXPECT_FALSE(accepts(file_of(header, 4))) << header;
    std::string deep(1'000'000, '[');
    EXPECT_FALSE(accepts(file_of(deep)));
}

TEST(Safetensors, JudgesTheConformanceFilesAsTheirListSays) {
    const std::filesystem::path folder = std::filesystem::path{STRATA_REFERENCE_DIR} / "data" / "safetensors";
    if (!std::filesystem::exists(folder / "cases.json")) GTEST_SKIP() << "no conformance files at " << folder;
    const Bytes list = read_file(folder / "cases.json");
    const auto* const begin = reinterpret_cast<const char*>(list.data());
    int judged = 0;
    const auto cases = nlohmann::json::parse(begin, begin + list.size()).at("cases");
    for (const auto& entry : cases) {
        const std::string name = entry.at("file");
        const std::string expected = entry.at("expect");
        // The two the format text leaves to the reader, leading white space and a name twice: refused here.
        const bool accept = expected == "accept";
        EXPECT_EQ(accepts(read_file(folder / name)), accept) << name << ": " << expected;
        ++judged;
    }
    EXPECT_GE(judged, 30);
}

}  // namespace
