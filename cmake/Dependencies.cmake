# Debian bookworm's packages as imported targets. libboost1.81-dev installs beside the default 1.74, into the same
# include folder, so only its version is checked here.
#
# Every build contains OpenSSL and libcurl. A release also contains every other library but glibc: it starts on any Linux
# whose glibc is not older than 2.34, and only what is called of each is in it. All other builds link quickly against the
# shared ones, of the same versions. GSO_LINKED_LIBRARIES has what is inside, for `version --libraries`.
find_package(Threads REQUIRED)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT GSO_SANITIZE)
  set(GSO_STATIC_DEPENDENCIES ON)
endif()
set(ZLIB_USE_STATIC_LIBS ${GSO_STATIC_DEPENDENCIES})
# A build folder remembers what it found before: a shared library would stay linked, and `version --libraries` be wrong.
if(GSO_STATIC_DEPENDENCIES AND "${ZLIB_LIBRARY_RELEASE}" MATCHES "\\.so$")
  unset(ZLIB_LIBRARY_RELEASE CACHE)
endif()
find_package(Boost 1.81 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_path(GSO_PROTOZERO protozero/pbf_reader.hpp REQUIRED)  # Headers alone, in the compiler's own folder.
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(yaml REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(nghttp2 REQUIRED IMPORTED_TARGET libnghttp2)
set(GSO_NGHTTP2 PkgConfig::nghttp2)
if(GSO_STATIC_DEPENDENCIES)
  # Variables of other names: find_library() leaves one alone that is set already.
  foreach(archive nghttp2 yaml yaml-cpp)
    find_library(GSO_ARCHIVE_${archive} lib${archive}.a REQUIRED)
  endforeach()
  set(GSO_NGHTTP2 ${GSO_ARCHIVE_nghttp2})
  set_target_properties(PkgConfig::yaml PROPERTIES INTERFACE_LINK_LIBRARIES ${GSO_ARCHIVE_yaml})
  # Debian's description of the package names the shared library alone.
  add_library(yaml-cpp STATIC IMPORTED)
  set_target_properties(yaml-cpp PROPERTIES IMPORTED_LOCATION ${GSO_ARCHIVE_yaml-cpp})
else()
  find_package(yaml-cpp 0.7 REQUIRED)
endif()

# Some are built from Debian's source packages (build.sh says why), once for all presets. gso_build(SET) does so, with their
# licences for the image; gso_built() then makes targets of that set.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/libraries/build.sh)
file(REMOVE_RECURSE ${PROJECT_BINARY_DIR}/licences)
macro(gso_build set)
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/cmake/libraries/build.sh ${set} ${CMAKE_SYSTEM_PROCESSOR}
    OUTPUT_VARIABLE GSO_LIBRARIES OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  file(COPY ${GSO_LIBRARIES}/licences DESTINATION ${PROJECT_BINARY_DIR})
  file(STRINGS ${GSO_LIBRARIES}/versions versions)
  list(APPEND GSO_LINKED_LIBRARIES ${versions})
endmacro()
function(gso_built target file)
  add_library(${target} STATIC IMPORTED)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${GSO_LIBRARIES}/lib/${file}
    INTERFACE_INCLUDE_DIRECTORIES ${GSO_LIBRARIES}/include INTERFACE_LINK_LIBRARIES "${ARGN}")
endfunction()

gso_build(transport)
gso_built(OpenSSL::Crypto libcrypto.a Threads::Threads)
gso_built(OpenSSL::SSL libssl.a OpenSSL::Crypto)
gso_built(gso::libcurl libcurl.a ${GSO_NGHTTP2} OpenSSL::SSL ZLIB::ZLIB)

if(GSO_STATIC_DEPENDENCIES)
  gso_build(release)
  gso_built(fmt::fmt libfmt.a)
  gso_built(spdlog::spdlog libspdlog.a fmt::fmt Threads::Threads)
  gso_built(simdjson::simdjson libsimdjson.a Threads::Threads)
  gso_built(date::date-tz libdate-tz.a)
  target_compile_definitions(spdlog::spdlog INTERFACE SPDLOG_COMPILED_LIB)
  target_compile_definitions(simdjson::simdjson INTERFACE SIMDJSON_THREADS_ENABLED=1)
  target_compile_definitions(date::date-tz INTERFACE USE_OS_TZDB=1 ONLY_C_LOCALE=1 HAS_STRING_VIEW=1)
  # Debian's own archives and headers that are compiled in, and the package of each; gcc-12 is the compiler's libstdc++ and
  # libgcc, which a toolchain file names where they are of another package. Archives for another architecture are in a folder of their own (GSO_SYSROOT).
  string(REGEX MATCH "^[0-9]+" gcc ${CMAKE_CXX_COMPILER_VERSION})
  foreach(library nghttp2=libnghttp2-dev zlib=zlib1g-dev libyaml=libyaml-dev yaml-cpp=libyaml-cpp-dev
          gcc-${gcc}${GSO_GCC_SOURCE}=libstdc++-${gcc}-dev${GSO_GCC_PACKAGE} boost1.81=libboost1.81-dev
          nlohmann-json3=nlohmann-json3-dev cli11=libcli11-dev protozero=libprotozero-dev)
    string(REPLACE "=" ";" library ${library})
    list(GET library 1 package)
    list(GET library 0 library)
    set(from /usr/share/doc/${package})
    if(GSO_SYSROOT AND EXISTS ${GSO_SYSROOT}${from})
      set(from ${GSO_SYSROOT}${from})
      file(STRINGS ${GSO_SYSROOT}/versions package_version REGEX "^${library}=")
      string(REPLACE "${library}=" "" package_version ${package_version})
    else()
      execute_process(COMMAND dpkg-query --show --showformat "\${source:Version}" ${package}
        OUTPUT_VARIABLE package_version COMMAND_ERROR_IS_FATAL ANY)
    endif()
    file(COPY_FILE ${from}/copyright ${PROJECT_BINARY_DIR}/licences/${library})
    list(APPEND GSO_LINKED_LIBRARIES ${library}=${package_version})
  endforeach()
else()
  find_package(fmt 9 REQUIRED)
  find_package(spdlog 1.10 REQUIRED)
  find_package(simdjson REQUIRED)
  find_package(date REQUIRED)  # Time zones of maintenance windows.
endif()
list(SORT GSO_LINKED_LIBRARIES)
list(JOIN GSO_LINKED_LIBRARIES "," GSO_LINKED_LIBRARIES)

if(GSO_TESTS)
  find_package(GTest REQUIRED)
endif()
if(GSO_BENCH)
  find_package(benchmark REQUIRED)
endif()

add_library(gso_asio INTERFACE)
add_library(gso::asio ALIAS gso_asio)
target_link_libraries(gso_asio INTERFACE Boost::headers Threads::Threads)
# Everything runs on one thread, tests too: asio only asks whether DISABLE_THREADS is defined, not for its value.
target_compile_definitions(gso_asio INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_THREADS=0)

# gso_runs_anywhere(PROGRAM): in a release the compiler's own libraries are inside it, too. The unwinder of libgcc would ask for
# glibc 2.35, but for the definition that the program has; -flto must not see that one, because nothing of the program itself
# calls it.
if(GSO_STATIC_DEPENDENCIES)
  add_library(find_object OBJECT ${PROJECT_SOURCE_DIR}/cmake/libraries/find_object.cc)
  target_link_libraries(find_object PRIVATE gso::options)
  set_target_properties(find_object PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
endif()
function(gso_runs_anywhere program)
  if(GSO_STATIC_DEPENDENCIES)
    target_sources(${program} PRIVATE $<TARGET_OBJECTS:find_object>)
    target_link_options(${program} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
