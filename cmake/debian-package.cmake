# cmake/debian-package.cmake - run by cpack over the files that will be in the .deb: what Debian wants beside them, and the dependencies.
#
# package.cmake names it, and gives it what begins with CPACK_STRATA_. A variable CPACK_DEBIAN_... that it sets is one of the package.

if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
set(root "${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
set(doc "${root}/usr/share/doc/strata")

# ---- all of it was built -----------------------------------------------------------------------------------------
file(GLOB library "${root}/usr/lib/libstrata.a" "${root}/usr/lib/*/libstrata.a")
foreach(target IN ITEMS strata_compiled strata_tool strata_trainer strata_memory strata_doctor)
    set(file_of_strata_compiled "${library}")
    set(file_of_strata_tool "${root}/usr/bin/strata")
    set(file_of_strata_trainer "${root}/usr/bin/strata-train")
    set(file_of_strata_memory "${root}/usr/bin/strata-memory")
    set(file_of_strata_doctor "${root}/usr/bin/strata-doctor")
    if(NOT EXISTS "${file_of_${target}}")
        message(FATAL_ERROR "strata: the package would lack what the target ${target} makes, which was not built. "
            "Fix: cmake --build ${CPACK_STRATA_BUILD_DIR} --target strata_compiled strata_tool strata_trainer strata_memory strata_doctor, and run cpack again.")
    endif()
endforeach()

function(run_or_fail out)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE complaint OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(status)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "strata: the package was not made: '${command}' ended with ${status}: ${complaint}")
    endif()
    set(${out} "${said}" PARENT_SCOPE)
endfunction()

run_or_fail(ignored strip --strip-debug --enable-deterministic-archives "${library}")

# ---- who answers for it ------------------------------------------------------------------------------------------
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${CPACK_STRATA_MAINTAINER}")
if(NOT CPACK_DEBIAN_PACKAGE_MAINTAINER AND DEFINED ENV{DEBEMAIL})
    set(CPACK_DEBIAN_PACKAGE_MAINTAINER "$ENV{DEBEMAIL}")
    if(NOT CPACK_DEBIAN_PACKAGE_MAINTAINER MATCHES "<")
        set(name "$ENV{DEBFULLNAME}")
        if(name STREQUAL "")
            set(name "Unknown builder")
        endif()
        set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${name} <${CPACK_DEBIAN_PACKAGE_MAINTAINER}>")
    endif()
endif()
if(NOT CPACK_DEBIAN_PACKAGE_MAINTAINER)
    set(CPACK_DEBIAN_PACKAGE_MAINTAINER "Unknown builder <root@localhost>")
endif()

# ---- what it depends on ------------------------------------------------------------------------------------------
# The library was compiled against one libtorch, whose C++ ABI changes with its middle number.
set(depends "")
foreach(package IN LISTS CPACK_STRATA_DEPENDS)
    if(NOT package STREQUAL "libtorch-dev")
        list(APPEND depends "${package}")
    elseif(CPACK_STRATA_WITH_CUDA)
        message(WARNING "strata: this build has a libtorch with CUDA, which no package of Debian is: the .deb does not depend on it")
    else()
        run_or_fail(version dpkg-query -W -f "\${Version}" libtorch-dev)
        if(NOT version MATCHES "^([0-9]+)\\.([0-9]+)\\.")
            message(FATAL_ERROR "strata: libtorch-dev has version '${version}', of which the package cannot be made to depend")
        endif()
        math(EXPR next "${CMAKE_MATCH_2} + 1")
        list(APPEND depends "libtorch-dev (>= ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})" "libtorch-dev (<< ${CMAKE_MATCH_1}.${next}~)")
    endif()
endforeach()
list(SORT depends)

# Of programs, the shared libraries and the versions of them that they were linked with.
find_program(STRATA_SHLIBDEPS dpkg-shlibdeps)
if(NOT STRATA_SHLIBDEPS)
    message(FATAL_ERROR "strata: there is no dpkg-shlibdeps to say what programs depend on. Fix: apt-get install dpkg-dev, and run cpack again.")
endif()
file(GLOB programs "${root}/usr/bin/*")
set(scratch "${root}.shlibdeps")
file(MAKE_DIRECTORY "${scratch}/debian")
file(WRITE "${scratch}/debian/control" "Source: strata\n\nPackage: strata\nArchitecture: any\n")
run_or_fail(libraries "${CMAKE_COMMAND}" -E chdir "${scratch}" "${STRATA_SHLIBDEPS}" -O ${programs})
file(REMOVE_RECURSE "${scratch}")
string(REGEX REPLACE "^.*shlibs:Depends=" "" libraries "${libraries}")
list(APPEND depends ${libraries})
list(JOIN depends ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
list(JOIN CPACK_STRATA_RECOMMENDS ", " CPACK_DEBIAN_PACKAGE_RECOMMENDS)

# ---- pages that every package of Debian has ------------------------------------------------------------------------
# The licence lies on every Debian; the package says so in its place.
file(REMOVE "${doc}/LICENSE")
file(WRITE "${doc}/copyright" "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: strata

Files: *
Copyright: 2026 the authors of strata
License: Apache-2.0

License: Apache-2.0
 Licensed under the Apache License, Version 2.0, which is
 /usr/share/common-licenses/Apache-2.0 on Debian.
")

string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, where it is set
file(WRITE "${doc}/changelog" "strata (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * /usr/share/doc/strata/docs/CHANGELOG.md says what has changed.

 -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}
")

# The manual is what the command says of itself.
function(append_manual section)
    run_or_fail(text "${root}/usr/bin/strata" ${ARGN} --help)
    string(REPLACE "\\" "\\e" text "${text}")
    string(REPLACE "-" "\\-" text "${text}")
    string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" text "${text}")
    set(manual "${manual}.SH ${section}\n.nf\n${text}\n.fi\n" PARENT_SCOPE)
endfunction()
set(manual ".TH STRATA 1 \"\" \"strata ${CPACK_PACKAGE_VERSION}\"\n.SH NAME\nstrata \\- looks at data sets, and runs trainers on several ranks\n")
append_manual(SYNOPSIS)
run_or_fail(help "${root}/usr/bin/strata" --help)
string(REGEX MATCHALL "\n  [a-z]+ " commands "${help}")
foreach(command IN LISTS commands)
    string(STRIP "${command}" command)
    string(TOUPPER "STRATA ${command}" section)
    append_manual("${section}" "${command}")
endforeach()
string(APPEND manual ".SH SEE ALSO\n/usr/share/doc/strata/docs/tools.md\n")
file(WRITE "${root}/usr/share/man/man1/strata.1" "${manual}")

# Compressed as Debian wants these two; pages with links between them stay as they are.
run_or_fail(ignored gzip -9nf "${doc}/changelog" "${root}/usr/share/man/man1/strata.1")

# Folders and files above were made with the umask of who runs cpack.
run_or_fail(ignored chmod -R u=rwX,go=rX "${root}")
