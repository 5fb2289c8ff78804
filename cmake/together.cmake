# cmake/together.cmake - several test files in one compilation, without a name of one meeting a name of another.
#
#   strata_compile_together(<executable> <key> <file>)   <file> is compiled into <executable> with others of the same key
#
# Half of what a test file costs is the same for every file: 5 s for templates that libtorch's own functions use, which gcc makes at the end of
# every file and not where libtorch is precompiled; then gtest's and the library's. So STRATA_TESTS_TOGETHER files are compiled at a time; who
# works on one test may set it to 1, and each is a compilation of its own.
#
# The text that is compiled is written when the target is built (cmake -P on this file): each file as it is, under `#line`, so that messages
# name it; what it keeps to itself, its `namespace {`, stands in a namespace with its name, so that two files may both have an `options()` or a
# `using namespace`. What a file forgets to include, another above it may have brought: a build with STRATA_TESTS_TOGETHER=1 says so. And of two
# functions of one name the compiler may find the library's by its arguments, where another file has included that: the test's wants another name.

if(CMAKE_SCRIPT_MODE_FILE)  # OUT, the file to write; FILES, what it is made of
    cmake_minimum_required(VERSION 3.25...3.31)
    set(text "")
    foreach(file IN LISTS FILES)
        file(READ "${file}" body)
        cmake_path(GET file PARENT_PATH folder)
        cmake_path(GET file STEM LAST_ONLY name)
        string(PREPEND body "\n")
        string(FIND "${body}" "\nnamespace {\n" opens)
        string(FIND "${body}" "\n}  // namespace\n" closes REVERSE)
        if(opens EQUAL -1 OR closes LESS opens)
            message(FATAL_ERROR "${file}: a test stands between a line `namespace {` and a line `}  // namespace`")
        endif()
        string(REPLACE "\nnamespace {\n" "\nnamespace of_${name} { namespace {\n" body "${body}")
        string(REPLACE "\n}  // namespace\n" "\n}}  // namespace\n" body "${body}")
        string(REPLACE "\n#include \"" "\n#include \"${folder}/" body "${body}")
        string(APPEND text "#line 1 \"${file}\"${body}")
    endforeach()
    file(WRITE "${OUT}" "${text}")
    return()
endif()

set(STRATA_TESTS_TOGETHER 6 CACHE STRING "Test files that are compiled at a time; 1: each by itself, for who works on one")

function(strata_compile_together executable key file)
    if(STRATA_TESTS_TOGETHER LESS 2)
        target_sources(${executable} PRIVATE "${file}")
        return()
    endif()
    set_property(GLOBAL APPEND PROPERTY STRATA_TOGETHER "${executable}/${key}")
    set_property(GLOBAL APPEND PROPERTY "STRATA_TOGETHER_${executable}/${key}" "${file}")
endfunction()

# Called when every test is known. A batch is of the size that leaves all of a key's batches alike.
function(strata_make_batches)
    get_property(keys GLOBAL PROPERTY STRATA_TOGETHER)
    list(REMOVE_DUPLICATES keys)
    foreach(key IN LISTS keys)
        cmake_path(GET key PARENT_PATH executable)
        get_property(files GLOBAL PROPERTY "STRATA_TOGETHER_${key}")
        list(LENGTH files count)
        math(EXPR batches "(${count} + ${STRATA_TESTS_TOGETHER} - 1) / ${STRATA_TESTS_TOGETHER}")
        foreach(batch RANGE 1 ${batches})
            math(EXPR first "(${batch} - 1) * ${count} / ${batches}")
            math(EXPR size "${batch} * ${count} / ${batches} - ${first}")
            list(SUBLIST files ${first} ${size} of_batch)
            if(size EQUAL 1)
                target_sources(${executable} PRIVATE ${of_batch})
                continue()
            endif()
            set(out "${CMAKE_CURRENT_BINARY_DIR}/together/${key}_${batch}.cpp")
            add_custom_command(OUTPUT "${out}"
                COMMAND "${CMAKE_COMMAND}" "-DOUT=${out}" "-DFILES=${of_batch}" -P "${PROJECT_SOURCE_DIR}/cmake/together.cmake"
                DEPENDS ${of_batch} "${PROJECT_SOURCE_DIR}/cmake/together.cmake"
                COMMENT "Writing together/${key}_${batch}.cpp"
                VERBATIM)
            target_sources(${executable} PRIVATE "${out}")
            if(key MATCHES "_without_libtorch$")
                set_source_files_properties("${out}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
            endif()
        endforeach()
    endforeach()
endfunction()
cmake_language(DEFER DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" CALL strata_make_batches)
