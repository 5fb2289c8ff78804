# cmake/picture-libraries.cmake - the libraries of picture formats that a build may do without.
#
# Each has an option, STRATA_WITH_TIFF and so on: ON where the library is found when CMake first configures. Without one its files are
# found, measured and skipped, and the message names the package and the option (include/strata/pictures/formats.hpp).
#
# Left behind for rooms.cmake: picture_links, picture_defines, and the options.

set(picture_links "")
set(picture_defines "")

# strata_picture_library(<FORMAT> <library> <header of the library> <package of Debian>)
macro(strata_picture_library format library header package)
    find_path(STRATA_${format}_INCLUDE NAMES ${header})
    find_library(STRATA_${format}_LIBRARY NAMES ${library})
    mark_as_advanced(STRATA_${format}_INCLUDE STRATA_${format}_LIBRARY)
    set(is_there OFF)
    if(STRATA_${format}_INCLUDE AND STRATA_${format}_LIBRARY)
        set(is_there ON)
    endif()
    option(STRATA_WITH_${format} "Decode pictures in ${format} with lib${library}" ${is_there})
    if(STRATA_WITH_${format} AND NOT is_there)
        message(FATAL_ERROR "STRATA_WITH_${format} is ON and lib${library} is not there. "
            "Fix: install ${package}, or configure with -DSTRATA_WITH_${format}=OFF")
    elseif(STRATA_WITH_${format})
        list(APPEND picture_links ${library})
        list(APPEND picture_defines STRATA_WITH_${format}=1)
    elseif(PROJECT_IS_TOP_LEVEL)
        message(STATUS "Pictures in ${format} are not decoded: STRATA_WITH_${format} is OFF (it needs ${package})")
    endif()
endmacro()

strata_picture_library(TIFF tiff tiffio.h libtiff-dev)
strata_picture_library(GIF gif gif_lib.h libgif-dev)
strata_picture_library(AVIF avif avif/avif.h libavif-dev)
strata_picture_library(HEIC heif libheif/heif.h libheif-dev)
