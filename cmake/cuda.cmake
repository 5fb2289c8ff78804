# cmake/cuda.cmake - what is compiled by nvcc: strata::cuda_kernels in a build with STRATA_WITH_CUDA; without it, where a
# machine has the compiler, objects that nobody links, so that the kernels do not rot.
#
# Left behind: STRATA_CUDA_HEADERS, the include directories of CUDA and NCCL, empty where they are not found.

set(STRATA_CUDA_KERNELS
    "${PROJECT_SOURCE_DIR}/include/strata/comm/impl/rank_order_sum.cu"
    "${PROJECT_SOURCE_DIR}/include/strata/optim/impl/device_kernels.cu")

# -std: CMake 3.25 drops CMAKE_CUDA_STANDARD 20 without a word. -fmad: the CPU's loops round twice where a fused
# multiply-add rounds once, and a GPU must give the same bits.
set(STRATA_CUDA_FLAGS -std=c++20 --expt-relaxed-constexpr -fmad=false)

if(STRATA_WITH_CUDA)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES "80;90")
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit 12 REQUIRED)
    list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
    find_package(NCCL 2.14 REQUIRED)  # the first with communicators that do not block

    add_library(strata_cuda STATIC ${STRATA_CUDA_KERNELS})
    add_library(strata::cuda_kernels ALIAS strata_cuda)
    target_include_directories(strata_cuda PRIVATE "${PROJECT_SOURCE_DIR}/include")
    target_compile_options(strata_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${STRATA_CUDA_FLAGS}>)
    target_link_libraries(strata_cuda PUBLIC CUDA::cudart)
    set_target_properties(strata_cuda PROPERTIES
        EXPORT_NAME cuda_kernels
        POSITION_INDEPENDENT_CODE ON
        CUDA_RUNTIME_LIBRARY Shared)  # libtorch and NCCL share it
    set(STRATA_CUDA_HEADERS ${CUDAToolkit_INCLUDE_DIRS} ${NCCL_INCLUDE_DIR})
    list(REMOVE_DUPLICATES STRATA_CUDA_HEADERS)
    return()
endif()

set(STRATA_CUDA_HEADERS "")
if(NOT STRATA_BUILD_TESTS)
    return()
endif()

set(places ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda)
find_program(STRATA_NVCC nvcc HINTS ${places} PATH_SUFFIXES bin)
find_path(STRATA_CUDA_INCLUDE_DIR cuda_runtime_api.h HINTS ${places} PATH_SUFFIXES include)
find_path(STRATA_NCCL_INCLUDE_DIR nccl.h HINTS ENV NCCL_ROOT ${places} PATH_SUFFIXES include)
mark_as_advanced(STRATA_NVCC STRATA_CUDA_INCLUDE_DIR STRATA_NCCL_INCLUDE_DIR)
if(STRATA_CUDA_INCLUDE_DIR AND STRATA_NCCL_INCLUDE_DIR)
    set(STRATA_CUDA_HEADERS "${STRATA_CUDA_INCLUDE_DIR}" "${STRATA_NCCL_INCLUDE_DIR}")
    list(REMOVE_DUPLICATES STRATA_CUDA_HEADERS)
endif()

set(nvcc_version "")
if(STRATA_NVCC)
    execute_process(COMMAND "${STRATA_NVCC}" --version OUTPUT_VARIABLE said ERROR_QUIET)
    string(REGEX MATCH "release ([0-9.]+)" said "${said}")
    set(nvcc_version "${CMAKE_MATCH_1}")
endif()
if(nvcc_version VERSION_GREATER_EQUAL 12)
    set(objects "")
    foreach(kernel IN LISTS STRATA_CUDA_KERNELS)
        cmake_path(GET kernel STEM name)
        set(object "${PROJECT_BINARY_DIR}/cuda/${name}.o")
        add_custom_command(OUTPUT "${object}"
            COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${STRATA_NVCC}" ${STRATA_CUDA_FLAGS} -arch=sm_90
                "-I${PROJECT_SOURCE_DIR}/include" -MD -MF "${object}.d" -c "${kernel}" -o "${object}"
            DEPENDS "${kernel}"
            DEPFILE "${object}.d"
            COMMENT "Compiling ${name}.cu for sm_90"
            VERBATIM)
        list(APPEND objects "${object}")
    endforeach()
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/cuda")
    add_custom_target(strata_cuda_kernels_check ALL DEPENDS ${objects})
    message(STATUS "CUDA kernels: compiled by nvcc ${nvcc_version} to see that they compile; STRATA_WITH_CUDA is off")
else()
    message(STATUS "CUDA kernels: not compiled, no nvcc of CUDA 12 or later")
endif()
