// Where an exception's tables are, for the unwinder inside a release: libgcc asks glibc's _dl_find_object(), which is
// there from 2.35 on, and the program starts with 2.34, too. This one asks dl_iterate_phdr(), as libgcc itself did
// before: for each frame a lock and a look at some five objects, for exceptions that are rare. Nothing is remembered,
// so that what glibc loads for name lookups may come and go, and frames of libc (a callback of qsort() that throws) are
// found like the program's own.
//
// With any libgcc inside a program, an exception must not leave a callback of those functions of glibc that tidy up
// when one passes, pthread_once() and with it std::call_once(), dl_iterate_phdr() and pthread_exit(): their part of
// that is in libgcc_s.so.1, does not know this unwinder, and ends the program. tests/libraries/glibc_test.py looks for
// such uses.
#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

// glibc declares it for everybody. Hidden, it is for this program's unwinder alone: a libgcc_s.so.1 that glibc loads
// for pthread_exit() keeps glibc's own.
extern "C" __attribute__((visibility("hidden"))) int find_object(void* address, dl_find_object* found) noexcept
    __asm__("_dl_find_object");

namespace {

// Ends the search, with 1, at the object that `found->dlfo_map_start`, an address, lies in.
int look_into(dl_phdr_info* object, std::size_t /*size*/, void* found) {
  auto& out = *static_cast<dl_find_object*>(found);
  const auto address = reinterpret_cast<std::uintptr_t>(out.dlfo_map_start);
  std::uintptr_t start = UINTPTR_MAX, end = 0, tables = 0;
  bool inside = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const std::uintptr_t from = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_GNU_EH_FRAME) tables = from;
    if (segment.p_type != PT_LOAD) continue;
    start = from < start ? from : start;
    end = from + segment.p_memsz > end ? from + segment.p_memsz : end;
    inside |= address - from < segment.p_memsz;
  }
  if (!inside) return 0;
  out.dlfo_map_start = reinterpret_cast<void*>(start);
  out.dlfo_map_end = reinterpret_cast<void*>(end);
  out.dlfo_eh_frame = reinterpret_cast<void*>(tables);
  return 1;
}

}  // namespace

// -1: no object has the address, or that one has no tables; the unwinder then takes the frame for the last one.
int find_object(void* address, dl_find_object* found) noexcept {
  *found = {};
  found->dlfo_map_start = address;
  return ::dl_iterate_phdr(look_into, found) == 1 && found->dlfo_eh_frame != nullptr ? 0 : -1;
}
