# cmake/precompiled.cmake - headers of others, precompiled once for all that is compiled with the same flags.
#
#   strata_precompile(<name> HEADERS <header>... LINKS <target>...)   makes the target strata_precompiled_<name>
#   strata_begin_with(<name> <target>...)                             each file of <target> begins with it; same flags, same LINKS at least
#
# For gcc. Those below hold nothing of strata, so no change of ours makes them anew. torch/torch.h is 650 MB and takes two to three times as long as
# reading it; every file that includes it is spared more than half of that reading.

function(strata_precompile name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;LINKS")
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR TARGET strata_precompiled_${name})
        return()
    endif()
    set(source "${PROJECT_BINARY_DIR}/precompiled/${name}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "// Nothing but what is precompiled.\n")
    add_library(strata_precompiled_${name} OBJECT EXCLUDE_FROM_ALL "${source}")
    target_compile_features(strata_precompiled_${name} PRIVATE cxx_std_20)
    target_compile_options(strata_precompiled_${name} PRIVATE -fpch-preprocess)  # ccache asks for it
    target_link_libraries(strata_precompiled_${name} PRIVATE ${arg_LINKS})
    list(TRANSFORM arg_HEADERS REPLACE "(.+)" "<\\1>")
    target_precompile_headers(strata_precompiled_${name} PRIVATE ${arg_HEADERS})
    # Where CMake writes it: an #include of this file in the first line of another is answered by gcc with what lies precompiled beside it.
    set_property(GLOBAL PROPERTY STRATA_PRECOMPILED_${name}
        "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/strata_precompiled_${name}.dir/cmake_pch.hxx")
endfunction()

function(strata_begin_with name)
    if(NOT TARGET strata_precompiled_${name})
        return()
    endif()
    foreach(target IN LISTS ARGN)
        target_precompile_headers(${target} REUSE_FROM strata_precompiled_${name})
        # Of what is precompiled gcc 12 forgets that it is a standard header, and warns wrongly inside of std::string. The library's own files
        # are compiled without, and have these warnings.
        target_compile_options(${target} PRIVATE -fpch-preprocess -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
    endforeach()
endfunction()

if(STRATA_WITH_TORCH)
    strata_precompile(torch HEADERS torch/torch.h LINKS strata::zero)
    # With no definition of a room's: gcc refuses what was precompiled with one that a file lacks.
    strata_precompile(tensor HEADERS ATen/core/Tensor.h LINKS torch OpenMP::OpenMP_CXX)
endif()
