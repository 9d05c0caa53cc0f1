# Debian bookworm's packages as imported targets. libboost1.81-dev installs beside the default 1.74, into the same
# include folder, so only its version is checked here.
#
# Every build contains OpenSSL and libcurl. A release also contains what libcurl needs: fewer files in the image, and
# only what is called of each. All other builds link quickly against the shared ones. GSO_LINKED_LIBRARIES has what is
# inside, for `version --libraries`.
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
find_package(yaml-cpp 0.7 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(simdjson REQUIRED)
find_path(GSO_PROTOZERO protozero/pbf_reader.hpp REQUIRED)  # Headers alone, in the compiler's own folder.
find_package(date REQUIRED)  # Time zones of maintenance windows.
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(yaml REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(nghttp2 REQUIRED IMPORTED_TARGET libnghttp2)
set(GSO_NGHTTP2 PkgConfig::nghttp2)
if(GSO_STATIC_DEPENDENCIES)
  # A variable of another name: find_library() leaves one alone that is set already.
  find_library(GSO_NGHTTP2_ARCHIVE libnghttp2.a REQUIRED)
  set(GSO_NGHTTP2 ${GSO_NGHTTP2_ARCHIVE})
endif()

# OpenSSL and libcurl are built from Debian's source packages (build.sh says why), once for all presets.
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/cmake/libraries/build.sh
  OUTPUT_VARIABLE GSO_LIBRARIES OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/libraries/build.sh)
function(gso_built target file)
  add_library(${target} STATIC IMPORTED)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${GSO_LIBRARIES}/lib/${file}
    INTERFACE_INCLUDE_DIRECTORIES ${GSO_LIBRARIES}/include INTERFACE_LINK_LIBRARIES "${ARGN}")
endfunction()
gso_built(OpenSSL::Crypto libcrypto.a Threads::Threads)
gso_built(OpenSSL::SSL libssl.a OpenSSL::Crypto)
gso_built(gso::libcurl libcurl.a ${GSO_NGHTTP2} OpenSSL::SSL ZLIB::ZLIB)

# Their licences are for the image.
file(REMOVE_RECURSE ${PROJECT_BINARY_DIR}/licences)
file(COPY ${GSO_LIBRARIES}/licences DESTINATION ${PROJECT_BINARY_DIR})
file(STRINGS ${GSO_LIBRARIES}/versions GSO_LINKED_LIBRARIES)
if(GSO_STATIC_DEPENDENCIES)
  foreach(library nghttp2=libnghttp2-dev zlib=zlib1g-dev)
    string(REPLACE "=" ";" library ${library})
    list(GET library 1 package)
    execute_process(COMMAND dpkg-query --show --showformat "\${Version}" ${package}
      OUTPUT_VARIABLE package_version COMMAND_ERROR_IS_FATAL ANY)
    list(GET library 0 library)
    file(COPY_FILE /usr/share/doc/${package}/copyright ${PROJECT_BINARY_DIR}/licences/${library})
    list(APPEND GSO_LINKED_LIBRARIES ${library}=${package_version})
  endforeach()
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
