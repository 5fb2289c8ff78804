#pragma once
// tests/support/cuda_headers - the one header of c10/cuda that a libtorch for the CPU leaves out: its build makes it.
#define C10_CUDA_BUILD_SHARED_LIBS
