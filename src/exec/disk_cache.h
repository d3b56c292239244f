// Files that keep serialized programs between processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace torch_pjrt {

// A directory with one file an entry, named by its key. Any number of processes may use it at once: an entry appears
// whole, by renaming, and its checksum tells a damaged one. Not thread safe.
class DiskCache {
 public:
  struct Options {
    std::filesystem::path directory;  // made at the first store
    bool is_readonly = false;
    int64_t max_bytes = int64_t{1} << 30;
  };
  explicit DiskCache(Options options) : options_(std::move(options)) {}

  const Options& options() const { return options_; }

  // nullopt when there is none. A damaged entry is deleted and counts as none. Counts as a use of the entry.
  std::optional<std::string> load(const Hash128& key);
  // Keeps `program`, and drops the entries that were unused for longest while all together exceed max_bytes. A
  // readonly cache ignores it. Returns what went wrong, else an empty string.
  std::string store(const Hash128& key, std::string_view program);
  // Deletes an entry.
  void remove(const Hash128& key);

 private:
  std::filesystem::path path_of(const Hash128& key) const;
  void evict();

  Options options_;
  // Bytes in the directory when last looked, and what was stored since; nullopt before the first look.
  std::optional<int64_t> known_bytes_;
  int stores_since_look_ = 0;
};

}  // namespace torch_pjrt
