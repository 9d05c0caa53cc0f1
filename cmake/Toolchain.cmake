# Warnings, hardening and tools that every target shares (interface target gso::options).
add_library(gso_options INTERFACE)
add_library(gso::options ALIAS gso_options)
target_include_directories(gso_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(gso_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-align -Woverloaded-virtual
  -Wconversion -Wno-sign-conversion -Wformat=2 -Wimplicit-fallthrough -Wextra-semi)
# g++ 12 reports these inside libstdc++, fmt and Asio's coroutine frames as soon as it inlines, for code that is correct.
# (-Wnull-dereference would be another: it is in no group of warnings, and stays off.)
target_compile_options(gso_options INTERFACE -Wno-maybe-uninitialized
  -Wno-mismatched-new-delete -Wno-restrict $<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-warning-option>)
if(GSO_WERROR)
  target_compile_options(gso_options INTERFACE -Werror)
endif()

# Hardening after the OpenSSF compiler guide. _FORTIFY_SOURCE needs optimisation and does not mix with sanitizers.
target_compile_options(gso_options INTERFACE -fstack-protector-strong -fstack-clash-protection -fcf-protection)
target_link_options(gso_options INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT GSO_SANITIZE)
  target_compile_options(gso_options INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS)
  # Functions that nothing calls are left out, those of static libraries too. Relocations of one address space are kept
  # as a bitmap, which needs glibc 2.36 (Debian 12): 0.6 MB less to read at the start.
  target_compile_options(gso_options INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(gso_options INTERFACE -Wl,--gc-sections -Wl,-z,pack-relative-relocs)
endif()
# The program is optimised as a whole, where the compiler can: less to download, and less in memory.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT GSO_SANITIZE)
  include(CheckIPOSupported)
  check_ipo_supported(RESULT GSO_WHOLE_PROGRAM OUTPUT GSO_WHOLE_PROGRAM_WHY LANGUAGES CXX)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ${GSO_WHOLE_PROGRAM})
endif()
# -O3 makes the program a fifth larger in memory and no faster: it waits for the network.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Not -O0: it builds little faster, and the suites take four times as long. Line tables are what backtraces need.
if(NOT GSO_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
endif()
# simdjson's on-demand parser is chosen at compile time: without these it is the byte-by-byte fallback. Every x86-64
# server since 2010 has them.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  add_compile_options(-march=x86-64-v2 -mpclmul)
endif()

if(GSO_SANITIZE)
  # Asio's coroutines and g++ 12's asan disagree about use-after-return, so that check stays off (its default).
  add_compile_options(-fsanitize=${GSO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GSO_SANITIZE})
endif()

find_program(GSO_CCACHE ccache)
if(GSO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${GSO_CCACHE})
endif()
find_program(GSO_MOLD mold)
# Not for a release: Debian 12's mold packs relocations, but leaves out the mark without which glibc refuses to load them.
if(GSO_MOLD AND NOT GSO_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  add_link_options(-fuse-ld=mold)
endif()

# gso_precompile(TARGET HEADER): HEADER is compiled once for this target (a third of the time of a file is headers).
function(gso_precompile target header)
  target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/${header}>")
  # ccache looks at what a file includes: with g++ it needs the precompiled header named in the preprocessor's output.
  target_compile_options(${target} PRIVATE -fpch-preprocess)
endfunction()

# gso_library(NAME SOURCES… DEPENDS … PRECOMPILED …): a static library with the shared options.
function(gso_library name)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC gso::options ${ARG_DEPENDS})
  if(ARG_PRECOMPILED)
    gso_precompile(${name} ${ARG_PRECOMPILED})
  endif()
endfunction()

# gso_compile_for_size(FILE…): sources that no event of a fleet runs through. A third less code of them is in the program
# and in memory, and what they answer takes a few milliseconds longer. Only in a release; there they do without the
# precompiled header of their target, which g++ would refuse.
function(gso_compile_for_size)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -Os SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# gso_test(NAME LABEL SOURCES… DEPENDS … PRECOMPILED …): a GoogleTest executable, one ctest entry, with a ctest label.
function(gso_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;PRECOMPILED" "SOURCES;DEPENDS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE gso::options ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  if(ARG_PRECOMPILED)
    gso_precompile(${name} ${ARG_PRECOMPILED})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "GSO_SOURCE_DIR=${PROJECT_SOURCE_DIR};${ARG_ENVIRONMENT}")
endfunction()
