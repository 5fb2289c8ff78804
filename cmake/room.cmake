# cmake/room.cmake - strata_room(): one folder under include/strata/ becomes one INTERFACE target.
#
#   strata_room(<room>
#       NEEDS <room>...          rooms on lower floors whose headers this one includes
#       PACKAGES <package>...    what find_package() must find before LINKS make sense
#       LINKS <target>...        third-party targets
#       DEFINES <definition>...  compile definitions of everything that uses the room
#       APART <file>...          bodies that strata::compiled has in an object of their own, and no other body includes: a program that asks for none of them
#                                needs nothing that they do
#       HEADERS <file>...)       its public headers, relative to include/strata/<room>/, one a line
#
# With STRATA_WITH_TORCH=OFF a room with the package Torch is left out, but for what is APART, and so must be what needs it.
#
# The list of headers is the public API: it is what is installed and what `headers_stand_alone` (cmake/headers.cmake)
# compiles one by one. Bodies in <room>/impl/*.ipp are found by themselves; they are installed, and compiled after the
# header that includes them. A body whose header exists but is not listed stays out.
# <room>/impl/*.inc is text that is included more than once: installed, and nothing else. <room>/impl/*.cpp is compiled into
# strata::compiled. <room>/impl/*.cu and *.cuh are compiled by cmake/cuda.cmake and installed in a build with STRATA_WITH_CUDA.
#
# Left behind for install.cmake and the compiled library: the global properties STRATA_ROOMS,
# STRATA_<room>_NEEDS, STRATA_<room>_PACKAGES, STRATA_<room>_BODIES, STRATA_<room>_SOURCES.

# Targets found here must be visible to a project that adds this one as a subdirectory.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)

function(strata_room room)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "NEEDS;PACKAGES;LINKS;DEFINES;APART;HEADERS")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "strata_room(${room}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT STRATA_WITH_TORCH AND "Torch" IN_LIST arg_PACKAGES)
        # What is apart needs no libtorch, and the command `strata` takes it.
        list(TRANSFORM arg_APART PREPEND "${PROJECT_SOURCE_DIR}/include/strata/${room}/impl/")
        set_property(GLOBAL PROPERTY STRATA_${room}_apart_BODIES "${arg_APART}")
        set_property(GLOBAL APPEND PROPERTY STRATA_ROOMS_LEFT_OUT ${room})
        return()
    endif()
    set(include "${PROJECT_SOURCE_DIR}/include")
    set(folder "${include}/strata/${room}")

    get_property(found GLOBAL PROPERTY STRATA_PACKAGES)
    foreach(package IN LISTS arg_PACKAGES)
        if(NOT package IN_LIST found)
            find_package(${package} REQUIRED)
            set_property(GLOBAL APPEND PROPERTY STRATA_PACKAGES ${package})
        endif()
    endforeach()

    set(headers ${arg_HEADERS})
    list(TRANSFORM headers PREPEND "${folder}/")

    file(GLOB bodies CONFIGURE_DEPENDS "${folder}/impl/*.ipp")
    foreach(body IN LISTS bodies)
        cmake_path(GET body STEM stem)
        foreach(header IN ITEMS ${stem}.hpp detail/${stem}.hpp)
            if(EXISTS "${folder}/${header}" AND NOT header IN_LIST arg_HEADERS)
                list(REMOVE_ITEM bodies "${body}")
            endif()
        endforeach()
    endforeach()

    file(GLOB sources CONFIGURE_DEPENDS "${folder}/impl/*.cpp")
    file(GLOB fragments CONFIGURE_DEPENDS "${folder}/impl/*.inc")
    if(STRATA_WITH_CUDA)
        file(GLOB kernels CONFIGURE_DEPENDS "${folder}/impl/*.cu" "${folder}/impl/*.cuh")
        list(APPEND fragments ${kernels})
    endif()

    add_library(strata_${room} INTERFACE)
    add_library(strata::${room} ALIAS strata_${room})
    target_compile_features(strata_${room} INTERFACE cxx_std_20)
    target_compile_definitions(strata_${room} INTERFACE ${arg_DEFINES})
    list(TRANSFORM arg_NEEDS PREPEND "strata::" OUTPUT_VARIABLE lower_rooms)
    target_link_libraries(strata_${room} INTERFACE ${lower_rooms} ${arg_LINKS})
    target_sources(strata_${room}
        INTERFACE FILE_SET HEADERS BASE_DIRS "${include}" FILES ${headers}
        INTERFACE FILE_SET bodies TYPE HEADERS BASE_DIRS "${include}" FILES ${bodies} ${fragments})
    set_target_properties(strata_${room} PROPERTIES EXPORT_NAME ${room})

    set_property(GLOBAL APPEND PROPERTY STRATA_ROOMS ${room})
    set_property(GLOBAL PROPERTY STRATA_${room}_NEEDS "${arg_NEEDS}")
    set_property(GLOBAL PROPERTY STRATA_${room}_PACKAGES "${arg_PACKAGES}")
    set(apart ${arg_APART})
    list(TRANSFORM apart PREPEND "${folder}/impl/")
    foreach(body IN LISTS apart)
        if(body IN_LIST bodies)
            list(REMOVE_ITEM bodies "${body}")
            set_property(GLOBAL APPEND PROPERTY STRATA_${room}_apart_BODIES "${body}")
        endif()
    endforeach()
    set_property(GLOBAL PROPERTY STRATA_${room}_BODIES "${bodies}")
    set_property(GLOBAL PROPERTY STRATA_${room}_SOURCES "${sources}")
