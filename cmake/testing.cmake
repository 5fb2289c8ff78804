# cmake/testing.cmake - one function a kind of test; tests/CMakeLists.txt is then one line a test.
#
#   strata_unit_test(<room>/<file>)              tests/unit/<room>/<file>_test.cpp, gtest, suite PascalCase(<file>)
#                                                (TORCH: reaches torch/torch.h by what it includes, and so begins with it precompiled)
#   strata_mpi_test(<name> RANKS <n>...)         tests/mpi/<name>_test.cpp, gtest on every rank; several are one ctest entry a world size
#                                                (EXECUTABLE <name> LIBS <target>...: not in the one all others share)
#   strata_mpi_job_test(<name> JOB <program>)    tests/mpi/<name>_test.cpp starts tests/mpi/<program>.cpp under mpirun itself
#   strata_compile_time_test(<room>/<file>)      tests/compile_time/<room>/<file>.cpp, static_asserts: building is passing
#   strata_cuda_compile_test(<name>)             tests/compile_time/cuda/<name>.cpp, as a build with CUDA compiles it
#   strata_clang_test(<file>)                    every header, and the file after them, with clang where there is one
#   strata_benches_compile()                     every bench/*/*.cpp, as far as syntax goes: building is passing
#   strata_compile_fail(<name> EXPECT <STnnnn>)  tests/compile_fail/<name>.cpp, the one sentence a user gets
#   strata_tree_test(<name>)                     tests/<name>/<name>_test.cpp, reads files of the source tree
#   strata_program_test(<name>)                  tests/<name>/<name>_test.cpp, runs the example programs
#   strata_example_test(<name> RANKS <n>... PASS <regex>)  runs examples/<name>, which judges itself
#   strata_tool_test(<name>)                     tests/tools/<name>_test.cpp, runs the command `strata`
#   strata_launch_test(<name>)                   the same for `strata launch`, which takes neither libtorch nor MPI
#
# Starting an executable that links libtorch costs half a second and linking it more, so unit tests share one
# executable a group of rooms, those of rooms without libtorch do not link it, and one executable holds all MPI tests.
# ctest still sees every file of unit tests as a test of its own: it runs the executable with a filter, and a filter that
# finds no test is a failure.
#
# Most files of most executables include torch/torch.h, or at least gtest, so these begin with it precompiled (cmake/precompiled.cmake).

include("${CMAKE_CURRENT_LIST_DIR}/together.cmake")

find_package(GTest REQUIRED)
if(PROJECT_IS_TOP_LEVEL)
    strata_precompile(gtest HEADERS gtest/gtest.h nlohmann/json.hpp LINKS GTest::gtest nlohmann_json::nlohmann_json)
endif()

# Golden values and damaged files that are too big for the repository. Without them the tests that read them skip.
set(reference_dir "${PROJECT_SOURCE_DIR}/../shared")
cmake_path(NORMAL_PATH reference_dir)
if(NOT IS_DIRECTORY "${reference_dir}")
    set(reference_dir "")
endif()
set(STRATA_REFERENCE_DIR "${reference_dir}" CACHE PATH "Reference material for tests (golden/, data/); empty: those tests skip")
if(STRATA_REFERENCE_DIR)
    message(STATUS "STRATA_REFERENCE_DIR: ${STRATA_REFERENCE_DIR}")
else()
    message(STATUS "STRATA_REFERENCE_DIR: none; tests that need reference material will skip")
endif()

set(STRATA_TEST_DEFINES
    STRATA_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    STRATA_REFERENCE_DIR="${STRATA_REFERENCE_DIR}")

# <file_name> -> FileName: the gtest suite a test file must use.
function(strata_pascal_case snake out)
    string(REPLACE "_" ";" words "${snake}")
    set(pascal "")
    foreach(word IN LISTS words)
        string(SUBSTRING "${word}" 0 1 head)
        string(SUBSTRING "${word}" 1 -1 tail)
        string(TOUPPER "${head}" head)
        string(APPEND pascal "${head}${tail}")
    endforeach()
    set(${out} "${pascal}" PARENT_SCOPE)
