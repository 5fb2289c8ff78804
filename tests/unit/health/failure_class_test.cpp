// tests/unit/health/failure_class_test.cpp - whose fault a failed call is.

#include <strata/health/failure_class.hpp>

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
          "GPU 0000:3b:00.0: GPU has fallen off the bus.", "Uncorrectable NVLink error detected during the execution",
          "cuFFT error: CUFFT_EXEC_FAILED", "cusolver error: CUSOLVER_STATUS_EXECUTION_FAILED",
          "step 7 on rank 1 failed: cudaStreamSynchronize failed: unknown error",
          "cudaStreamQuery failed on GPU 0 of rank 1: unspecified launch failure",
          "an update could not be launched on the GPU: unknown error (cudaErrorUnknown)"})
        EXPECT_EQ(classify_failure(message), FailureClass::device) << message;
}

TEST(FailureClass, AMistakeOfTheProgramIsNoFaultOfAGpu) {
    for (const char* message :
         {"CUDA error: device-side assert triggered",
          "CUDA error: no kernel image is available for execution on the device",
          "CUDA error: invalid configuration argument", "cuDNN error: CUDNN_STATUS_BAD_PARAM",
          "NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)", "CUDA error: invalid argument",
          "CUDA error: invalid device ordinal",
          "Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
          "and cpu!",
          "Torch not compiled with CUDA enabled", "CUDA driver version is insufficient for CUDA runtime version"})
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
    for (const char* message : {"", "std::bad_alloc", "mmap: out of memory", "No such file or directory",
                                "cannot write /runs/cuda-test/step_00000004/model.safetensors: No space left on device",
                                "reading cuda_cache failed", "/home/a/cudafiles failed",
                                "reading /data/nvlink/a.png failed", "tensor on cuda:0 has no gradient"})
        EXPECT_EQ(classify_failure(message), FailureClass::other) << message;
}

TEST(FailureClass, ARankIsNamedWhereItIsTheOneThatFailed) {
    EXPECT_EQ(rank_named_in("step 7 on rank 1 failed: CUDA error: unknown error"), 1);
    EXPECT_EQ(rank_named_in("rank 12 failed: no more rows"), 12);
    EXPECT_EQ(rank_named_in("cudaMalloc failed on GPU 0 of rank 3: unknown error"), 3);
    EXPECT_EQ(rank_named_in("crank 4 turns, the rank is 2, and rank 5 does not"), 5);
    for (const char* nobody : {"", "rank ", "the ranks 1 and 2", "drank 3", "what follows step 7 failed"})
        EXPECT_FALSE(rank_named_in(nobody)) << nobody;
}

}  // namespace
