# cmake/headers.cmake - the target `headers_stand_alone`: every public header compiles by itself, without a warning.
#
# Each header of a room is the first line of a file of its own, which is compiled with what the room may use, as far as syntax goes. Three
# things are left out of that, because they are most of the work and prove nothing more:
#
#   * Bodies of other headers. STRATA_COMPILED is defined, and a header's own bodies are included after it. So a body is seen once, not in
#     every file that reaches it. Header-only, a header and its bodies see the same and more: all that they include has been read by then,
#     or stands open above with nothing but includes left, which tests/layering checks.
#   * libtorch, again and again. Where a header includes ATen/core/Tensor.h, itself or through others, the file begins with it, precompiled.
#     What the header's text sees is the same: its includes are above its text, so Tensor.h and all that it brings is there in either case;
#     the headers in between are verified themselves. A header that uses libtorch without including it gets none. Likewise torch/torch.h.
#   * Files of headers that another file can read first. Where a header reaches another of its room by its includes, and that one has no
#     bodies, the other stands in the same file above it. What the lower one's text sees is what its includes bring in any case, as above. So
#     a file is a chain of headers, each reached by the next, and the bodies of the last: 380 files in place of 490.
#
# Which header includes what is read from the text when the target is built (cmake -P on this file), so that it is never out of date: what
# stands above the first namespace and under no #if.

# ---- the script: HEADERS, a file of lines "<header> <file to write>"; INCLUDE, where headers are; PRECOMPILED, a file of lines "<header> <path>"

if(CMAKE_SCRIPT_MODE_FILE)
    cmake_minimum_required(VERSION 3.25...3.31)
    # What a header includes at its top, and its bodies.
    function(read_includes header)
        file(STRINGS "${INCLUDE}/${header}" lines REGEX "^(#(if|endif|include)|namespace )")
        set(top "")
        set(bodies "")
        set(depth 0)
        set(is_top TRUE)
        foreach(line IN LISTS lines)
            if(line MATCHES "^#if")
                math(EXPR depth "${depth} + 1")
            elseif(line MATCHES "^#endif")
                math(EXPR depth "${depth} - 1")
            elseif(line MATCHES "^namespace ")
                set(is_top FALSE)
            elseif(line MATCHES "^#include <([^>]+[.]ipp)>")
                string(APPEND bodies "#include <${CMAKE_MATCH_1}>\n")
            elseif(is_top AND depth EQUAL 0 AND line MATCHES "^#include <([^>]+)>")
                list(APPEND top "${CMAKE_MATCH_1}")
            endif()
        endforeach()
        set_property(GLOBAL PROPERTY "top ${header}" "${top}")
        set_property(GLOBAL PROPERTY "bodies ${header}" "${bodies}")
    endfunction()

    # Whether a header includes `wanted` at its top, or one that does.
    function(reaches header wanted out)
        get_property(known GLOBAL PROPERTY "${header} reaches ${wanted}")
        if("${known}" STREQUAL "")
            set(known FALSE)
            set_property(GLOBAL PROPERTY "${header} reaches ${wanted}" FALSE)  # two headers may include each other
            get_property(top GLOBAL PROPERTY "top ${header}")
            if(wanted IN_LIST top)
                set(known TRUE)
            else()
                foreach(next IN LISTS top)
                    reaches("${next}" "${wanted}" known)
                    if(known)
                        break()
                    endif()
                endforeach()
            endif()
            set_property(GLOBAL PROPERTY "${header} reaches ${wanted}" ${known})
        endif()
        set(${out} ${known} PARENT_SCOPE)
    endfunction()

    # The headers of its own room that a header reaches, itself left out.
    function(of_its_room header out)
        get_property(is_known GLOBAL PROPERTY "below ${header}" SET)
        if(NOT is_known)
            set_property(GLOBAL PROPERTY "below ${header}" "")  # two headers may include each other
            string(REGEX MATCH "^strata/[a-z0-9]+/" room "${header}")
            set(below "")
            get_property(top GLOBAL PROPERTY "top ${header}")
            foreach(next IN LISTS top)
                string(FIND "${next}" "${room}" at)
                if(at EQUAL 0 AND NOT room STREQUAL "")
                    of_its_room("${next}" further)
                    list(APPEND below ${further} "${next}")
                endif()
            endforeach()
            list(REMOVE_DUPLICATES below)
            list(REMOVE_ITEM below "${header}")
            set_property(GLOBAL PROPERTY "below ${header}" "${below}")
        endif()
        get_property(below GLOBAL PROPERTY "below ${header}")
        set(${out} "${below}" PARENT_SCOPE)
    endfunction()

    file(STRINGS "${HEADERS}" entries)
    file(STRINGS "${PRECOMPILED}" precompiled)
    foreach(entry IN LISTS entries)
        string(REGEX REPLACE " .*" "" header "${entry}")
        read_includes("${header}")
    endforeach()

    # What each is to begin with, and what it reaches of its room. A header with more above it comes after those.
    set(waiting "")
    foreach(entry IN LISTS entries)
        string(REGEX MATCH "^([^ ]+) (.+)$" entry "${entry}")
        set(header "${CMAKE_MATCH_1}")
        set("file_${header}" "${CMAKE_MATCH_2}")
        set("prefix_${header}" "")
        foreach(pair IN LISTS precompiled)
            string(REGEX MATCH "^([^ ]+) (.+)$" pair "${pair}")
            set(prefix "#include \"${CMAKE_MATCH_2}\"  // ${CMAKE_MATCH_1}\n")
            reaches("${header}" "${CMAKE_MATCH_1}" known)
            if(known)
                set("prefix_${header}" "${prefix}")
                break()
            endif()
        endforeach()
        of_its_room("${header}" below)
        list(LENGTH below count)
        math(EXPR count "10000 + ${count}")
        list(APPEND waiting "${count} ${header}")
        set("below_${header}" "${below}")
    endforeach()
    list(SORT waiting)

    # A header takes the longest chain that ends in one it reaches, so that short ones are left for those that reach little.
    foreach(header IN LISTS waiting)
        string(REGEX REPLACE "^[0-9]+ " "" header "${header}")
        set(above "")
        set(most 0)
        foreach(end IN LISTS "below_${header}")
            get_property(bodies GLOBAL PROPERTY "bodies ${end}")
            if(DEFINED "chain_${end}" AND NOT bodies AND NOT DEFINED "read_in_${end}" AND "${prefix_${end}}" STREQUAL "${prefix_${header}}")
                list(LENGTH "below_${end}" count)
                if(NOT above OR count GREATER most)
                    set(above "${end}")
                    set(most "${count}")
                endif()
            endif()
        endforeach()
        set("chain_${header}" "#include <${header}>\n")
        if(above)
            string(PREPEND "chain_${header}" "${chain_${above}}")
            set("read_in_${above}" "${header}")
        endif()
    endforeach()
    foreach(header IN LISTS waiting)
        string(REGEX REPLACE "^[0-9]+ " "" header "${header}")
        if(DEFINED "read_in_${header}")
            set(text "// Read above ${read_in_${header}}, in its file.\n")
        else()
            get_property(bodies GLOBAL PROPERTY "bodies ${header}")
            set(text "${prefix_${header}}${chain_${header}}${bodies}")
        endif()
        set(file "${file_${header}}")
        set(old "")
        if(EXISTS "${file}")
            file(READ "${file}" old)
        endif()
        if(NOT text STREQUAL old)
            file(WRITE "${file}" "${text}")
        endif()
    endforeach()
    return()
