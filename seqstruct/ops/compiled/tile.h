// Small matrices in the first-level cache: products, transposes and functions of whole vectors, in float or double.
//
// A Matrix has rows padded to a multiple of PAD and a stride that is one too; the padding holds zeros wherever it could
// be read, so that the inner loops know no edges.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

namespace seqstruct::LEVEL {

using Index = std::int64_t;

#if defined(__AVX512F__)
constexpr int BYTES = 64;
constexpr int ROWS = 8;  // rows of a product that are accumulated in registers
#elif defined(__AVX__)
constexpr int BYTES = 32;
constexpr int ROWS = 4;
#else
constexpr int BYTES = 16;
constexpr int ROWS = 4;
#endif

constexpr Index PAD = 16;

constexpr Index padded(Index n) { return (n + PAD - 1) / PAD * PAD; }

template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(BYTES)));
  static constexpr int WIDTH = BYTES / sizeof(T);
};

template <class T>
using Vector = typename Lanes<T>::Vector;

template <class T>
constexpr int WIDTH = Lanes<T>::WIDTH;

template <class T>
inline Vector<T> load(const T* from) {
  Vector<T> x;
  std::memcpy(&x, from, BYTES);
  return x;
}

template <class T>
inline void store(T* to, Vector<T> x) {
  std::memcpy(to, &x, BYTES);
}

// The sum of N lanes, a power of 2: one half is added to the other.
template <class T, int N>
inline T sum_of(const void* lanes) {
  if constexpr (N == 1) {
    T x;
    std::memcpy(&x, lanes, sizeof(T));
    return x;
  } else {
    typedef T Half __attribute__((vector_size(N / 2 * sizeof(T))));
    Half low, high;
    std::memcpy(&low, lanes, sizeof(Half));
    std::memcpy(&high, static_cast<const char*>(lanes) + sizeof(Half), sizeof(Half));
    low += high;
    return sum_of<T, N / 2>(&low);
  }
}

template <class T>
inline T sum(Vector<T> x) {
  return sum_of<T, WIDTH<T>>(&x);
}

