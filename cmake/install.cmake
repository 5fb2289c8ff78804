# cmake/install.cmake - what `cmake --install` writes, for find_package(strata) and for pkg-config.
#
# One export set a room, so that a program that asks for components finds only the packages these need:
# find_package(strata COMPONENTS policy storage) works on a machine without libtorch and MPI.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(strata_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/strata")
get_property(strata_rooms GLOBAL PROPERTY STRATA_ROOMS)

# What is compiled is installed where it was built; the headers and the package are always whole. Without this a build of some targets
# could not be installed, or would leave a prefix without its package and nobody would know why.
function(strata_say_if_missing target means)
    install(CODE "if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
        message(STATUS \"Not installed: $<TARGET_FILE_NAME:${target}>, ${means}, because it was not built. \"
            \"Fix: cmake --build ${PROJECT_BINARY_DIR} --target ${target}, and install again.\")
    endif()")
endfunction()

set(STRATA_COMPONENT_TABLE "")
foreach(room IN LISTS strata_rooms)
    install(TARGETS strata_${room} EXPORT strata-${room}-targets FILE_SET HEADERS FILE_SET bodies)
    get_property(needs GLOBAL PROPERTY STRATA_${room}_NEEDS)
    get_property(packages GLOBAL PROPERTY STRATA_${room}_PACKAGES)
    string(APPEND STRATA_COMPONENT_TABLE
        "set(_strata_${room}_needs \"${needs}\")\nset(_strata_${room}_packages \"${packages}\")\n")
endforeach()
install(TARGETS strata_strata EXPORT strata-strata-targets FILE_SET HEADERS)
install(TARGETS strata_compiled EXPORT strata-compiled-targets ARCHIVE OPTIONAL)
strata_say_if_missing(strata_compiled "strata::compiled")
string(APPEND STRATA_COMPONENT_TABLE
    "set(_strata_strata_needs \"${strata_rooms}\")\nset(_strata_strata_packages \"\")\n"
    "set(_strata_compiled_needs \"strata\")\nset(_strata_compiled_packages \"\")\n"
    "set(_strata_compiled_file \"\${CMAKE_CURRENT_LIST_DIR}/../../${CMAKE_STATIC_LIBRARY_PREFIX}strata${CMAKE_STATIC_LIBRARY_SUFFIX}\")\n")

set(strata_libraries strata compiled)
if(TARGET strata_cuda)
    install(TARGETS strata_cuda EXPORT strata-cuda_kernels-targets ARCHIVE)
    install(FILES cmake/FindNCCL.cmake DESTINATION "${strata_package_dir}")
    string(APPEND STRATA_COMPONENT_TABLE
        "set(_strata_cuda_kernels_needs \"\")\nset(_strata_cuda_kernels_packages CUDAToolkit)\n")
    list(APPEND strata_libraries cuda_kernels)
endif()

foreach(component IN LISTS strata_rooms strata_libraries)
    install(EXPORT strata-${component}-targets NAMESPACE strata:: DESTINATION "${strata_package_dir}")
endforeach()

if(TARGET strata_tool)
    install(TARGETS strata_tool RUNTIME OPTIONAL)
    strata_say_if_missing(strata_tool "the command strata")
endif()
if(TARGET strata_trainer)
    install(TARGETS strata_trainer RUNTIME OPTIONAL)
    strata_say_if_missing(strata_trainer "what `strata train` starts")
endif()
if(TARGET strata_doctor)
    install(TARGETS strata_doctor RUNTIME OPTIONAL)  # `strata doctor -n N` says so where it is missing
endif()
if(TARGET strata_memory)
    install(TARGETS strata_memory RUNTIME OPTIONAL)  # `strata memory` says so where it is missing
endif()

configure_package_config_file(cmake/strata-config.cmake.in strata-config.cmake
    INSTALL_DESTINATION "${strata_package_dir}" PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(strata-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/strata-config.cmake"
    "${PROJECT_BINARY_DIR}/strata-config-version.cmake"
    cmake/strata-add-setup.cmake
    DESTINATION "${strata_package_dir}")

# Pages lie to one another as in the source tree, so that their links lead somewhere. The quickstart is a program of that tree.
install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DOCDIR}" USE_SOURCE_PERMISSIONS PATTERN quickstart.sh EXCLUDE)

include("${CMAKE_CURRENT_LIST_DIR}/pkg-config.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/package.cmake")
