// What the chunks and the steps of linear attention share.

#pragma once

#include "tile.h"

namespace seqstruct {

// Feature maps, as in seqstruct/ops/feature_maps.py.
enum Kind : Index { GIVEN = 0, ELU = 1, SINUSOIDS = 2, RELU = 3 };

// x, and 0 where it has lost digits.
template <class T>
T flushed(T x) {
  return std::fabs(x) < std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon() ? T(0) : x;
}

template <class T>
T inverse(T x) {
  return x == 0 ? T(0) : 1 / x;
}

}  // namespace seqstruct