// Aligned memory, zero at first.
template <class T>
class Buffer {
 public:
  explicit Buffer(Index count) : count_(std::max<Index>(count, 1)) {
    const std::size_t bytes = (count_ * sizeof(T) + 63) / 64 * 64;
    data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
    if (!data_) throw std::bad_alloc();
    std::memset(data_, 0, bytes);
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() { return data_; }

 private:
  Index count_;
  T* data_;
};

// An operand that is read one number at a time: element (i, k) lies at data[i * row + k * column].
template <class T>
struct Left {
  const T* data;
  Index row, column;
};

template <class T>
inline Left<T> plain(const T* x, Index stride) { return {x, stride, 1}; }

template <class T>
inline Left<T> transposed(const T* x, Index stride) { return {x, 1, stride}; }

template <class T, int N>
inline void block(Index depth, Left<T> a, const T* b, Index b_stride, T* c, Index c_stride, bool add) {
  Vector<T> acc[ROWS][N];
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < N; ++j) acc[i][j] = add ? load(c + i * c_stride + j * WIDTH<T>) : Vector<T>{};
  for (Index k = 0; k < depth; ++k) {
    Vector<T> right[N];
    for (int j = 0; j < N; ++j) right[j] = load(b + k * b_stride + j * WIDTH<T>);
    for (int i = 0; i < ROWS; ++i) {
      const T left = a.data[i * a.row + k * a.column];
      for (int j = 0; j < N; ++j) acc[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < N; ++j) store(c + i * c_stride + j * WIDTH<T>, acc[i][j]);
}

// c = a b, or c += a b: `rows` a multiple of ROWS, `columns` of PAD.
template <class T>
inline void product(Index rows, Index columns, Index depth, Left<T> a, const T* b, Index b_stride, T* c, Index c_stride,
                    bool add) {
  constexpr Index two = 2 * WIDTH<T>;
  for (Index j = 0; j < columns;) {
    const bool pair = columns - j >= two;
    for (Index i = 0; i < rows; i += ROWS) {
      const Left<T> part{a.data + i * a.row, a.row, a.column};
      T* to = c + i * c_stride + j;
      if (pair) block<T, 2>(depth, part, b + j, b_stride, to, c_stride, add);
      else block<T, 1>(depth, part, b + j, b_stride, to, c_stride, add);
    }
    j += pair ? two : WIDTH<T>;
  }
}

// As `product`, of a square c whose part above the diagonal is not wanted.
template <class T>
inline void product_lower(Index rows, Index depth, Left<T> a, const T* b, Index b_stride, T* c, Index c_stride) {
  for (Index i = 0; i < rows; i += ROWS)
    product(ROWS, padded(i + ROWS), depth, {a.data + i * a.row, a.row, a.column}, b, b_stride, c + i * c_stride,
            c_stride, false);
}

// As `product`, for a square a that is zero above the diagonal.
template <class T>
inline void product_of_lower(Index rows, Index columns, Left<T> a, const T* b, Index b_stride, T* c, Index c_stride,
                             bool add) {
  for (Index i = 0; i < rows; i += ROWS)
    product(ROWS, columns, i + ROWS, {a.data + i * a.row, a.row, a.column}, b, b_stride, c + i * c_stride, c_stride,
            add);
}

// As `product`, for a square a that is zero below the diagonal.
template <class T>
inline void product_of_upper(Index rows, Index columns, Left<T> a, const T* b, Index b_stride, T* c, Index c_stride,
                             bool add) {
  for (Index i = 0; i < rows; i += ROWS)
    product(ROWS, columns, rows - i, {a.data + i * a.row + i * a.column, a.row, a.column}, b + i * b_stride, b_stride,
            c + i * c_stride, c_stride, add);
}

template <class T, std::size_t... I>
inline void interleave(Vector<T> a, Vector<T> b, Vector<T>& low, Vector<T>& high, std::index_sequence<I...>) {
  constexpr int half = WIDTH<T> / 2;
  low = __builtin_shufflevector(a, b, (I % 2 ? WIDTH<T> + I / 2 : I / 2)...);
  high = __builtin_shufflevector(a, b, (I % 2 ? WIDTH<T> + half + I / 2 : half + I / 2)...);
}

// to[j][i] = from[i][j]; rows and columns multiples of PAD.
template <class T>
inline void transpose(Index rows, Index columns, const T* from, Index from_stride, T* to, Index to_stride) {
  constexpr int width = WIDTH<T>;
  for (Index i = 0; i < rows; i += width)
    for (Index j = 0; j < columns; j += width) {
      Vector<T> a[width], b[width];
      for (int r = 0; r < width; ++r) a[r] = load(from + (i + r) * from_stride + j);
      for (int round = 1; round < width; round *= 2) {
        for (int r = 0; r < width / 2; ++r)
          interleave<T>(a[r], a[r + width / 2], b[2 * r], b[2 * r + 1], std::make_index_sequence<width>{});
        for (int r = 0; r < width; ++r) a[r] = b[r];
      }
      for (int r = 0; r < width; ++r) store(to + (j + r) * to_stride + i, a[r]);
    }
}

template <class T>
inline Vector<T> lanes() {
  T x[WIDTH<T>];
  for (int i = 0; i < WIDTH<T>; ++i) x[i] = T(i);
  return load(x);
}

// Zeros above the diagonal, as far as products of triangles read there.
template <class T>
inline void keep_triangle(Index rows, T* x, Index stride) {
  for (Index i = 0; i < rows; ++i)
    for (Index j = i / WIDTH<T> * WIDTH<T>; j <= i / ROWS * ROWS + ROWS - 1; j += WIDTH<T>) {
      T* at = x + i * stride + j;
      store(at, lanes<T>() <= T(i - j) ? load(at) : Vector<T>{});
    }
}

// Rows of a matrix in memory into padded ones, and back.
template <class T>
inline void take(Index rows, Index columns, const T* from, Index from_stride, T* to, Index to_stride, Index all_rows) {
  for (Index i = 0; i < rows; ++i) {
    std::memcpy(to + i * to_stride, from + i * from_stride, columns * sizeof(T));
    std::fill(to + i * to_stride + columns, to + (i + 1) * to_stride, T(0));
  }
  for (Index i = rows; i < all_rows; ++i) std::fill(to + i * to_stride, to + (i + 1) * to_stride, T(0));
}

template <class T>
inline void put(Index rows, Index columns, const T* from, Index from_stride, T* to, Index to_stride) {
  for (Index i = 0; i < rows; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, columns * sizeof(T));
}

// y += factor * x, x *= factor and the inner product: counts are multiples of WIDTH.
template <class T>
inline void add_scaled(Index count, T factor, const T* x, T* y) {
  for (Index j = 0; j < count; j += WIDTH<T>) store(y + j, load(y + j) + factor * load(x + j));
}

template <class T>
inline void scale(Index count, T factor, T* x) {
  for (Index j = 0; j < count; j += WIDTH<T>) store(x + j, factor * load(x + j));
}

template <class T>
inline T dot(Index count, const T* x, const T* y) {
  Vector<T> total{};
  for (Index j = 0; j < count; j += WIDTH<T>) total += load(x + j) * load(y + j);
  return sum<T>(total);
}

// `dot` of any count.
template <class T>
inline T inner(Index count, const T* x, const T* y) {
  const Index whole = count / WIDTH<T> * WIDTH<T>;
  T total = dot(whole, x, y);
  for (Index i = whole; i < count; ++i) total += x[i] * y[i];
  return total;
}

// Below, x[i] = f(x[i]) over whole vectors.

// exp; 0 below -87, NaN of NaN.
inline void exponentials(Index count, float* x) {
  typedef std::int32_t Integers __attribute__((vector_size(BYTES)));
  for (Index j = 0; j < count; j += WIDTH<float>) {
    const Vector<float> given = load(x + j), none{};
    Vector<float> v = given < -87.0f ? none - 87.0f : given;
    v = v > 88.0f ? none + 88.0f : v;
    // adding 1.5 * 2^23 rounds to a whole number, which then stands in the low bits
    const Vector<float> shifted = v * 1.44269504f + 12582912.0f;
    const Vector<float> whole = shifted - 12582912.0f;
    Vector<float> r = v - whole * 0.693359375f;
    r = r + whole * 2.12194440e-4f;
    Vector<float> p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    Integers power;
    std::memcpy(&power, &shifted, BYTES);
    power = (power - 0x4b400000 + 127) << 23;
    Vector<float> two;
    std::memcpy(&two, &power, BYTES);
    store(x + j, given < -87.0f ? none : p * two);
  }
}

// exp to its last digits; 0 below -708, NaN of NaN.
inline void exponentials(Index count, double* x) {
  typedef std::int64_t Integers __attribute__((vector_size(BYTES)));
  for (Index j = 0; j < count; j += WIDTH<double>) {
    const Vector<double> given = load(x + j), none{};
    Vector<double> v = given < -708.0 ? none - 708.0 : given;
    v = v > 709.0 ? none + 709.0 : v;
    const Vector<double> shifted = v * 1.4426950408889634 + 6755399441055744.0;
    const Vector<double> whole = shifted - 6755399441055744.0;
    Vector<double> r = v - whole * 6.93145751953125e-1;  // ln 2 in two parts, the first exact when multiplied
    r = r - whole * 1.42860682030941723212e-6;
    Vector<double> p = none + 1.0 / 6227020800.0;
    for (const double n : {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0})
      p = p * r + 1.0 / n;
    p = 1.0 + (r + p * r * r);
    Integers power;
    std::memcpy(&power, &shifted, BYTES);
    power = (power - 0x4338000000000000 + 1023) << 52;
    Vector<double> two;
    std::memcpy(&two, &power, BYTES);
    store(x + j, given < -708.0 ? none : p * two);
  }
}

// sine[i], cosine[i] of x[i].
inline void sinusoids(Index count, const float* x, float* sine, float* cosine) {
  typedef std::int32_t Integers __attribute__((vector_size(BYTES)));
  for (Index j = 0; j < count; j += WIDTH<float>) {
    const Vector<float> v = load(x + j);
    bool large = false;
    for (int i = 0; i < WIDTH<float>; ++i) large |= !(std::fabs(x[j + i]) < 8192.0f);
    if (large) {
      for (int i = 0; i < WIDTH<float>; ++i) sine[j + i] = std::sin(x[j + i]), cosine[j + i] = std::cos(x[j + i]);
      continue;
    }
    const Vector<float> shifted = v * 0.636619772f + 12582912.0f;
    const Vector<float> whole = shifted - 12582912.0f;
    Integers quadrant;
    std::memcpy(&quadrant, &shifted, BYTES);
    // pi/2 in three parts, the first two exact when multiplied
    Vector<float> r = v - whole * 1.5703125f;
    r = r - whole * 4.837512969970703125e-4f;
    r = r - whole * 7.549789954891882e-8f;
    const Vector<float> z = r * r;
    const Vector<float> s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
    const Vector<float> c =
        ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
    const Integers odd = (quadrant & 1) != 0;
    const Vector<float> first = odd ? c : s, second = odd ? s : c;
    store(sine + j, (quadrant & 2) != 0 ? -first : first);
    store(cosine + j, ((quadrant + 1) & 2) != 0 ? -second : second);
  }
}

inline void sinusoids(Index count, const double* x, double* sine, double* cosine) {
  for (Index j = 0; j < count; ++j) sine[j] = std::sin(x[j]), cosine[j] = std::cos(x[j]);
}

}  // namespace seqstruct::LEVEL
