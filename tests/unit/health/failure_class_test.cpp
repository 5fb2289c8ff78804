// tests/unit/health/failure_class_test.cpp - whose fault a failed call is.

#include <strata/health/failure_class.hpp>

#include <array>

#include <gtest/gtest.h>

namespace {

using namespace strata::health;

TEST(FailureClass, BeingOutOfMemoryIsNoFaultOfAGpu) {
    for (const char* message :
         {"CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.10 GiB total capacity)",
          "CUDA error: out of memory", "cudaErrorMemoryAllocation",
          "cuBLAS: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)",
          "cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "NCCL error: unhandled cuda error: CUDA out of memory"})
        EXPECT_EQ(classify_failure(message), FailureClass::out_of_memory) << message;
}

TEST(FailureClass, CallsThatFailOnThisGpuAreItsOwn) {
    for (const char* message :
         {"CUDA error: unknown error", "CUDA driver error: unknown error",
          "CUDA error: an illegal memory access was encountered", "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
          "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
          "CUDA error: uncorrectable ECC error encountered", "NCCL error: unhandled cuda error",
          "GPU 0000:3b:00.0: GPU has fallen off the bus.", "Uncorrectable NVLink error detected during the execution"})
        EXPECT_EQ(classify_failure(message), FailureClass::device) << message;
}

TEST(FailureClass, AMistakeOfTheProgramIsNoFaultOfAGpu) {
    for (const char* message : {"CUDA error: device-side assert triggered",
                                "CUDA error: no kernel image is available for execution on the device",
                                "CUDA error: invalid configuration argument", "cuDNN error: CUDNN_STATUS_BAD_PARAM",
                                "NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)"})
        EXPECT_EQ(classify_failure(message), FailureClass::program) << message;
}

TEST(FailureClass, WhatNcclSaysOfOthersIsRemote) {
    for (const char* message :
         {"NCCL error: remote process exited or there was a network error",
          "ncclRemoteError: A call failed possibly due to a network error",
          "NCCL WARN: Connection closed by remote peer node2<41000>", "NCCL timeout in all_reduce"})
        EXPECT_EQ(classify_failure(message), FailureClass::remote) << message;
}

TEST(FailureClass, OtherMessagesAreNotAboutGpus) {
    for (const char* message : {"", "std::bad_alloc", "mmap: out of memory", "No such file or directory"})
        EXPECT_EQ(classify_failure(message), FailureClass::other) << message;
}

TEST(FailureClass, RanksThatSawAnotherFailAreNotToBlame) {
    constexpr auto remote = FailureClass::remote;
    const std::array reports{RankFailure{3, remote}, RankFailure{1, FailureClass::device}, RankFailure{0, remote}};
    EXPECT_EQ(ranks_to_blame(reports, 4), std::vector{1});
    const std::array memory{RankFailure{2, FailureClass::out_of_memory}, RankFailure{0, remote}};
    EXPECT_EQ(ranks_to_blame(memory, 3), std::vector{2});
    const std::array silent{RankFailure{0, remote}, RankFailure{1, remote}, RankFailure{3, remote}};
    EXPECT_EQ(ranks_to_blame(silent, 4), std::vector{2});
    const std::array network{RankFailure{0, remote}, RankFailure{1, remote}};
    EXPECT_TRUE(ranks_to_blame(network, 2).empty());
    EXPECT_TRUE(ranks_to_blame({}, 2).empty());
}

}  // namespace
