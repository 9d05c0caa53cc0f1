# Debian bookworm's packages as imported targets. libboost1.81-dev installs beside the default 1.74, into the same
# include folder, so only its version is checked here.
#
# A release contains libcurl and what libcurl needs: fewer files in the image, and only what is called of each. All other builds
# link quickly against the shared ones. GSO_LINKED_LIBRARIES has what is inside, for `version --libraries`.
find_package(Threads REQUIRED)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT GSO_SANITIZE)
  set(GSO_STATIC_DEPENDENCIES ON)
endif()
set(OPENSSL_USE_STATIC_LIBS ${GSO_STATIC_DEPENDENCIES})
set(ZLIB_USE_STATIC_LIBS ${GSO_STATIC_DEPENDENCIES})
# A build folder remembers what it found before: shared libraries would stay linked, and `version --libraries` be wrong.
if(GSO_STATIC_DEPENDENCIES)
  foreach(found OPENSSL_SSL_LIBRARY OPENSSL_CRYPTO_LIBRARY ZLIB_LIBRARY_RELEASE)
    if("${${found}}" MATCHES "\\.so$")
      unset(${found} CACHE)
    endif()
  endforeach()
endif()
find_package(OpenSSL 3.0 REQUIRED)
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

# libcurl is built from Debian's newer source package (build.sh says why), once for all presets.
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/cmake/libcurl/build.sh
  OUTPUT_VARIABLE GSO_LIBCURL OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/libcurl/build.sh)
add_library(gso_libcurl STATIC IMPORTED)
add_library(gso::libcurl ALIAS gso_libcurl)
set_target_properties(gso_libcurl PROPERTIES
  IMPORTED_LOCATION ${GSO_LIBCURL}/lib/libcurl.a
  INTERFACE_INCLUDE_DIRECTORIES ${GSO_LIBCURL}/include
  INTERFACE_LINK_LIBRARIES "${GSO_NGHTTP2};OpenSSL::SSL;OpenSSL::Crypto;ZLIB::ZLIB;Threads::Threads")

file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/licences)
file(STRINGS ${GSO_LIBCURL}/version GSO_LIBCURL_VERSION)
set(GSO_LINKED_LIBRARIES "curl=${GSO_LIBCURL_VERSION}")
file(COPY_FILE ${GSO_LIBCURL}/copyright ${PROJECT_BINARY_DIR}/licences/curl)  # For the image.
if(GSO_STATIC_DEPENDENCIES)
  foreach(library nghttp2=libnghttp2-dev openssl=libssl-dev zlib=zlib1g-dev)
    string(REPLACE "=" ";" library ${library})
    list(GET library 1 package)
    execute_process(COMMAND dpkg-query --show --showformat "\${Version}" ${package}
      OUTPUT_VARIABLE package_version COMMAND_ERROR_IS_FATAL ANY)
    list(GET library 0 library)
    file(COPY_FILE /usr/share/doc/${package}/copyright ${PROJECT_BINARY_DIR}/licences/${library})
    string(APPEND GSO_LINKED_LIBRARIES ",${library}=${package_version}")
  endforeach()
endif()

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
