// Libraries that Plugin::load must refuse.
#include "pjrt_c_api.h"

#ifdef WITH_OLD_API
#include <sys/mman.h>

extern "C" void __register_frame(void* frames);

// As a compiler that unmaps code without a word to the unwinder: the next exception would read this page.
static void leave_frames_behind() {
  constexpr size_t kBytes = 4096;
  void* page = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<int*>(page) = 1;
  __register_frame(page);
  munmap(page, kBytes);
}

extern "C" const PJRT_Api* GetPjrtApi() {
  static PJRT_Api api = [] {
    leave_frames_behind();
    PJRT_Api old{};
    old.struct_size = PJRT_Api_STRUCT_SIZE;
    old.pjrt_api_version.major_version = 0;
    old.pjrt_api_version.minor_version = 3;
    return old;
  }();
  return &api;
}
#else
extern "C" int not_a_plugin() { return 0; }
#endif
