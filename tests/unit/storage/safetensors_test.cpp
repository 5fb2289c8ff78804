#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/storage/atomic_file.hpp>
#include <strata/storage/safetensors.hpp>

#include "../../support/temporary_folder.hpp"

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
        EXPECT_TRUE(error.code() == Errc::corrupt_safetensors || error.code() == Errc::unsupported_dtype)
            << error.what();
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
             R"([])",
             R"("a")",
             R"(1)",
             R"(null)",
             R"({"a":1})",
             R"({"a":"x"})",
             R"({"a":[1]})",
             R"({"a":null})",
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
             R"({"a":{"shape":[1],"data_offsets":[0,4]}})",
             R"({"a":{"dtype":"F32","data_offsets":[0,4]}})",
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

TEST(Safetensors, EveryTypeOfTheFormatIsReadAndRefusedOnlyWhereItIsNeeded) {
    const std::map<std::string, std::size_t> bits{
        {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
        {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
        {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
        {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
    EXPECT_EQ(bits.size(), static_cast<std::size_t>(dtypes));
    constexpr std::array taken{Dtype::f32, Dtype::bf16};
    for (const auto& [name, size] : bits) {
        const std::string end = std::to_string(8 * size / 8);
        const auto file =
            file_of("{\"w.1\":{\"dtype\":\"" + name + "\",\"shape\":[2,4],\"data_offsets\":[0," + end + "]}}", size);
        const SafetensorsHeader header = parse_safetensors(file);
        EXPECT_EQ(name_of(header.at("w.1").dtype), name);
        EXPECT_EQ(tensor_bytes(file, header, "w.1").size(), size);
        if (name == "F32" || name == "BF16") {
            EXPECT_EQ(&header.at("w.1", taken, "here"), &header.tensors[0]);
            continue;
        }
        const auto error = thrown_by([&] { (void)header.at("w.1", taken, "'m.safetensors'"); });
        EXPECT_EQ(error.code, Errc::unsupported_dtype);
        EXPECT_TRUE(
            error.says("'m.safetensors': tensor 'w.1' is of type " + name + ", and F32 and BF16 are taken here. Fix: "))
            << error.message;
    }
    EXPECT_FALSE(accepts(file_of(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2))) << "12 bits";
    for (const char* unknown : {"f32", "FLOAT", "F8", ""}) {
        const auto error = thrown_by([&] {
            (void)parse_safetensors(
                file_of("{\"w.1\":{\"dtype\":\"" + std::string{unknown} + "\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                        4),
                "'m'");
        });
        EXPECT_EQ(error.code, Errc::unsupported_dtype);
        EXPECT_TRUE(error.says("'m': tensor 'w.1' has the element type '" + std::string{unknown} +
                               "', which safetensors files do not have"))
            << error.message;
    }
}

TEST(Safetensors, ANulByteInTheHeaderIsRefused) {
    const std::string good = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    for (const std::string& after : {std::string(1, '\0'), std::string(8, '\0'), std::string{"\0 more", 6}})
        EXPECT_TRUE(thrown_by([&] {
                        (void)parse_safetensors(file_of(good + after, 4), "'m'");
                    }).says("'m' is no intact safetensors file: its header holds a NUL byte"));
    EXPECT_FALSE(accepts(file_of(std::string{"{\0}", 3})));
    EXPECT_TRUE(accepts(file_of(good + " \n\t\r ", 4)));
}

TEST(Safetensors, NoChangeOfARealFileEndsInAnotherLibrarysWords) {
    const Sample sample;
    const Bytes whole = encode_safetensors(sample.tensors(), {{"format", "pt"}, {"quote", "\"é\n"}});
    const std::vector<std::string> pieces{"{",           "}",
                                          "[",           "]",
                                          ",",           ":",
                                          "\"",          "\\",
                                          "null",        "-1",
                                          "1e999",       "{}",
                                          "[[[[",        std::string(1, '\0'),
                                          "\xFF",        "99999999999999999999",
                                          "\\u0000",     "F8_E4M3",
                                          "\xEF\xBB\xBF"};
    std::mt19937 random{1};
    int refusals = 0;
    constexpr int tries = 20'000;
    for (int i = 0; i < tries; ++i) {
        std::string text(reinterpret_cast<const char*>(whole.data()), whole.size());
        for (auto changes = 1 + random() % 3; changes > 0; --changes) {
            const std::size_t at = random() % text.size();
            switch (random() % 4) {
                case 0:
                    text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
                    break;
                case 1:
                    text.erase(at, 1 + random() % 8);
                    break;
                case 2:
                    text.insert(at, pieces[random() % pieces.size()]);
                    break;
                default:
                    text.replace(at, 1, pieces[random() % pieces.size()]);
            }
            if (text.empty()) text = "x";
        }
        if (i % 2 == 0 && text.size() > 8 &&
            whole.size() + 400 > text.size()) {  // half of them with a length that fits again
            const std::uint64_t length = std::min<std::uint64_t>(text.size() - 8, text.find("}}") + 2 - 8);
            std::memcpy(text.data(), &length, sizeof length);
        }
        try {
            const auto header = parse_safetensors(std::as_bytes(std::span{text}), "'m'");
            for (const SafetensorsEntry& entry : header.tensors)
                (void)tensor_bytes(std::as_bytes(std::span{text}), header, entry.name);
        } catch (const strata::Error& error) {
            ++refusals;
            const std::string message = error.what();
            ASSERT_TRUE(message.starts_with("[ST20") && message.find("json.exception") == std::string::npos) << message;
        } catch (const std::exception& other) {
            FAIL() << "not an Error of strata: " << other.what();
        }
    }
    EXPECT_GT(refusals, tries / 2);
    EXPECT_LT(refusals, tries);
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
