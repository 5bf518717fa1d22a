// Marginals of binary trees over labelled spans by inside and outside in scaled probability space, and their derivative
// along a direction, one sentence after another.
//
// As in seqstruct/ops/trees/constituency.py, but that spans may have several labels, and a row is exact only where what
// flows to the parts of a span, around it and its weight, is small as well.

#include "charts.h"

namespace seqstruct::LEVEL {
namespace {

constexpr Real GREATEST = 1e250;  // as in constituency.py
constexpr Index WORTH = 1 << 15;  // batch times words squared, and numbers of labels, from which threads are worth it

// Items, their weights and what is around them; sums over their parts; and FLOW, what is around the parts.
class Brackets : public Charts<5, 1, 3> {
 public:
  Brackets(Index most, bool tangent, Index labels)
      : Charts(most, tangent), most_(most), labels_(labels), wide_(padded(most * labels)),
        shares_(labels == 1 || tangent ? 0 : most * wide_) {}

  void begin(Index words) {
    Charts::begin(words);
    std::fill_n(row(ITEM, 0), N_, Real(1));
  }

  // Inside and outside; the log-partition, NaN where it is not exact.
  template <class T>
  Real pass(const T* scores) {
    if (N_ == 0) return 0;
    const Real of_words = set_spans(scores);
    const auto [scale, raised] = inside();
    const Real total = row(ITEM, N_ - 1)[0];
    bool exact = total > 0 && total < INFINITE && std::fabs(scale) <= LARGEST_POTENTIAL;
    outside(1 / total);
    const Real most = GREATEST * std::exp(-raised);
    for (Index w = 1; w < N_; ++w) exact &= in_range(w, most);
    return exact ? std::log(total) + scale * (N_ - 1) + of_words : std::numeric_limits<Real>::quiet_NaN();
  }

  template <class T>
  void put_marginals(T* to);
  // The derivative along a direction of what `pass` found.
  template <class T>
  void put_tangent(const T* direction, const T* known, T* to);

 private:
  enum { ITEM, WEIGHT, AROUND, HALVES, FLOW };

  // Those of a span, of log potentials [i, j, label] or their marginals.
  template <class T>
  T* at(T* first, Index i, Index j) const { return first + (i * most_ + j) * labels_; }
  template <class T>
  Real set_spans(const T* scores);
  std::pair<Real, Real> inside();
  void items(Index width);
  void outside(Index width, Real first);
  void outside(Real top);
  bool in_range(Index width, Real most);

  // The mean of a direction over the labels of a span, by their marginals.
  template <class T>
  Real mean(const T* direction, const T* known) const {
    if (labels_ == 1) return direction[0];
    Real sum = 0, all = 0;
    for (Index l = 0; l < labels_; ++l) sum += Real(known[l]) * Real(direction[l]), all += Real(known[l]);
    return all > 0 ? sum / all : 0;
  }

