# Toolchain of the preset release-arm64: Debian's cross compiler, its static libraries for arm64 (libraries/sysroot.sh), and
# qemu for what a configuration tries by running it. Headers that are the same for all architectures are this machine's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Where Debian packages the cross compiler's libstdc++ and libgcc: with a source and versions of their own.
set(GSO_GCC_SOURCE -cross)
set(GSO_GCC_PACKAGE -arm64-cross)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)

set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GSO_SYSROOT)
if(NOT GSO_SYSROOT)
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/libraries/sysroot.sh arm64
    OUTPUT_VARIABLE GSO_SYSROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
set(CMAKE_FIND_ROOT_PATH ${GSO_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
include_directories(BEFORE SYSTEM ${GSO_SYSROOT}/usr/include ${GSO_SYSROOT}/usr/include/aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} ${GSO_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${GSO_SYSROOT})