endfunction()

# strata::strata, every room at once, and strata::compiled, the same with the bodies compiled once: one
# generated translation unit a room, or two, so that a room without libtorch compiles in a fraction of a second.
function(strata_whole_house)
    get_property(rooms GLOBAL PROPERTY STRATA_ROOMS)
    list(TRANSFORM rooms PREPEND "strata::" OUTPUT_VARIABLE room_targets)
    set(include "${PROJECT_SOURCE_DIR}/include")

    add_library(strata_strata INTERFACE)
    add_library(strata::strata ALIAS strata_strata)
    target_link_libraries(strata_strata INTERFACE ${room_targets})
    target_sources(strata_strata
        INTERFACE FILE_SET HEADERS BASE_DIRS "${include}" FILES ${ARGN})
    set_target_properties(strata_strata PROPERTIES EXPORT_NAME strata)

    set(sources "")
    get_property(left_out GLOBAL PROPERTY STRATA_ROOMS_LEFT_OUT)
    foreach(room IN LISTS rooms left_out)
        get_property(of_room GLOBAL PROPERTY STRATA_${room}_SOURCES)
        list(APPEND sources ${of_room})
        foreach(part IN ITEMS ${room} ${room}_apart)
            get_property(bodies GLOBAL PROPERTY STRATA_${part}_BODIES)
            if(bodies)
                set(text "")
                foreach(body IN LISTS bodies)
                    cmake_path(RELATIVE_PATH body BASE_DIRECTORY "${include}")
                    string(APPEND text "#include <${body}>\n")
                endforeach()
                set(source "${PROJECT_BINARY_DIR}/compiled/${part}.cpp")
                file(CONFIGURE OUTPUT "${source}" CONTENT "${text}" @ONLY)
                list(APPEND sources "${source}")
            endif()
        endforeach()
    endforeach()
    add_library(strata_compiled STATIC ${sources})
    add_library(strata::compiled ALIAS strata_compiled)
    target_compile_definitions(strata_compiled PUBLIC STRATA_COMPILED)
    target_link_libraries(strata_compiled PUBLIC strata::strata)
    set_target_properties(strata_compiled PROPERTIES
        EXPORT_NAME compiled
        OUTPUT_NAME strata
        POSITION_INDEPENDENT_CODE ON)

    # The same for a program of this tree that needs no libtorch, and no MPI: of an archive the linker takes what is asked for. Compiling
    # the bodies of `config` in every file that reads one takes 20 s a file.
    set(light core policy options config storage http tables tokenizers pictures offload s3 datasets health webhooks)
    list(TRANSFORM light PREPEND "strata::")
    add_library(strata_compiled_light INTERFACE)
    target_compile_definitions(strata_compiled_light INTERFACE STRATA_COMPILED)
    target_link_libraries(strata_compiled_light INTERFACE "$<TARGET_FILE:strata_compiled>" ${light})
    add_dependencies(strata_compiled_light strata_compiled)
endfunction()
