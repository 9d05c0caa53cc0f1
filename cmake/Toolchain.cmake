# Warnings, hardening and tools that every target shares (interface target gso::options).
add_library(gso_options INTERFACE)
add_library(gso::options ALIAS gso_options)
target_include_directories(gso_options INTERFACE ${PROJECT_SOURCE_DIR})
# Libraries and executables have the same flags, and so can share precompiled headers: all code is for a
# position-independent executable.
target_compile_options(gso_options INTERFACE -fPIE)
target_link_options(gso_options INTERFACE -pie)
target_compile_options(gso_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-align -Woverloaded-virtual
  -Wconversion -Wno-sign-conversion -Wformat=2 -Wimplicit-fallthrough -Wextra-semi)
# g++ 12 reports these inside libstdc++, fmt and Asio's coroutine frames as soon as it inlines, for code that is correct.
# (-Wnull-dereference would be another: it is in no group of warnings, and stays off.)
target_compile_options(gso_options INTERFACE -Wno-maybe-uninitialized
  -Wno-mismatched-new-delete -Wno-restrict $<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-warning-option>)
# clang sees libstdc++'s own use of what it deprecates, with each stable sort, and warns of members that a designated
# initializer leaves to their defaults, which g++ does not.
target_compile_options(gso_options INTERFACE
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations -Wno-missing-designated-field-initializers>)
if(GSO_WERROR)
  target_compile_options(gso_options INTERFACE -Werror)
endif()

