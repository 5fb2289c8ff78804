# tests/consume/install_from_preset.cmake - what a preset's own targets build is all that `cmake --install` wants.
#
#   cmake -DPRESET=<name> -DSOURCE_DIR=<strata> -DWORK=<folder> [-DCOMPILER=<c++>] -P install_from_preset.cmake
#
# The preset's real configuration and real targets, with a compiler, linker and archiver that only leave a file where theirs would be:
# seconds instead of a second build.

function(run_or_fail out)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${WORK}/tree" RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(status)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "preset ${PRESET}: ${command} ended with ${status}:\n${said}")
    endif()
    set(${out} "${said}" PARENT_SCOPE)
endfunction()

function(expect_installed prefix)
    foreach(file IN LISTS ARGN)
        if(NOT EXISTS "${prefix}/${file}")
            message(SEND_ERROR "preset ${PRESET}: no ${file} was installed")
        endif()
    endforeach()
endfunction()

# Presets build in the source tree: so this is one of its own, of links.
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/tree")
file(GLOB entries "${SOURCE_DIR}/*")
foreach(entry IN LISTS entries)
    cmake_path(GET entry FILENAME name)
    if(NOT name MATCHES "^(build|quickstart)$")
        file(CREATE_LINK "${entry}" "${WORK}/tree/${name}" SYMBOLIC)
    endif()
endforeach()

# An executable where one is linked, an empty file elsewhere.
file(WRITE "${WORK}/pretend" [[#!/bin/sh
case $1 in qc) : >"$2"; exit ;; esac
is_object=no
while [ $# -gt 0 ]; do
    case $1 in
        -c) is_object=yes ;;
        -o) out=$2 ;;
        -MF) : >"$2" ;;
    esac
    shift
done
if [ "$is_object" = yes ]; then : >"$out"; else cp /bin/true "$out"; fi
]])
file(CHMOD "${WORK}/pretend" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)

set(package lib/cmake/strata/strata-config.cmake lib/pkgconfig/strata.pc include/strata/strata.hpp share/doc/strata/LICENSE)
run_or_fail(said "${CMAKE_COMMAND}" --preset "${PRESET}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${WORK}/pretend" "-DCMAKE_CXX_LINKER_LAUNCHER=${WORK}/pretend"
    "-DCMAKE_AR=${WORK}/pretend" -DCMAKE_RANLIB=/bin/true -DSTRATA_NVCC=/bin/false -DCMAKE_INSTALL_LIBDIR=lib)

# Where nothing was built, the package is there all the same, and says what is not.
run_or_fail(said "${CMAKE_COMMAND}" --install "build/${PRESET}" --prefix "${WORK}/bare")
expect_installed("${WORK}/bare" ${package})
foreach(words IN ITEMS
        "Not installed: libstrata.a, strata::compiled, because it was not built. Fix: cmake --build "
        "Not installed: strata, the command strata, because it was not built. Fix: cmake --build "
        "Not installed: strata-train, what `strata train` starts, because it was not built. Fix: cmake --build ")
    string(FIND "${said}" "${words}" at)
    if(at LESS 0)
        message(SEND_ERROR "preset ${PRESET}: installing what was not built does not say '${words}':\n${said}")
    endif()
endforeach()
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/compiled" -B "${WORK}/compiled" -G Ninja
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${WORK}/bare" RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
string(REGEX REPLACE "[ \n]+" " " said "${said}")
if(NOT status OR NOT said MATCHES "strata::compiled was not built when this strata was installed.*Fix: build the target strata_compiled")
    message(SEND_ERROR "find_package(strata) without libstrata.a says:\n${said}")
endif()

run_or_fail(said "${CMAKE_COMMAND}" --build --preset "${PRESET}")
run_or_fail(said "${CMAKE_COMMAND}" --install "build/${PRESET}" --prefix "${WORK}/prefix")
expect_installed("${WORK}/prefix" ${package} lib/libstrata.a bin/strata bin/strata-train)
if(said MATCHES "Not installed[^\n]*")
    message(SEND_ERROR "preset ${PRESET} does not build all that is installed: ${CMAKE_MATCH_0}")
endif()
