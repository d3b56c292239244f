#include "exec/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace torch_pjrt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".program";
constexpr const char* kTemporaryPrefix = ".writing-";
constexpr uint64_t kMagic = 0x31'30'47'52'50'50'54'2e;  // ".TPPRG01", little-endian

// In front of each program.
struct Header {
  uint64_t magic = kMagic;
  uint64_t size_bytes = 0;
  uint64_t key[2] = {};
  uint64_t checksum[2] = {};
  bool operator==(const Header&) const = default;
};

Header make_header(const Hash128& key, std::string_view program) {
  Hash128 checksum;
  checksum.mix(program);
  return {kMagic, program.size(), {key.low, key.high}, {checksum.low, checksum.high}};
}

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<std::string> unwrap(const Hash128& key, std::string&& contents) {
  Header header;
  if (contents.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, contents.data(), sizeof header);
  contents.erase(0, sizeof header);
  if (header != make_header(key, contents)) return std::nullopt;
  return std::move(contents);
}

std::string last_error(const char* action, const fs::path& path) {
  return concat(action, " ", path.native(), ": ", std::strerror(errno));
}

// A name that no other writer has.
fs::path temporary_path(const fs::path& directory) {
  static std::atomic<unsigned> next{0};
  return directory / concat(kTemporaryPrefix, getpid(), "-", next++);
}

std::string write_file(const fs::path& path, const Header& header, std::string_view program) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  file.write(program.data(), static_cast<std::streamsize>(program.size()));
  file.close();
  return file ? "" : last_error("writing", path);
}

struct Entry {
  fs::path path;
  int64_t size_bytes;
  fs::file_time_type used;
};

// Writers that died leave their temporary files; an hour later nobody is writing one any more.
void remove_stale(const fs::directory_entry& file) {
  std::error_code error;
  const auto age = fs::file_time_type::clock::now() - file.last_write_time(error);
  if (!error && age > std::chrono::hours(1)) fs::remove(file.path(), error);
}

std::vector<Entry> list_entries(const fs::path& directory) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().native();
    if (name.starts_with(kTemporaryPrefix)) remove_stale(*it);
    if (!name.ends_with(kSuffix)) continue;
    // Another process may delete it meanwhile.
    std::error_code gone;
    const auto size = it->file_size(gone);
    if (gone) continue;
    const auto used = it->last_write_time(gone);
    if (!gone) entries.push_back({it->path(), static_cast<int64_t>(size), used});
  }
  return entries;
}

}  // namespace

fs::path DiskCache::path_of(const Hash128& key) const {
  char name[33];
  std::snprintf(name, sizeof name, "%016llx%016llx", static_cast<unsigned long long>(key.high),
                static_cast<unsigned long long>(key.low));
  return options_.directory / (std::string(name) + kSuffix);
}

std::optional<std::string> DiskCache::load(const Hash128& key) {
  const fs::path path = path_of(key);
  std::optional<std::string> contents = read_file(path);
  if (!contents) return std::nullopt;
  std::optional<std::string> program = unwrap(key, std::move(*contents));
  if (options_.is_readonly) return program;
  if (program) {
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  } else {
    remove(key);
  }
  return program;
}

std::string DiskCache::store(const Hash128& key, std::string_view program) {
  const auto size = static_cast<int64_t>(sizeof(Header) + program.size());
  if (options_.is_readonly || size > options_.max_bytes) return "";
  std::error_code error;
  fs::create_directories(options_.directory, error);
  if (error) return concat("making the directory ", options_.directory.native(), ": ", error.message());
  const fs::path temporary = temporary_path(options_.directory);
  std::string failure = write_file(temporary, make_header(key, program), program);
  if (failure.empty() && std::rename(temporary.c_str(), path_of(key).c_str()) != 0) {
    failure = last_error("renaming", temporary);
  }
  if (!failure.empty()) {
    fs::remove(temporary, error);
    return failure;
  }
  if (known_bytes_) *known_bytes_ += size;
  // Other processes store too, so the sum is taken anew now and then.
  constexpr int kStoresBetweenLooks = 64;
  if (!known_bytes_ || *known_bytes_ > options_.max_bytes || ++stores_since_look_ >= kStoresBetweenLooks) evict();
  return "";
}

void DiskCache::remove(const Hash128& key) {
  std::error_code error;
  if (!options_.is_readonly) fs::remove(path_of(key), error);
}

void DiskCache::evict() {
  std::vector<Entry> entries = list_entries(options_.directory);
  int64_t total = 0;
  for (const Entry& entry : entries) total += entry.size_bytes;
  if (total > options_.max_bytes) {
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
    // Some room, so that not every store has to look.
    const int64_t wanted = options_.max_bytes - options_.max_bytes / 8;
    for (const Entry& entry : entries) {
      if (total <= wanted) break;
      std::error_code error;
      fs::remove(entry.path, error);
      total -= entry.size_bytes;
    }
  }
  known_bytes_ = total;
  stores_since_look_ = 0;
}

}  // namespace torch_pjrt
