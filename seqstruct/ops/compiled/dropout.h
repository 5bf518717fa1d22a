// What dropout keeps: a function of a seed and of a number's place, so that no mask is stored and threads may share.
//
// The bits are Threefry's, four words of 32 bits and 12 rounds (Salmon et al. 2011, "Parallel random numbers: as easy
// as 1, 2, 3"), the fewest with which it passes every test that they ran.  Additions and rotations alone, which all
// processors have for vectors.

#pragma once

#include "tile.h"

namespace seqstruct::LEVEL {

constexpr Index SPREAD = 16;         // blocks of Threefry side by side
constexpr Index GROUP = 4 * SPREAD;  // numbers that are drawn together, on every processor as many

typedef std::uint32_t Words __attribute__((vector_size(4 * SPREAD)));

// word[w][i], i below SPREAD: word w of block SPREAD * group + i.
inline void draw(std::uint64_t seed, std::uint64_t group, Words word[4]) {
  constexpr int BY[8][2] = {{10, 26}, {11, 21}, {13, 27}, {23, 5}, {6, 20}, {17, 11}, {25, 10}, {18, 20}};
  const std::uint32_t low = std::uint32_t(seed), high = std::uint32_t(seed >> 32);
  const std::uint32_t keys[5] = {low, high, 0, 0, 0x1BD11BDA ^ low ^ high};
  const std::uint64_t first = group * SPREAD;
  Words x[4] = {Words{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + (std::uint32_t(first) + keys[0]),
                Words{} + (std::uint32_t(first >> 32) + keys[1]), Words{} + keys[2], Words{} + keys[3]};
#pragma GCC unroll 12
  for (int round = 0; round < 12; ++round) {
#pragma GCC unroll 2
    for (int w = 0; w < 4; w += 2) {
      const int partner = (w + (round % 2 ? 3 : 1)) % 4, by = BY[round % 8][w / 2];
      x[w] += x[partner];
      x[partner] = (x[partner] << by | x[partner] >> (32 - by)) ^ x[w];
    }
    if (round % 4 == 3) {
      const int injection = round / 4 + 1;
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) x[w] += keys[(injection + w) % 5] + (w == 3 ? injection : 0);
    }
  }
#pragma GCC unroll 4
  for (int w = 0; w < 4; ++w) word[w] = x[w];
}

// Dropout of a share of numbers: what is kept is multiplied by 1 / (1 - share).
class Dropout {
 public:
  Dropout(double share, std::uint64_t seed)
      : seed_(seed), least_(std::uint32_t(share * 4294967296.0)), factor_(1 / (1 - share)) {}

  // to[i]: the factor of number first + i, zero where it is dropped; there is room for `room(count)`.
  template <class T>
  T* factors(Index first, Index count, T* to) const {
    const Index before = first % GROUP;
    for (Index done = 0; done < before + count; done += GROUP) group((first + done) / GROUP, to + done);
    return to + before;
  }

  static Index room(Index count) { return padded(count) + 2 * GROUP; }

 private:
  template <class T>
  void group(std::uint64_t which, T* to) const {
    typedef T Lanes __attribute__((vector_size(SPREAD * sizeof(T))));
    Words word[4];
    draw(seed_, which, word);
    for (int w = 0; w < 4; ++w) {
      const Lanes found = __builtin_convertvector((word[w] >= least_) & 1, Lanes) * T(factor_);
      std::memcpy(to + w * SPREAD, &found, sizeof(found));
    }
  }

  std::uint64_t seed_;
  std::uint32_t least_;
  double factor_;
};

}  // namespace seqstruct::LEVEL