# Hardening after the OpenSSF compiler guide. _FORTIFY_SOURCE needs optimisation and does not mix with sanitizers.
target_compile_options(gso_options INTERFACE -fstack-protector-strong -fstack-clash-protection)
# What only one kind of processor has: indirect jumps end where they may, and simdjson's on-demand parser, which is chosen at
# compile time, is not the byte-by-byte fallback. Every x86-64 server since 2010 has these instructions, every arm64 one NEON.
set(GSO_PROTECTION_x86_64 -fcf-protection)
set(GSO_PROCESSOR_x86_64 -march=x86-64-v2 -mpclmul)
set(GSO_PROTECTION_aarch64 -mbranch-protection=standard)
target_compile_options(gso_options INTERFACE ${GSO_PROTECTION_${CMAKE_SYSTEM_PROCESSOR}})
target_link_options(gso_options INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT GSO_SANITIZE)
  target_compile_options(gso_options INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS
    -ftrivial-auto-var-init=zero)
  # Functions that nothing calls are left out, those of static libraries too. Not -z pack-relative-relocs, which saves
  # 0.6 MB: it needs glibc 2.36, and a release starts with 2.34.
  target_compile_options(gso_options INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(gso_options INTERFACE -Wl,--gc-sections)
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
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(${GSO_PROCESSOR_${CMAKE_SYSTEM_PROCESSOR}})
endif()

if(GSO_SANITIZE)
  # Asio's coroutines and g++ 12's asan disagree about use-after-return, so that check stays off (its default).
  add_compile_options(-fsanitize=${GSO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GSO_SANITIZE})
endif()

# Depend mode, because a precompiled header stores a checksum of each #pragma once header: after a change of a comment only, a
# cached one would include that header twice. A namespace, because a cache keeps such entries of the other mode for weeks.
find_program(GSO_CCACHE ccache)
if(GSO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CCACHE_NAMESPACE=depend ${GSO_CCACHE})
endif()
find_program(GSO_MOLD mold)
# Not for a release: what takes time in its link is -flto.
if(GSO_MOLD AND NOT GSO_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  add_link_options(-fuse-ld=mold)
endif()

# GSO_UNITY: the sources of a folder are compiled together, some ten at a time. The compiler spends most of its time on
# headers and on what templates make of them, once for each file that it is given: from an empty folder this halves the
# build. One changed file costs its whole batch, so it is off by default (cmake --preset debug, for daily work).
# A name in an anonymous namespace is therefore unique within its folder; a test has a namespace of its own.
option(GSO_UNITY "Compile the sources of a folder together" OFF)
set(GSO_UNITY_BATCH 10 CACHE STRING "How many sources are compiled together, at most")

# gso_batches(TARGET OUT SOURCES…): OUT becomes what to compile for these sources: themselves, or one file for each batch
# that includes them. Batches name their sources relative to the project, so that a compiler cache hits in every clone.
function(gso_batches target out)
  if(NOT GSO_UNITY)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(folders)
  set(batches)
  foreach(source ${ARGN})
    get_source_file_property(alone ${source} COMPILE_DEFINITIONS)
    if(alone)
      list(APPEND batches ${source})
      continue()
    endif()
    get_filename_component(source ${source} ABSOLUTE)
    file(RELATIVE_PATH source ${PROJECT_SOURCE_DIR} ${source})
    get_filename_component(folder ${source} DIRECTORY)
    list(APPEND folders ${folder})
    list(APPEND "in ${folder}" ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    list(LENGTH "in ${folder}" count)
    math(EXPR parts "(${count} + ${GSO_UNITY_BATCH} - 1) / ${GSO_UNITY_BATCH}")
    math(EXPR last "${parts} - 1")
    string(MAKE_C_IDENTIFIER ${folder} name)
    foreach(part RANGE ${last})
      math(EXPR from "${part} * ${count} / ${parts}")
      math(EXPR length "(${part} + 1) * ${count} / ${parts} - ${from}")
      list(SUBLIST "in ${folder}" ${from} ${length} sources)
      list(TRANSFORM sources REPLACE "(.+)" "#include \"\\1\"\n")
      list(JOIN sources "" text)
      set(batch ${CMAKE_CURRENT_BINARY_DIR}/${target}.batches/${name}_${part}.cc)
      file(CONFIGURE OUTPUT ${batch} CONTENT "${text}" @ONLY)
      list(APPEND batches ${batch})
    endforeach()
  endforeach()
  set(${out} ${batches} PARENT_SCOPE)
  # To g++ every source is a header then, and it warns of coroutines whose frames hold types of anonymous namespaces.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# Sources that no event of a fleet runs through are compiled for size in a release: a third less code of them is in the
# program and in memory, and what they answer takes a few milliseconds longer.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(GSO_FOR_SIZE -Os)
endif()

# gso_headers(NAME HEADERS … DEPENDS …): precompiles headers once for all targets that name NAME in HEADERS, and in a
# release once more for those that are compiled for size. They are named relative to the project: a compiler cache hits in
# every clone.
function(gso_headers name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPENDS" ${ARGN})
  if(GSO_SANITIZE MATCHES "fuzzer")
    return()
  endif()
  list(TRANSFORM ARG_HEADERS REPLACE "(.+)" "<\\1>")
  set(variants gso_headers_${name})
  if(GSO_FOR_SIZE)
    list(APPEND variants gso_headers_${name}_for_size)
  endif()
  foreach(target ${variants})
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
    target_link_libraries(${target} PRIVATE gso::options ${ARG_DEPENDS})
    target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
    # ccache looks at what a file includes: with g++ it needs the precompiled header named in the preprocessor's output.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endforeach()
  if(GSO_FOR_SIZE)
    target_compile_options(gso_headers_${name}_for_size PRIVATE ${GSO_FOR_SIZE})
  endif()
endfunction()

# gso_compile(TARGET SOURCES… HEADERS name [FOR_SIZE]): what a library and an executable have in common.
function(gso_compile target)
  cmake_parse_arguments(ARG "FOR_SIZE" "HEADERS" "SOURCES" ${ARGN})
  gso_batches(${target} batches ${ARG_SOURCES})
  target_sources(${target} PRIVATE ${batches})
  set(variant)
  if(ARG_FOR_SIZE AND GSO_FOR_SIZE)
    target_compile_options(${target} PRIVATE ${GSO_FOR_SIZE})
    set(variant _for_size)
  endif()
  if(TARGET gso_headers_${ARG_HEADERS}${variant})
    target_precompile_headers(${target} REUSE_FROM gso_headers_${ARG_HEADERS}${variant})
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
endfunction()

# gso_library(NAME SOURCES… [SELDOM_RUN sources…] DEPENDS … HEADERS name): a static library with the shared options.
# SELDOM_RUN: further sources, which a release compiles for size.
function(gso_library name)
  cmake_parse_arguments(ARG "FOR_SIZE" "HEADERS" "SOURCES;SELDOM_RUN;DEPENDS" ${ARGN})
  add_library(${name} STATIC)
  target_link_libraries(${name} PUBLIC gso::options ${ARG_DEPENDS})
  set(for_size)
  if(ARG_FOR_SIZE)
    set(for_size FOR_SIZE)
  endif()
  if(ARG_SELDOM_RUN AND GSO_FOR_SIZE)
    add_library(${name}_seldom_run OBJECT)
    target_link_libraries(${name}_seldom_run PUBLIC gso::options ${ARG_DEPENDS})
    gso_compile(${name}_seldom_run SOURCES ${ARG_SELDOM_RUN} HEADERS ${ARG_HEADERS} FOR_SIZE)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${name}_seldom_run>)
  else()
    list(APPEND ARG_SOURCES ${ARG_SELDOM_RUN})
  endif()
  gso_compile(${name} SOURCES ${ARG_SOURCES} HEADERS ${ARG_HEADERS} ${for_size})
endfunction()

# gso_test(NAME LABEL SOURCES… DEPENDS … HEADERS name): a GoogleTest executable, one ctest entry, with a ctest label. With
# SHARDS 4, four entries that each run a quarter, so that ctest -j spreads them: NAME, NAME_1, …
function(gso_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;HEADERS;SHARDS" "SOURCES;DEPENDS;ENVIRONMENT" ${ARGN})
  add_executable(${name})
  target_link_libraries(${name} PRIVATE gso::options ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  gso_compile(${name} SOURCES ${ARG_SOURCES} HEADERS ${ARG_HEADERS})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set(entries ${name})
  set(environment "GSO_SOURCE_DIR=${PROJECT_SOURCE_DIR}" ${ARG_ENVIRONMENT})
  if(ARG_SHARDS)
    math(EXPR last "${ARG_SHARDS} - 1")
    foreach(shard RANGE 1 ${last})
      # A report of its own name: those that begin in one moment would choose the same.
      add_test(NAME ${name}_${shard} COMMAND sh -c
        "export GTEST_SHARD_INDEX=${shard} GTEST_OUTPUT=\"\${GTEST_OUTPUT:+\${GTEST_OUTPUT}${name}_${shard}.xml}\"; exec $<TARGET_FILE:${name}>")
      list(APPEND entries ${name}_${shard})
    endforeach()
    list(APPEND environment GTEST_TOTAL_SHARDS=${ARG_SHARDS} GTEST_SHARD_INDEX=0)
  endif()
  set_tests_properties(${entries} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${environment}")
endfunction()