endif()

# ---- the targets ---------------------------------------------------------------------------------------------------

# Called when all rooms are known, after cmake/precompiled.cmake.
function(strata_verify_headers)
    get_property(rooms GLOBAL PROPERTY STRATA_ROOMS)
    set(folder "${PROJECT_BINARY_DIR}/headers")
    set(include "${PROJECT_SOURCE_DIR}/include")
    set(entries "")
    set(headers "")
    set(files "")
    set(parts "")
    foreach(room IN LISTS rooms ITEMS strata)
        get_target_property(of_room strata_${room} HEADER_SET)
        if(NOT of_room)
            continue()
        endif()
        list(APPEND headers ${of_room})
        set(files_of_room "")
        foreach(header IN LISTS of_room)
            cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${include}")
            list(APPEND files_of_room "${folder}/${header}.cpp")
            string(APPEND entries "${header} ${folder}/${header}.cpp\n")
        endforeach()
        list(APPEND files ${files_of_room})

        add_library(strata_${room}_headers OBJECT EXCLUDE_FROM_ALL ${files_of_room})
        target_link_libraries(strata_${room}_headers PRIVATE strata::${room})
        target_compile_definitions(strata_${room}_headers PRIVATE STRATA_COMPILED)
        set_target_properties(strata_${room}_headers PROPERTIES
            CXX_COMPILER_LAUNCHER "sh;${PROJECT_SOURCE_DIR}/cmake/syntax-only.sh;${CMAKE_CXX_COMPILER_LAUNCHER}")
        list(APPEND parts strata_${room}_headers)
    endforeach()

    set(precompiled "")
    set(precompiled_files "")
    set(header_of_torch torch/torch.h)
    set(header_of_tensor ATen/core/Tensor.h)
    foreach(name IN ITEMS torch tensor)  # the one with more in it first
        if(TARGET strata_precompiled_${name})
            get_property(path GLOBAL PROPERTY STRATA_PRECOMPILED_${name})
            string(APPEND precompiled "${header_of_${name}} ${path}\n")
            list(APPEND precompiled_files "${path}.gch")
            foreach(part IN LISTS parts)
                target_compile_options(${part} PRIVATE -Winvalid-pch)
                # As what is precompiled: a room that asks for no OpenMP gets it from libtorch 1.13, and from 2.6 it does not.
                target_link_libraries(${part} PRIVATE OpenMP::OpenMP_CXX)
            endforeach()
        endif()
    endforeach()

    # By file: a dependency on a target lets linking wait for it, and not compiling. Where what is precompiled is not there yet, gcc reads all of it and says
    # nothing.
    set_source_files_properties(${files} PROPERTIES OBJECT_DEPENDS "${precompiled_files}")

    file(CONFIGURE OUTPUT "${folder}/headers.txt" CONTENT "${entries}" @ONLY)
    file(CONFIGURE OUTPUT "${folder}/precompiled.txt" CONTENT "${precompiled}" @ONLY)
    set(script "${PROJECT_SOURCE_DIR}/cmake/headers.cmake")
    add_custom_command(OUTPUT ${files}
        COMMAND "${CMAKE_COMMAND}" "-DINCLUDE=${include}" "-DHEADERS=${folder}/headers.txt" "-DPRECOMPILED=${folder}/precompiled.txt"
            -P "${script}"
        DEPENDS ${headers} "${script}" "${folder}/headers.txt" "${folder}/precompiled.txt"
        COMMENT "Reading what headers include"
        VERBATIM)
    add_custom_target(headers_read DEPENDS ${files})
    add_custom_target(headers_stand_alone)
    foreach(part IN LISTS parts)
        add_dependencies(${part} headers_read)
    endforeach()
    add_dependencies(headers_stand_alone ${parts})
endfunction()
