#include "pjrt/generated_frames.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace torch_pjrt::pjrt {
namespace {

#ifdef __x86_64__

extern "C" void ignore_frames(const void* /*frames*/) {}

// What the loader needs of a library to bind its calls.
struct Linkage {
  const ElfW(Rela) * slots = nullptr;
  size_t slots_bytes = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;

  explicit Linkage(const link_map& map) {
    for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_JMPREL:
          slots = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
          break;
        case DT_PLTRELSZ:
          slots_bytes = entry->d_un.d_val;
          break;
        case DT_SYMTAB:
          symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
          break;
        case DT_STRTAB:
          names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
          break;
        default:
          break;
      }
    }
  }

  bool is_whole() const { return slots != nullptr && symbols != nullptr && names != nullptr; }
};

void bind(uintptr_t slot, void (*target)(const void*)) {
  const auto page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(slot / page_size * page_size);
  // The loader may have made the page read-only.
  if (mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return;
  *reinterpret_cast<void (**)(const void*)>(slot) = target;
}

#endif

}  // namespace

void ignore_generated_frames(void* library) {
#ifdef __x86_64__
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return;
  const Linkage linkage(*map);
  if (!linkage.is_whole()) return;
  for (size_t i = 0; i < linkage.slots_bytes / sizeof(ElfW(Rela)); ++i) {
    const ElfW(Rela) & slot = linkage.slots[i];
    const std::string_view name = linkage.names + linkage.symbols[ELF64_R_SYM(slot.r_info)].st_name;
    if (ELF64_R_TYPE(slot.r_info) != R_X86_64_JUMP_SLOT) continue;
    if (name == "__register_frame" || name == "__deregister_frame") bind(map->l_addr + slot.r_offset, ignore_frames);
  }
#endif
}

}  // namespace torch_pjrt::pjrt
