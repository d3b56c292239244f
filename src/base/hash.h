// A 128-bit structural hash. Collisions are treated as impossible: equal hashes mean equal programs.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>

namespace torch_pjrt {

struct Hash128 {
  uint64_t low = 0x9e3779b97f4a7c15ULL;
  uint64_t high = 0xc2b2ae3d27d4eb4fULL;

  bool operator==(const Hash128&) const = default;

  // Absorbs one word: two independent multiply-fold rounds (the folded product of wyhash).
  void mix(uint64_t word) {
    low = fold(low ^ word, 0xa0761d6478bd642fULL);
    high = fold(high ^ word, 0xe7037ed1a0b428dbULL) + low;
  }
  void mix(Hash128 other) {
    mix(other.low);
    mix(other.high);
  }
  void mix(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    mix(bits);
  }
  void mix(std::string_view text) {
    mix(static_cast<uint64_t>(text.size()));
    while (!text.empty()) {
      uint64_t word = 0;
      const size_t n = text.size() < 8 ? text.size() : 8;
      std::memcpy(&word, text.data(), n);
      mix(word);
      text.remove_prefix(n);
    }
  }
  void mix(int64_t word) { mix(static_cast<uint64_t>(word)); }
  void mix(int word) { mix(static_cast<uint64_t>(static_cast<int64_t>(word))); }
  void mix(bool word) { mix(static_cast<uint64_t>(word)); }
  template <typename Iterator>
  void mix_range(Iterator first, Iterator last) {
    mix(static_cast<uint64_t>(last - first));
    for (; first != last; ++first) mix(static_cast<uint64_t>(*first));
  }

 private:
  static uint64_t fold(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
};

}  // namespace torch_pjrt

template <>
struct std::hash<torch_pjrt::Hash128> {
  size_t operator()(const torch_pjrt::Hash128& hash) const noexcept { return hash.low ^ hash.high; }
};
