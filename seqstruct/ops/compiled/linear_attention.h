// What the chunks and the steps of linear attention share.

#pragma once

#include "operators.h"

namespace seqstruct::LEVEL {

// Feature maps, as in seqstruct/ops/memory/feature_maps.py.
enum Kind : Index { GIVEN = 0, ELU = 1, SINUSOIDS = 2, RELU = 3 };

// x, and 0 where it has lost digits.
template <class T>
T flushed(T x) {
  return std::fabs(x) < std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon() ? T(0) : x;
}

// 1/x, or 1/floor where x is below it; without a floor 0 where x is 0.
template <class T>
T inverse(T x, T floor) {
  return floor ? 1 / std::max(x, floor) : x == 0 ? T(0) : 1 / x;
}

}  // namespace seqstruct::LEVEL
