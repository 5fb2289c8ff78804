# cmake/strata-add-setup.cmake - strata_add_setup(): a configuration becomes a header of a target, at build time.
#
#   strata_add_setup(<target> <file> [NAME <namespace>])
#
# <file> is a DeepSpeed JSON or an Accelerate YAML. The target can include <NAME.hpp>, by default the file's name with .hpp, which declares NAME::Setup and
# NAME::set(options) (`strata codegen --help`). The header is made again when the file changes, or one that it names; a file that is wrong fails the build
# with its lines, as a compiler does: file:line:column: error: ...

function(strata_add_setup target file)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "NAME" "")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "strata_add_setup(${target} ${file}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT TARGET strata::tool)
        message(FATAL_ERROR "strata_add_setup(${target} ${file}) needs the command strata, which makes the header, and there is none. "
            "Fix: where strata is installed, build the target strata_tool and install again; where it is a part of this build, set "
            "STRATA_BUILD_TOOLS to ON before it is added.")
    endif()
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    if(NOT EXISTS "${file}")
        message(FATAL_ERROR "strata_add_setup(${target} ...): there is no file ${file}")
    endif()
    if(NOT arg_NAME)
        cmake_path(GET file STEM LAST_ONLY arg_NAME)
        # As `strata codegen` calls it; a word of C++ needs another NAME, and the command says so.
        string(MAKE_C_IDENTIFIER "${arg_NAME}" arg_NAME)
        string(REGEX REPLACE "__+" "_" arg_NAME "${arg_NAME}")
        if(arg_NAME MATCHES "^_")
            string(PREPEND arg_NAME "config")
        endif()
    endif()
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/strata_setup/${target}")
    set(header "${folder}/${arg_NAME}.hpp")
    file(MAKE_DIRECTORY "${folder}")
    add_custom_command(OUTPUT "${header}"
        COMMAND strata::tool codegen "${file}" --name "${arg_NAME}" --output "${header}" --depfile "${header}.d"
        DEPENDS "${file}" strata::tool
        DEPFILE "${header}.d"
        COMMENT "Setup of ${target}: ${arg_NAME}.hpp"
        VERBATIM)
    target_sources(${target} PRIVATE "${header}")
    target_include_directories(${target} PRIVATE "${folder}")
endfunction()
