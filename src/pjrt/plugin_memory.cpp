#include "pjrt/plugin_memory.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace torch_pjrt::pjrt {
namespace {

// --- What the plugin calls -----------------------------------------------------------------------------------------

bool is_large(size_t alignment, size_t size) {
  return size >= LargeBlocks::kSmallest && alignment <= LargeBlocks::kAlignment;
}

// The C library hands out few blocks that begin at a page, so nearly every call of free ends here.
bool may_be_large(const void* pointer) {
  return pointer != nullptr && reinterpret_cast<uintptr_t>(pointer) % LargeBlocks::kAlignment == 0;
}

int plugin_posix_memalign(void** result, size_t alignment, size_t size) noexcept {
  if (!is_large(alignment, size)) return posix_memalign(result, alignment, size);
  void* block = plugin_blocks().allocate(size);
  if (block == nullptr) return ENOMEM;
  *result = block;
  return 0;
}

void* plugin_aligned_alloc(size_t alignment, size_t size) noexcept {
  return is_large(alignment, size) ? plugin_blocks().allocate(size) : aligned_alloc(alignment, size);
}

void plugin_free(void* pointer) noexcept {
  if (!may_be_large(pointer) || !plugin_blocks().free(pointer)) free(pointer);
}

void* plugin_realloc(void* pointer, size_t size) noexcept {
  const size_t old_size = may_be_large(pointer) ? plugin_blocks().usable_size(pointer) : 0;
  if (old_size == 0) return realloc(pointer, size);
  void* result = malloc(size);
  if (result == nullptr) return nullptr;
  std::memcpy(result, pointer, std::min(old_size, size));
  plugin_blocks().free(pointer);
  return result;
}

struct Replacement {
  std::string_view name;
  void* original;
  void* function;
  bool makes_blocks;
};

template <typename Function>
Replacement replace(std::string_view name, Function* original, Function* function, bool makes_blocks) {
  return {name, reinterpret_cast<void*>(original), reinterpret_cast<void*>(function), makes_blocks};
}

// --- The table of imported functions -------------------------------------------------------------------------------

#if defined(__linux__) && defined(__LP64__)

// A part of the dynamic section: its entries, and how many bytes they take.
struct Relocations {
  const Elf64_Rela* first = nullptr;
  size_t size_bytes = 0;
};

struct Imports {
  uintptr_t base = 0;
  const Elf64_Sym* symbols = nullptr;
  const char* names = nullptr;
  std::array<Relocations, 2> relocations;  // of calls, and of data
};

Imports imports_of(const link_map& library) {
  Imports imports;
  imports.base = library.l_addr;
  for (const Elf64_Dyn* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto* address = reinterpret_cast<const void*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) imports.symbols = static_cast<const Elf64_Sym*>(address);
    if (entry->d_tag == DT_STRTAB) imports.names = static_cast<const char*>(address);
    if (entry->d_tag == DT_JMPREL) imports.relocations[0].first = static_cast<const Elf64_Rela*>(address);
    if (entry->d_tag == DT_PLTRELSZ) imports.relocations[0].size_bytes = entry->d_un.d_val;
    if (entry->d_tag == DT_RELA) imports.relocations[1].first = static_cast<const Elf64_Rela*>(address);
    if (entry->d_tag == DT_RELASZ) imports.relocations[1].size_bytes = entry->d_un.d_val;
  }
  return imports;
}

// Where the loader has put the addresses of the functions to replace.
struct Place {
  void** address;
  const Replacement* replacement;
};

// None when one of them is not what this library calls by that name: a block must not have two owners.
std::vector<Place> places_in(const Imports& imports) {
  static const std::array replacements{
      replace("free", free, plugin_free, false),
      replace("realloc", realloc, plugin_realloc, false),
      replace("posix_memalign", posix_memalign, plugin_posix_memalign, true),
      replace("aligned_alloc", aligned_alloc, plugin_aligned_alloc, true),
  };
  std::vector<Place> places;
  for (const auto& [first, size_bytes] : imports.relocations) {
    for (size_t i = 0; i < size_bytes / sizeof(Elf64_Rela); ++i) {
      const auto symbol = ELF64_R_SYM(first[i].r_info);
      if (symbol == 0) continue;
      const std::string_view name = imports.names + imports.symbols[symbol].st_name;
      for (const Replacement& replacement : replacements) {
        if (name != replacement.name) continue;
        auto** address = reinterpret_cast<void**>(imports.base + first[i].r_offset);
        if (*address != replacement.original) return {};
        places.push_back({address, &replacement});
      }
    }
  }
  return places;
}

// The loader may have made the page read-only. It stays writable, as the next one that it shares a page with may be.
bool make_writable(void** place) {
  const auto page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(place) / page_size * page_size);
  return mprotect(page, page_size, PROT_READ | PROT_WRITE) == 0;
}

bool replace_imports(const std::string& library_path) {
  void* library = dlopen(library_path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  link_map* map = nullptr;
  if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return false;
  const Imports imports = imports_of(*map);
  if (imports.symbols == nullptr || imports.names == nullptr) return false;

  const std::vector<Place> places = places_in(imports);
  for (const Place& place : places) {
    if (!make_writable(place.address)) return false;
  }
  // Those that free come first: a block of ours must never reach the C library.
  for (const bool makes_blocks : {false, true}) {
    for (const auto& [address, replacement] : places) {
      if (replacement->makes_blocks == makes_blocks) __atomic_store_n(address, replacement->function, __ATOMIC_RELEASE);
    }
  }
  return !places.empty();
}

#else

bool replace_imports(const std::string&) { return false; }

#endif

}  // namespace

LargeBlocks& plugin_blocks() {
  // Leaked: a plugin frees blocks while static objects are destroyed.
  static auto& blocks = []() -> LargeBlocks& {
    pthread_atfork([] { plugin_blocks().lock(); }, [] { plugin_blocks().unlock(); }, [] { plugin_blocks().unlock(); });
    return *new LargeBlocks;
  }();
  return blocks;
}

bool use_plugin_blocks(const Plugin& plugin) {
  plugin_blocks();
  return replace_imports(plugin.library_path());
}

}  // namespace torch_pjrt::pjrt
