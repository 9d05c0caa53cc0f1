#!/usr/bin/env python3
"""A CUDA program for tests of MPS: says what its GPU looks like, and holds or uses it until standard input ends.

usage: cuda_client.py [--allocate MIB] [--spin]

Prints one JSON line: `multiprocessors`, `totalMiB`, `freeMiB`, `allocated` (whether MIB could be allocated; null: not
tried), or `error`, the CUDA error code of the first call that failed, with `call`. `--spin` keeps a kernel running.
"""
import argparse
import ctypes
import json
import sys

MULTIPROCESSOR_COUNT = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
# One thread that ends when the word in memory is no longer zero.
SPIN = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 word)
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [word];
again:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
  ret;
}
\0"""


class Failed(Exception):
    pass


class Cuda:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name):
        def call(*arguments):
            code = getattr(self.library, name)(*arguments)
            if code != 0:
                raise Failed(name, code)
        return call


def context(cuda):
    cuda.cuInit(0)
    device, handle = ctypes.c_int(), ctypes.c_void_p()
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), device)
    cuda.cuCtxSetCurrent(handle)
    return device


def facts(cuda, device, allocate):
    count, free, total = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cuDeviceGetAttribute(ctypes.byref(count), MULTIPROCESSOR_COUNT, device)
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    allocated = None
    if allocate:
        memory = ctypes.c_uint64()
        try:
            cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(allocate << 20))
            allocated = True
        except Failed:
            allocated = False
    return {"multiprocessors": count.value, "totalMiB": total.value >> 20, "freeMiB": free.value >> 20, "allocated": allocated}


def spin(cuda):
    """Starts the kernel, and gives the address of the word that ends it."""
    module, function, host, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    cuda.cuModuleLoadData(ctypes.byref(module), SPIN)
    cuda.cuModuleGetFunction(ctypes.byref(function), module, b"spin")
    cuda.cuMemHostAlloc(ctypes.byref(host), ctypes.c_size_t(4), 2)  # CU_MEMHOSTALLOC_DEVICEMAP
    word = ctypes.c_uint32.from_address(host.value)
    word.value = 0
    cuda.cuMemHostGetDevicePointer_v2(ctypes.byref(device), host, 0)
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(device), ctypes.c_void_p))
    cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
    return word


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--allocate", type=int, default=0)
    parser.add_argument("--spin", action="store_true")
    options = parser.parse_args()
    cuda, word = Cuda(), None
    try:
        device = context(cuda)
        says = facts(cuda, device, options.allocate)
        if options.spin:
            word = spin(cuda)
    except Failed as failure:
        says = {"call": failure.args[0], "error": failure.args[1]}
    print(json.dumps(says), flush=True)
    sys.stdin.read()
    if word is not None:
        word.value = 1
        cuda.cuCtxSynchronize()
    return 1 if "error" in says else 0


if __name__ == "__main__":
    sys.exit(main())
