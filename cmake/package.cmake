# cmake/package.cmake - what `cpack` makes of a build: strata_<version>_<architecture>.deb with library, headers, command and pages.
#
#   cmake --workflow --preset package     builds what goes into it, and leaves it in build/package/
#
# Here is what is known when CMake configures. What depends on the files that were installed and on the packages of this machine is in
# debian-package.cmake, which cpack runs.

set(STRATA_PACKAGE_MAINTAINER "" CACHE STRING
    "Who answers for the .deb, as 'Name <name@host>'; empty: DEBFULLNAME and DEBEMAIL of the environment, when cpack runs")

# The names of a kind in debian-packages.txt.
function(strata_debian_packages kind out)
    file(STRINGS "${PROJECT_SOURCE_DIR}/cmake/debian-packages.txt" lines REGEX "^${kind} ")
    list(TRANSFORM lines REPLACE "^${kind} +" "")
    set(${out} ${lines} PARENT_SCOPE)
endfunction()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/debian-packages.txt")

# Headers include those of the libraries, so a program needs them as this build did. What ends in -dev is that; the others are for running.
strata_debian_packages(build strata_libraries_of_debian)
if(NOT STRATA_WITH_TORCH)
    list(FILTER strata_libraries_of_debian EXCLUDE REGEX "^(libtorch-dev|libopenblas0-openmp)$")
endif()
if(NOT STRATA_WITH_MPI)
    list(FILTER strata_libraries_of_debian EXCLUDE REGEX "^(libopenmpi-dev|openmpi-bin)$")
endif()
set(CPACK_STRATA_DEPENDS ${strata_libraries_of_debian})
list(FILTER CPACK_STRATA_DEPENDS INCLUDE REGEX "-dev$")
set(CPACK_STRATA_RECOMMENDS ${strata_libraries_of_debian} g++ cmake)
list(FILTER CPACK_STRATA_RECOMMENDS EXCLUDE REGEX "-dev$")
set(CPACK_STRATA_WITH_CUDA ${STRATA_WITH_CUDA})
set(CPACK_STRATA_MAINTAINER "${STRATA_PACKAGE_MAINTAINER}")
set(CPACK_STRATA_BUILD_DIR "${PROJECT_BINARY_DIR}")

find_program(STRATA_DPKG dpkg)
if(STRATA_DPKG)
    set(CPACK_GENERATOR DEB)
else()
    set(CPACK_GENERATOR TGZ)  # elsewhere, the files of an installation
endif()
set(CPACK_PACKAGE_VENDOR strata)
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "composable C++20 training of large models")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "A framework for training models whose state does not fit where it is
computed, diffusion models first. A program composes its trainer from
policy types: which state is sharded over the ranks, where it lives
(device, host memory, disk), which rule updates it, in which number
formats. Compositions that cannot work do not compile.

This package has the headers, the static library, the packages for CMake
and pkg-config, the command strata, documentation and example programs.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_NAME strata)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS pkgconf)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/debian-package.cmake")
set(CPACK_RPM_PACKAGE_LICENSE "${STRATA_LICENSE}")
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