endfunction()

# Plain, typed and parameterised suites of this name.
function(strata_gtest_filter snake out)
    strata_pascal_case("${snake}" suite)
    set(${out} "--gtest_filter=${suite}.*:${suite}/*:*/${suite}.*:*/${suite}/*" PARENT_SCOPE)
endfunction()

# Whether a file includes <header>.
function(strata_file_includes header file out)
    file(STRINGS "${file}" lines REGEX "^#include <${header}>")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    set(${out} FALSE PARENT_SCOPE)
    if(lines)
        set(${out} TRUE PARENT_SCOPE)
    endif()
endfunction()

# The arguments with which a compiler that is called directly begins with libtorch precompiled: with torch/torch.h if the file includes it, with a
# trainer (below) if it includes that or an engine, else with ATen/core/Tensor.h. A file that undefines something wants its headers read.
# The flags are those that it was precompiled with; warnings are none of what these tests look at.
function(strata_flags_with_torch file out)
    file(STRINGS "${file}" lines REGEX "^#(include|undef) ")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    set(name tensor)
    if(lines MATCHES "<torch/torch.h>")
        set(name torch)
    elseif(lines MATCHES "<strata/(train/trainer|zero/engine).hpp>" AND NOT lines MATCHES "#undef")
        set(name trainer)
    endif()
    set(${out} "" PARENT_SCOPE)
    if(TARGET strata_precompiled_${name})
        get_property(path GLOBAL PROPERTY STRATA_PRECOMPILED_${name})
        string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" of_type)
        separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${${of_type}} ${OpenMP_CXX_FLAGS}")
        list(FILTER flags EXCLUDE REGEX "^-W")
        set(${out} ${flags} "$<TARGET_PROPERTY:torch,INTERFACE_COMPILE_OPTIONS>"
            "$<TARGET_PROPERTY:tomlplusplus::tomlplusplus,INTERFACE_COMPILE_OPTIONS>" -Winvalid-pch -include "${path}" PARENT_SCOPE)
    endif()
endfunction()

# What most files of compile_fail include, each twice, and none for its own sake: the one thing of strata that is precompiled.
if(PROJECT_IS_TOP_LEVEL AND STRATA_WITH_TORCH)
    strata_precompile(trainer HEADERS strata/train/trainer.hpp LINKS strata::compiled)
    if(TARGET strata_precompiled_trainer)
        set_target_properties(strata_precompiled_trainer PROPERTIES EXCLUDE_FROM_ALL OFF)
    endif()
endif()

set(STRATA_NO_TEST_RAN "Running 0 tests from 0 test suites")

# Makes <executable> on first use, which links the libraries in ARGN.
function(strata_test_executable executable)
    if(NOT TARGET ${executable})
        add_executable(${executable})
        target_compile_features(${executable} PRIVATE cxx_std_20)
        target_compile_definitions(${executable} PRIVATE ${STRATA_TEST_DEFINES})
        target_link_libraries(${executable} PRIVATE ${ARGN})
        if(executable MATCHES "^strata_(mpi|model|tensor|own_policy)_tests$")
            strata_begin_with(torch ${executable})
        elseif(executable MATCHES "^strata_(light|data)_tests$")
            strata_begin_with(gtest ${executable})
        endif()
    endif()
endfunction()

# Adds <source> to <executable>, which links the libraries in ARGN.
function(strata_add_to_test_executable executable source)
    strata_test_executable(${executable} ${ARGN})
    target_sources(${executable} PRIVATE "${source}")
endfunction()