  Index most_, labels_, wide_;
  Buffer<Real> shares_;  // of the labels of each span, in rows by its left end
};

// The greatest log potential of each span to WEIGHT, and to FLOW the sum of its labels' weights beside that; the sum of
// the log potentials of words.
template <class T>
Real Brackets::set_spans(const T* scores) {
  Real of_words = 0;
  for (Index i = 0; i < N_; ++i) {
    if (labels_ == 1) {
      const T* from = at(scores, i, i);
      of_words += Real(from[0]) > -INFINITE ? Real(from[0]) : std::numeric_limits<Real>::quiet_NaN();
      for (Index w = 1; i + w < N_; ++w) row(WEIGHT, w)[i] = Real(from[w]), row(FLOW, w)[i] = 1;
      continue;
    }
    Real* all = shares_.get() + i * wide_;
    for (Index w = 0; i + w < N_; ++w) {
      Real *labels = all + w * labels_, most = LEAST;
      convert(labels_, at(scores, i, i + w), labels);
      for (Index l = 0; l < labels_; ++l) most = std::max(most, labels[l]);
      for (Index l = 0; l < labels_; ++l) labels[l] -= most;
      row(WEIGHT, w)[i] = most;
    }
    exponentials(((N_ - i) * labels_ + WIDTH<Real> - 1) / WIDTH<Real> * WIDTH<Real>, all);
    for (Index w = 0; i + w < N_; ++w) {
      Real *labels = all + w * labels_, sum = 0;
      for (Index l = 0; l < labels_; ++l) sum += labels[l];
      for (Index l = 0; l < labels_ && sum != 0; ++l) labels[l] /= sum;
      if (w) row(FLOW, w)[i] = sum;
      else of_words += sum != 0 ? row(WEIGHT, 0)[i] + std::log(sum) : std::numeric_limits<Real>::quiet_NaN();
    }
  }
  return of_words;
}

// Items and weights; what is taken from the log potential of every span, and by how much, in logarithms, items were
// raised at most that may have underflowed before.
std::pair<Real, Real> Brackets::inside() {
  Real scale = N_ > 1 ? greatest(N_ - 1, row(WEIGHT, 1)) : 0, raised = 0;
  if (scale <= LEAST || scale == INFINITE) scale = 0;
  for (Index w = 1, looked_at = 4; w < N_; ++w) {
    const Index count = N_ - w;
    Real *weight = row(WEIGHT, w), *sums = row(FLOW, w);
    for (Index i = 0; i < count; ++i) weight[i] -= scale;
    exponentials((count + WIDTH<Real> - 1) / WIDTH<Real> * WIDTH<Real>, weight);
    for (Index i = 0; i < count; ++i) weight[i] *= sums[i];
    items(w);
    if (w != looked_at) continue;
    looked_at *= 4;
    const Real growth = std::log(greatest(count, row(ITEM, w))) / w;
    if (!std::isfinite(growth)) continue;
    scale += growth, raised += std::max(-growth * w, Real(0));
    for (Index u = 1; u <= w; ++u)
      for (const auto& [chart, power] : {std::pair(ITEM, u), std::pair(HALVES, u - 1), std::pair(WEIGHT, Index(1))}) {
        const Real factor = std::exp(-growth * power);
        for (Index i = 0; i < N_ - u; ++i) row(chart, u)[i] *= factor;
      }
  }
  return {scale, raised};
}

// Items of one width, from those of smaller ones; in the second pass their derivatives.
void Brackets::items(Index w) {
  const Index count = N_ - w;
  Real *halves = begin_sum(HALVES, w), *item = result(ITEM, w);
  const Real *weight = row(WEIGHT, w), *known = row(ITEM, w), *direction = tangent_ ? change(WEIGHT, w) : nullptr;
  add(count, w, {ITEM, WIDER, 0, 0}, {ITEM, NARROWER, w - 1, 1}, halves);
  for (Index i = 0; i < count; ++i) item[i] = weight[i] * halves[i];
  for (Index i = 0; i < count && direction; ++i) item[i] += known[i] * direction[i];
}

// What is around the items, and around their parts, from the greatest width on; top: around the whole tree.
void Brackets::outside(Real top) {
  for (Index w = N_ - 1; w >= 1; --w) outside(w, w == N_ - 1 ? top : Real(0));
}

void Brackets::outside(Index w, Real first) {
  const Index count = N_ - w, wider = count - 1;
  Real *around = begin_sum(AROUND, w, first), *flow = result(FLOW, w);
  const Real *weight = row(WEIGHT, w), *known = row(AROUND, w), *direction = tangent_ ? change(WEIGHT, w) : nullptr;
  add(count, wider, {FLOW, WIDER, w + 1, 0}, {ITEM, WIDER, 0, w + 1}, around);
  add(count, wider, {FLOW, WIDER_LEFT, w + 1, -1}, {ITEM, WIDER_LEFT, 0, -1}, around);
  for (Index i = 0; i < count; ++i) flow[i] = weight[i] * around[i];
  for (Index i = 0; i < count && direction; ++i) flow[i] += weight[i] * known[i] * direction[i];
}

// most: of what is around items and their parts.
bool Brackets::in_range(Index w, Real most) {
  const Real *item = row(ITEM, w), *weight = row(WEIGHT, w), *around = row(AROUND, w), *halves = row(HALVES, w),
             *flow = row(FLOW, w);
  bool exact = true;
  for (Index i = 0; i < N_ - w; ++i)
    exact &= (item[i] <= GREATEST) & (weight[i] <= GREATEST) & (around[i] <= most) & (flow[i] <= most) &
             (around[i] * halves[i] <= most);
  return exact;
}

template <class T>
void Brackets::put_marginals(T* to) {
  for (Index i = 0; i < N_; ++i)
    for (Index w = 0; i + w < N_; ++w) {
      const Real whole = w ? row(AROUND, w)[i] * row(ITEM, w)[i] : 1;
      const Real* shares = shares_.get() + i * wide_ + w * labels_;
      T* found = at(to, i, i + w);
      if (labels_ == 1) found[0] = T(whole);
      else
        for (Index l = 0; l < labels_; ++l) found[l] = T(whole * shares[l]);
    }
}

// The direction is made such that the partition function does not change: then nothing cancels.
template <class T>
void Brackets::put_tangent(const T* direction, const T* known, T* to) {
  Real total = 0;
  for (Index i = 0; i < N_; ++i)
    for (Index w = 1; i + w < N_; ++w) {
      const Real here = mean(at(direction, i, i + w), at(known, i, i + w));
      change(WEIGHT, w)[i] = here;
      total += here * row(AROUND, w)[i] * row(ITEM, w)[i];
    }
  std::fill_n(change(ITEM, 0), N_, Real(0));
  for (Index w = 1; w < N_; ++w) {
    for (Index i = 0; i < N_ - w; ++i) change(WEIGHT, w)[i] -= total / (N_ - 1);
    for (Index i = 0; i < N_ - w; ++i) row(FLOW, w)[i] = row(AROUND, w)[i] * row(WEIGHT, w)[i];
    items(w);
  }
  outside(Real(0));
  for (Index i = 0; i < N_; ++i)
    for (Index w = 0; i + w < N_; ++w) {
      const T *along = at(direction, i, i + w), *marginals = at(known, i, i + w);
      T* found = at(to, i, i + w);
      const Real d_item = w ? change(ITEM, w)[i] : 0, d_around = w ? change(AROUND, w)[i] : 0;
      const Real whole = d_around * row(ITEM, w)[i] + row(AROUND, w)[i] * d_item;
      if (labels_ == 1) {
        found[0] = T(whole);
        continue;
      }
      const Real here = mean(along, marginals);
      Real all = 0;
      for (Index l = 0; l < labels_; ++l) all += Real(marginals[l]);
      for (Index l = 0; l < labels_ && all > 0; ++l)
        found[l] = T(Real(marginals[l]) * (whole / all + Real(along[l]) - here));
    }
}

// Of spans B n n labels.
Index words_of(const Tensor& spans, const Tensor& lengths) {
  expect("spans", spans, {ANY, ANY, ANY, ANY});
  expect("spans", spans, {spans.size(0), spans.size(1), spans.size(1), spans.size(3)});
  expect(spans.size(3) > 0, "one label or more");
  expect_lengths(lengths, spans.size(0), spans.size(1));
  return spans.size(1);
}

TreeResults marginals(const Tensor& spans, const Tensor& lengths, bool recorded) {
  const Index n = words_of(spans, lengths);
  return first_pass<Brackets>(spans, lengths, n, spans.numel() >= WORTH, recorded, spans.size(3));
}

Tensor marginals_backward(const Tensor& known, const Tensor& lengths, const Tensor& exact, const Tensor& kept,
                          const Tensor& direction) {
  const Index n = words_of(known, lengths), labels = known.size(3);
  expect("d_marginals", direction, {known.size(0), n, n, labels});
  return second_pass<Brackets>(known, lengths, exact, kept, direction, n, known.numel() >= WORTH, labels);
}

}  // namespace

OPERATORS(constituency){
    {"constituency_marginals(Tensor spans, Tensor lengths, bool recorded) -> (Tensor, Tensor, Tensor, Tensor)",
     TORCH_BOX(&marginals)},
    {"constituency_marginals_backward(Tensor marginals, Tensor lengths, Tensor exact, Tensor kept, "
     "Tensor d_marginals) -> Tensor",
     TORCH_BOX(&marginals_backward)},
    {}};

}  // namespace seqstruct::LEVEL
