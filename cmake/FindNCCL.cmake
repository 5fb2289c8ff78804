# cmake/FindNCCL.cmake - find_package(NCCL): target NCCL::NCCL, and NCCL_FOUND, NCCL_VERSION, NCCL_INCLUDE_DIR.
#
# Looks under NCCL_ROOT, beside the CUDA toolkit that find_package(CUDAToolkit) found, and in the usual places.

find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR})  # a Python wheel has the second name only

if(NCCL_INCLUDE_DIR)
    set(NCCL_VERSION "")
    foreach(part MAJOR MINOR PATCH)
        file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" line REGEX "^#define NCCL_${part} ")
        string(REGEX MATCH "[0-9]+" number "${line}")
        list(APPEND NCCL_VERSION ${number})
    endforeach()
    list(JOIN NCCL_VERSION "." NCCL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
    add_library(NCCL::NCCL UNKNOWN IMPORTED GLOBAL)
    set_target_properties(NCCL::NCCL PROPERTIES
        IMPORTED_LOCATION "${NCCL_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
endif()
