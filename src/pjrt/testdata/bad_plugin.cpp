// Libraries that Plugin::load must refuse.
#include "pjrt_c_api.h"

#ifdef WITH_OLD_API
extern "C" const PJRT_Api* GetPjrtApi() {
  static PJRT_Api api = [] {
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
