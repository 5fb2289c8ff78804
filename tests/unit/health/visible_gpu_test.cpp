// tests/unit/health/visible_gpu_test.cpp - CUDA_VISIBLE_DEVICES as CUDA reads it.

#include <strata/health/visible_gpu.hpp>

#include <array>

#include <gtest/gtest.h>

namespace {

using strata::health::find_visible_gpu;
using strata::health::ListedGpu;
using Index = std::optional<unsigned>;

const std::array<ListedGpu, 3> alike{{{"H100", "GPU-aa11"}, {"H100", "GPU-aa22"}, {"H100", "GPU-bb33"}}};

Index index_of(const std::optional<std::string>& visible, unsigned device) {
    return find_visible_gpu(alike, visible, std::nullopt, device).index;
}

TEST(VisibleGpu, AllAreSeenWithoutTheVariable) {
    EXPECT_EQ(index_of(std::nullopt, 2), 2U);
    EXPECT_EQ(index_of(std::nullopt, 3), std::nullopt);
}

TEST(VisibleGpu, IndicesAndUuidsAreRead) {
    EXPECT_EQ(index_of("2,0", 0), 2U);
    EXPECT_EQ(index_of(" 2 , 0", 1), 0U);
    EXPECT_EQ(index_of("GPU-bb33,GPU-aa22", 1), 1U);
    EXPECT_EQ(index_of("GPU-b", 0), 2U);
    EXPECT_EQ(index_of("MIG-GPU-aa22/1/0", 0), 1U);
}

TEST(VisibleGpu, WhatFollowsAWrongEntryIsNotSeen) {
    EXPECT_EQ(index_of("1,-1,0", 0), 1U);
    EXPECT_EQ(index_of("1,-1,0", 1), std::nullopt);
    EXPECT_EQ(index_of("", 0), std::nullopt);
    EXPECT_EQ(index_of("GPU-aa", 0), std::nullopt);  // the beginning of two
    EXPECT_EQ(index_of("1x", 0), std::nullopt);
    EXPECT_NE(find_visible_gpu(alike, "7", std::nullopt, 0).note.find("CUDA_VISIBLE_DEVICES=7"), std::string::npos);
}

TEST(VisibleGpu, APartOfAGpuIsNotGuessed) {
    const auto found = find_visible_gpu(alike, "MIG-5f", std::nullopt, 0);
    EXPECT_EQ(found.index, std::nullopt);
    EXPECT_NE(found.note.find("a part of a GPU"), std::string::npos);
}

TEST(VisibleGpu, NumbersOfUnlikeGpusNeedAnOrder) {
    const std::array<ListedGpu, 2> unlike{{{"T4", "GPU-1"}, {"H100", "GPU-2"}}};
    EXPECT_NE(find_visible_gpu(unlike, std::nullopt, std::nullopt, 0).note.find("PCI_BUS_ID"), std::string::npos);
    EXPECT_EQ(find_visible_gpu(unlike, std::nullopt, "PCI_BUS_ID", 0).note, "");
    EXPECT_EQ(find_visible_gpu(unlike, "GPU-2", std::nullopt, 0).note, "");
    EXPECT_EQ(find_visible_gpu(alike, "1", std::nullopt, 0).note, "");
}

}  // namespace
