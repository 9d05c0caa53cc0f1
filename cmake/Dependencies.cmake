# Debian bookworm's packages as imported targets. libboost1.81-dev installs beside the default 1.74, into the same
# include folder, so only its version is checked here.
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(CURL 7.88 REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(simdjson REQUIRED)
find_package(date REQUIRED)  # Time zones of maintenance windows.
find_package(PkgConfig REQUIRED)
pkg_check_modules(yaml REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(nghttp2 REQUIRED IMPORTED_TARGET libnghttp2)
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