# Through strata::compiled, as most programs use strata: header-only is what consume/ tests.
function(strata_unit_test path)
    cmake_path(GET path PARENT_PATH room)
    cmake_path(GET path FILENAME file)
    if(NOT TARGET strata_${room})
        return()
    endif()
    if(room MATCHES "^(core|policy|config|storage|http|s3|health|webhooks|offload|testing)$")
        set(executable strata_light_tests)
        set(libraries strata_compiled_light OpenSSL::SSL)
    elseif(room MATCHES "^(tables|tokenizers|pictures|datasets)$")
        set(executable strata_data_tests)
        set(libraries strata_compiled_light OpenSSL::SSL)
    elseif(room MATCHES "^(comm|optim|zero|checkpoint|weights|diffusion)$")
        set(executable strata_tensor_tests)
        set(libraries strata::compiled)
    elseif(room MATCHES "^(data|models|adapters|families|train)$")
        set(executable strata_model_tests)
        set(libraries strata::compiled OpenSSL::SSL)
    else()
        message(FATAL_ERROR "strata_unit_test(${path}): no group of test executables has the room ${room}")
    endif()
    set(source "${CMAKE_CURRENT_SOURCE_DIR}/unit/${path}_test.cpp")
    set(key ${room})
    if(executable MATCHES "^strata_(model|tensor)_tests$" AND NOT "TORCH" IN_LIST ARGN)  # where many files need no more than a tensor, or none
        strata_file_includes(torch/torch.h "${source}" includes_torch)
        if(NOT includes_torch)
            set(key ${room}_without_libtorch)
            set_source_files_properties("${source}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
        endif()
    endif()
    strata_test_executable(${executable} ${libraries} GTest::gtest_main)
    strata_compile_together(${executable} ${key} "${source}")

    strata_gtest_filter("${file}" filter)
    add_test(NAME unit/${path} COMMAND ${executable} ${filter})
    set_tests_properties(unit/${path} PROPERTIES
        TIMEOUT 120
        LABELS "unit;${room}"
        ENVIRONMENT "OMP_NUM_THREADS=1"
        FAIL_REGULAR_EXPRESSION "${STRATA_NO_TEST_RAN}")
endfunction()

# PROCESSORS keeps `ctest -j` from putting more ranks on the machine than it has cores; mpirun's own time limit
# ends before ctest's, because only mpirun can end all of its ranks. A deadlock is the commonest failure here.
function(strata_mpi_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXECUTABLE" "RANKS;LIBS")
    if(NOT arg_EXECUTABLE)
        set(arg_EXECUTABLE strata_mpi_tests)
        set(arg_LIBS strata::compiled OpenSSL::SSL)
    endif()
    if(NOT TARGET ${arg_EXECUTABLE})
        strata_add_to_test_executable(${arg_EXECUTABLE}
            "${CMAKE_CURRENT_SOURCE_DIR}/mpi/main.cpp" ${arg_LIBS} GTest::gtest)
    endif()
    string(REGEX MATCH "^[a-z0-9]+" key "${name}")
    if(NOT key MATCHES "^(engine|trainer)$")
        set(key others)
    endif()
    strata_compile_together(${arg_EXECUTABLE} ${key} "${CMAKE_CURRENT_SOURCE_DIR}/mpi/${name}_test.cpp")
    strata_gtest_filter("${name}" filter)
    foreach(ranks IN LISTS arg_RANKS)
        set_property(GLOBAL APPEND PROPERTY STRATA_MPI_RUNS "${arg_EXECUTABLE}/${key}/${ranks}")
        set_property(GLOBAL APPEND PROPERTY "STRATA_MPI_RUNS_${arg_EXECUTABLE}/${key}/${ranks}" "${name}")
    endforeach()
endfunction()

# Called when every test is known. Starting ranks that link libtorch costs them half a second to a second of computing each, which is more than
# many suites take: so STRATA_TESTS_TOGETHER of them, of one number of ranks, are one mpirun and one entry with all their names.
function(strata_make_mpi_runs)
    get_property(runs GLOBAL PROPERTY STRATA_MPI_RUNS)
    list(REMOVE_DUPLICATES runs)
    foreach(run IN LISTS runs)
        string(REGEX MATCH "^([^/]+)/[^/]+/([0-9]+)$" run "${run}")
        set(executable "${CMAKE_MATCH_1}")
        set(ranks "${CMAKE_MATCH_2}")
        get_property(names GLOBAL PROPERTY "STRATA_MPI_RUNS_${run}")
        list(LENGTH names all)
        math(EXPR batches "(${all} + ${STRATA_TESTS_TOGETHER} - 1) / ${STRATA_TESTS_TOGETHER}")
        foreach(batch RANGE 1 ${batches})  # all of about one size
            math(EXPR first "(${batch} - 1) * ${all} / ${batches}")
            math(EXPR count "${batch} * ${all} / ${batches} - ${first}")
            list(SUBLIST names ${first} ${count} of_run)
            set(suites "")
            foreach(name IN LISTS of_run)
                strata_pascal_case("${name}" suite)
                list(APPEND suites "${suite}")
            endforeach()
            math(EXPR timeout "60 + 30 * ${count}")
            math(EXPR ctest_timeout "${timeout} + 10")
            list(JOIN of_run "+" title)
            list(JOIN suites "," suites)
            add_test(NAME mpi/${title}.np${ranks}
                COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} --oversubscribe --bind-to none
                    --timeout ${timeout} --mca mpi_yield_when_idle 1 $<TARGET_FILE:${executable}>
                    --gtest_color=no --suites=${suites})
            set_tests_properties(mpi/${title}.np${ranks} PROPERTIES
                PROCESSORS ${ranks}
                TIMEOUT ${ctest_timeout}
                LABELS "mpi;np${ranks}"
                ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMP_NUM_THREADS=1")
        endforeach()
    endforeach()
endfunction()
cmake_language(DEFER DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" CALL strata_make_mpi_runs)

# tests/mpi/<name>_test.cpp, gtest in one process, which starts mpirun with the program tests/mpi/<job>.cpp and judges how
# it ends: for jobs that must not end well, and for what a job prints. These start one small job after the other and mostly wait for its end
# (1 s of 19 s of mpi_watchdog is computing), which leaves a core to another test.
#
#   LIBS <target>...  what the job links; strata::comm if there are none
function(strata_mpi_job_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "JOB" "LIBS")
    if(NOT arg_LIBS)
        set(arg_LIBS strata::comm)
    endif()
    add_executable(strata_${arg_JOB} "${CMAKE_CURRENT_SOURCE_DIR}/mpi/${arg_JOB}.cpp")
    target_link_libraries(strata_${arg_JOB} PRIVATE ${arg_LIBS})
    strata_file_includes(torch/torch.h "${CMAKE_CURRENT_SOURCE_DIR}/mpi/${arg_JOB}.cpp" includes_torch)
    if(includes_torch)
        strata_begin_with(torch strata_${arg_JOB})
    endif()
    strata_add_to_test_executable(strata_${name}_tests "${CMAKE_CURRENT_SOURCE_DIR}/mpi/${name}_test.cpp"
        strata::core GTest::gtest_main)
    string(TOUPPER "${arg_JOB}" job)
    target_compile_definitions(strata_${name}_tests PRIVATE
        STRATA_MPIEXEC="${MPIEXEC_EXECUTABLE}" STRATA_${job}="$<TARGET_FILE:strata_${arg_JOB}>")
    add_dependencies(strata_${name}_tests strata_${arg_JOB})
    add_test(NAME mpi/${name} COMMAND strata_${name}_tests)
    set_tests_properties(mpi/${name} PROPERTIES
        TIMEOUT 300
        LABELS "mpi"
        ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMP_NUM_THREADS=1"
        FAIL_REGULAR_EXPRESSION "${STRATA_NO_TEST_RAN}")
endfunction()

# One ctest entry a test: which rule is broken should be seen in ctest's closing lines.
function(strata_tree_test name)
    set(source "${CMAKE_CURRENT_SOURCE_DIR}/${name}/${name}_test.cpp")
    strata_add_to_test_executable(strata_tree_tests "${source}" GTest::gtest_main)
    target_compile_definitions(strata_tree_tests PRIVATE STRATA_PROGRAMS="${PROJECT_BINARY_DIR}/programs.txt")
    file(STRINGS "${source}" tests REGEX "^TEST\\(")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    foreach(test IN LISTS tests)
        string(REGEX REPLACE "^TEST\\(([A-Za-z0-9]+), ([A-Za-z0-9]+)\\).*" "\\1.\\2" test "${test}")
        add_test(NAME ${name}/${test} COMMAND strata_tree_tests --gtest_filter=${test})
        set_tests_properties(${name}/${test} PROPERTIES
            TIMEOUT 120 LABELS "tree" FAIL_REGULAR_EXPRESSION "${STRATA_NO_TEST_RAN}")
    endforeach()
endfunction()

# examples/<name>.cpp as it is, on so many ranks: it has judged itself when it prints what matches PASS.
function(strata_example_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "PASS" "RANKS")
    foreach(ranks IN LISTS arg_RANKS)
        add_test(NAME example/${name}.np${ranks}
            COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} --oversubscribe --bind-to none --timeout 110
                --mca mpi_yield_when_idle 1 $<TARGET_FILE:${name}> --fresh --output "${CMAKE_CURRENT_BINARY_DIR}/example_${name}_${ranks}")
        set_tests_properties(example/${name}.np${ranks} PROPERTIES
            PROCESSORS ${ranks} TIMEOUT 120 LABELS "program" PASS_REGULAR_EXPRESSION "${arg_PASS}"
            ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMP_NUM_THREADS=1")
    endforeach()
endfunction()

# tests/<name>/<name>_test.cpp, which starts the example programs; one ctest entry a test, because one takes seconds.
function(strata_program_test name)
    set(source "${CMAKE_CURRENT_SOURCE_DIR}/${name}/${name}_test.cpp")
    add_executable(strata_program_tests "${source}")
    target_compile_features(strata_program_tests PRIVATE cxx_std_20)
    target_compile_definitions(strata_program_tests PRIVATE ${STRATA_TEST_DEFINES}
        STRATA_TRAIN_YOUR_MODEL="$<TARGET_FILE:01_train_your_model>"
        STRATA_TRAIN_PICTURES="$<TARGET_FILE:02_train_pictures>"
        STRATA_SHARD_EVERYTHING="$<TARGET_FILE:03_shard_everything>"
        STRATA_TOOL="$<TARGET_FILE:strata_tool>" STRATA_MPIEXEC="${MPIEXEC_EXECUTABLE}")
    add_dependencies(strata_program_tests strata_tool)
    target_link_libraries(strata_program_tests PRIVATE ZLIB::ZLIB GTest::gtest_main)
    file(STRINGS "${source}" tests REGEX "^TEST_F\\(")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    foreach(test IN LISTS tests)
        string(REGEX REPLACE "^TEST_F\\(([A-Za-z0-9]+), ([A-Za-z0-9]+)\\).*" "\\1.\\2" test "${test}")
        add_test(NAME ${name}/${test} COMMAND strata_program_tests --gtest_filter=${test})
        set_tests_properties(${name}/${test} PROPERTIES
            TIMEOUT 180 LABELS "program" PROCESSORS 2 FAIL_REGULAR_EXPRESSION "${STRATA_NO_TEST_RAN}")
    endforeach()
endfunction()

# tests/tools/<name>_test.cpp, which starts the command `strata`; one ctest entry a test.
function(strata_tool_test name)
    set(source "${CMAKE_CURRENT_SOURCE_DIR}/tools/${name}_test.cpp")
    strata_add_to_test_executable(strata_tool_tests "${source}" strata::compiled OpenSSL::SSL GTest::gtest_main)
    target_compile_definitions(strata_tool_tests PRIVATE STRATA_TOOL="$<TARGET_FILE:strata_tool>")
    add_dependencies(strata_tool_tests strata_tool)
    if(TARGET 02_train_pictures AND STRATA_WITH_MPI)
        target_compile_definitions(strata_tool_tests PRIVATE STRATA_TRAIN_PICTURES="$<TARGET_FILE:02_train_pictures>")
        add_dependencies(strata_tool_tests 02_train_pictures)
    endif()
    file(STRINGS "${source}" tests REGEX "^TEST_F\\(")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    foreach(test IN LISTS tests)
        string(REGEX REPLACE "^TEST_F\\(([A-Za-z0-9]+), ([A-Za-z0-9]+)\\).*" "\\1.\\2" test "${test}")
        add_test(NAME tools/${test} COMMAND strata_tool_tests --gtest_filter=${test})
        set_tests_properties(tools/${test} PROPERTIES
            TIMEOUT 120 LABELS "tools" FAIL_REGULAR_EXPRESSION "${STRATA_NO_TEST_RAN}")
    endforeach()
endfunction()

# tests/tools/<name>_test.cpp, which starts `strata launch` with tests/tools/launched_program.cpp, or tests a part of it; one ctest
# entry a test. Their ranks sleep: 5 s of 27 s are computing.
function(strata_launch_test name)
    if(NOT TARGET strata_launched_program)
        add_executable(strata_launched_program "${CMAKE_CURRENT_SOURCE_DIR}/tools/launched_program.cpp")
        target_link_libraries(strata_launched_program PRIVATE strata::core)
    endif()
    set(source "${CMAKE_CURRENT_SOURCE_DIR}/tools/${name}_test.cpp")
    strata_add_to_test_executable(strata_launch_tests "${source}" strata_compiled_light GTest::gtest_main)
    target_compile_definitions(strata_launch_tests PRIVATE
        STRATA_TOOL="$<TARGET_FILE:strata_tool>" STRATA_LAUNCHED_PROGRAM="$<TARGET_FILE:strata_launched_program>")
    add_dependencies(strata_launch_tests strata_tool strata_launched_program)
    file(STRINGS "${source}" tests REGEX "^TEST_F\\(")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    foreach(test IN LISTS tests)
        string(REGEX REPLACE "^TEST_F\\(([A-Za-z0-9]+), ([A-Za-z0-9]+)\\).*" "\\1.\\2" test "${test}")
        add_test(NAME tools/${test} COMMAND strata_launch_tests --gtest_filter=${test})
        set_tests_properties(tools/${test} PROPERTIES
            TIMEOUT 170 LABELS "tools" FAIL_REGULAR_EXPRESSION "${STRATA_NO_TEST_RAN}")
    endforeach()
endfunction()

# Every executable that a build makes, for the test of what pages tell a reader to run: "target path" a line. Called when all are known.
function(strata_list_programs)
    set(text "")
    set(folders "${PROJECT_SOURCE_DIR}")
    while(folders)
        list(POP_FRONT folders folder)
        get_property(inner DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
        get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
        list(APPEND folders ${inner})
        foreach(target IN LISTS targets)
            get_target_property(type ${target} TYPE)
            if(type STREQUAL EXECUTABLE)
                string(APPEND text "${target} $<PATH:RELATIVE_PATH,$<TARGET_FILE:${target}>,${PROJECT_BINARY_DIR}>\n")
            endif()
        endforeach()
    endwhile()
    file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/programs.txt" CONTENT "${text}")
endfunction()
cmake_language(DEFER DIRECTORY "${PROJECT_SOURCE_DIR}" CALL strata_list_programs)

# A compiler other than that of the build, for what two should agree on: clang++, or nothing.
find_program(STRATA_CLANG clang++)
mark_as_advanced(STRATA_CLANG)
if(NOT STRATA_CLANG OR STRATA_WITH_CUDA OR CMAKE_CXX_COMPILER_ID MATCHES Clang)
    set(STRATA_CLANG "")
endif()

function(strata_compile_time_test path)
    if(NOT TARGET strata_compile_time)
        add_library(strata_compile_time OBJECT)
        target_link_libraries(strata_compile_time PRIVATE strata::core strata::policy strata::config strata::storage)
    endif()
    target_sources(strata_compile_time PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/compile_time/${path}.cpp")
    if(STRATA_CLANG)
        add_test(NAME compile_time/${path}.clang COMMAND ${STRATA_CLANG} -std=c++20 -fsyntax-only "-I${PROJECT_SOURCE_DIR}/include"
            "${CMAKE_CURRENT_SOURCE_DIR}/compile_time/${path}.cpp")
        set_tests_properties(compile_time/${path}.clang PROPERTIES TIMEOUT 60 LABELS compile_time)
    endif()
endfunction()

# With clang, where there is one, as far as syntax goes: every header, and the trainers of a user's file that sees all bodies, with every
# warning as an error. Headers of libtorch are -isystem.
function(strata_clang_test file)
    if(NOT STRATA_CLANG)
        return()
    endif()
    get_property(rooms GLOBAL PROPERTY STRATA_ROOMS)
    set(text "")
    foreach(room IN LISTS rooms)
        get_target_property(headers strata_${room} HEADER_SET)
        list(TRANSFORM headers PREPEND "#include <")
        list(TRANSFORM headers APPEND ">\n")
        list(APPEND text ${headers})
    endforeach()
    list(JOIN text "" text)
    string(REPLACE "${PROJECT_SOURCE_DIR}/include/" "" text "${text}")
    file(CONFIGURE OUTPUT with_clang.cpp CONTENT "${text}#include \"${CMAKE_CURRENT_SOURCE_DIR}/${file}\"\n" @ONLY)

    # libtorch 1.13 calls members of std::vector<IValue> where IValue is declared only. In C++20 these are constexpr, and clang makes them
    # when it meets the call, not at the end of the file. So clang gets that header with the two bodies left out; later ones need nothing.
    find_file(list_header ATen/core/List.h NO_CACHE)
    if(list_header)
        file(READ "${list_header}" list)
        string(REGEX REPLACE "(explicit ListImpl\\(list_type list_, TypePtr elementType_\\))[^{;]*{}" "\\1;" list "${list}")
        string(REPLACE "return &list.impl_->list[0];" "return list.impl_->list.data();" list "${list}")
        file(CONFIGURE OUTPUT headers_for_clang/ATen/core/List.h CONTENT "${list}" @ONLY)
    endif()

    set(directories "$<TARGET_PROPERTY:strata_strata,INTERFACE_INCLUDE_DIRECTORIES>")
    set(directories "$<FILTER:${directories},EXCLUDE,^(${PROJECT_SOURCE_DIR}/include|/usr/include|/usr/lib/[.][.]/include)$>")
    set(defines "$<TARGET_PROPERTY:strata_strata,INTERFACE_COMPILE_DEFINITIONS>")
    add_test(NAME compile_time/clang
        COMMAND ${STRATA_CLANG} -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
            "-I${PROJECT_SOURCE_DIR}/include" -isystem "${CMAKE_CURRENT_BINARY_DIR}/headers_for_clang"
            "$<$<BOOL:${directories}>:-isystem$<JOIN:${directories},$<SEMICOLON>-isystem>>" "-D$<JOIN:${defines},$<SEMICOLON>-D>"
            "${CMAKE_CURRENT_BINARY_DIR}/with_clang.cpp"
        COMMAND_EXPAND_LISTS)
    set_tests_properties(compile_time/clang PROPERTIES TIMEOUT 300 LABELS compile_time)
endfunction()

# Benches are built by those who ask a question, so a change of a header could leave them behind: here they are compiled with every build of
# the tests, as far as syntax goes, with bodies left out, and libtorch precompiled where a file or what it includes of the models begins with it.
function(strata_benches_compile)
    file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*/*.cpp")
    add_library(strata_benches_compile OBJECT ${files})
    target_link_libraries(strata_benches_compile PRIVATE strata::compiled)
    strata_begin_with(torch strata_benches_compile)
    foreach(file IN LISTS files)
        strata_file_includes("(torch/torch.h|strata/models/[a-z0-9_]+.hpp)" "${file}" includes_torch)
        if(NOT includes_torch)
            set_source_files_properties("${file}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
        endif()
    endforeach()
    set_target_properties(strata_benches_compile PROPERTIES
        CXX_COMPILER_LAUNCHER "sh;${PROJECT_SOURCE_DIR}/cmake/syntax-only.sh;${CMAKE_CXX_COMPILER_LAUNCHER}")
endfunction()

# tests/compile_time/cuda/<name>.cpp, compiled as in a build with STRATA_WITH_CUDA as far as a compiler goes: headers of CUDA and
# NCCL, and those of libtorch for CUDA, which a libtorch for the CPU has but for one.
function(strata_cuda_compile_test name)
    set(directories "$<TARGET_PROPERTY:strata::compiled,INTERFACE_INCLUDE_DIRECTORIES>")
    set(defines "$<TARGET_PROPERTY:strata::compiled,INTERFACE_COMPILE_DEFINITIONS>")
    set(file "${CMAKE_CURRENT_SOURCE_DIR}/compile_time/cuda/${name}.cpp")
    strata_flags_with_torch("${file}" with_torch)
    add_test(NAME compile_time/cuda/${name}
        COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -fdiagnostics-color=never -DSTRATA_WITH_CUDA=1 ${with_torch}
            "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/tests/support/cuda_headers"
            "$<$<BOOL:${directories}>:-I$<JOIN:${directories},$<SEMICOLON>-I>>"
            "$<$<BOOL:${defines}>:-D$<JOIN:${defines},$<SEMICOLON>-D>>"
            "-I$<JOIN:${STRATA_CUDA_HEADERS},$<SEMICOLON>-I>"
            "${file}"
        COMMAND_EXPAND_LISTS)
    set_tests_properties(compile_time/cuda/${name} PROPERTIES TIMEOUT 300 LABELS "compile_time" ENVIRONMENT "LC_ALL=C")
endfunction()

# The file is compiled twice: as it is it must compile; with STRATA_BAD it must print an error with the number
# and no second error, where it needs no libtorch with clang too. The compiler is called directly, so that these tests run side by side.
#
#   LIBS <target>...       whose include directories and definitions the file needs, when include/ is not enough
#   COMPILER_SAYS <regex>  in place of EXPECT: a mistake that the language lets no library put a sentence to
function(strata_compile_fail name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXPECT;COMPILER_SAYS" "LIBS")
    if(arg_LIBS AND NOT STRATA_WITH_TORCH)
        return()
    endif()
    set(sentence "\\[${arg_EXPECT}\\]")
    if(DEFINED arg_COMPILER_SAYS)
        set(sentence "(${arg_COMPILER_SAYS})")
    endif()
    set(needs "")
    foreach(library IN LISTS arg_LIBS)
        set(directories "$<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>")
        set(defines "$<TARGET_PROPERTY:${library},INTERFACE_COMPILE_DEFINITIONS>")
        # -I and not -isystem: moving /usr/include forward would break <cstdlib>.
        list(APPEND needs
            "$<$<BOOL:${directories}>:-I$<JOIN:${directories},$<SEMICOLON>-I>>"
            "$<$<BOOL:${defines}>:-D$<JOIN:${defines},$<SEMICOLON>-D>>")
    endforeach()
    set(file "${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/${name}.cpp")
    if(arg_LIBS)
        strata_flags_with_torch("${file}" with_torch)
        list(APPEND needs ${with_torch})
    endif()
    set(compile ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -fdiagnostics-color=never "-I${PROJECT_SOURCE_DIR}/include" ${needs} "${file}")
    add_test(NAME compile_fail/${name}.good COMMAND ${compile} COMMAND_EXPAND_LISTS)
    add_test(NAME compile_fail/${name}.bad COMMAND ${compile} -DSTRATA_BAD COMMAND_EXPAND_LISTS)
    set_tests_properties(compile_fail/${name}.good compile_fail/${name}.bad PROPERTIES
        TIMEOUT 180 LABELS "compile_fail" ENVIRONMENT "LC_ALL=C")
    set(bad compile_fail/${name}.bad)
    if(STRATA_CLANG AND NOT arg_LIBS)
        list(POP_FRONT compile)
        add_test(NAME compile_fail/${name}.bad.clang COMMAND ${STRATA_CLANG} ${compile} -DSTRATA_BAD COMMAND_EXPAND_LISTS)
        set_tests_properties(compile_fail/${name}.bad.clang PROPERTIES TIMEOUT 60 LABELS "compile_fail" ENVIRONMENT "LC_ALL=C")
        list(APPEND bad compile_fail/${name}.bad.clang)
    endif()
    set_tests_properties(${bad} PROPERTIES
        PASS_REGULAR_EXPRESSION "error: [^\n]*${sentence}"
        FAIL_REGULAR_EXPRESSION "error: .*error: ")
endfunction()
