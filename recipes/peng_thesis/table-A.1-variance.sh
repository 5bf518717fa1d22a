#!/usr/bin/env bash
# Appendix A.1 of Peng (2022): the variance of equation A.1, and unit norm against equation 4.10 (table A.1-unit-norm).
# Rows "z = ..." hold the variance of phi(x) . phi(y) over draws of 64 frequencies, at |x - y| / sigma = z, beside what
# the equation gives.  The other rows hold how far random feature attention with 64 or 1,024 frequencies is from the
# attention that it estimates, the median over outputs in units of the exact outputs' root mean square, for normal
# queries and keys of size 64: scaled to norm 1, with sigma 1 or 2, or as they are, with the factors of equation 4.10
# and sigma 64^-1/4, as in scaled dot-product attention.  Where the kernel is far below 1, as there, the noise of
# 1/sqrt(2 D) hides it.  Seeds draw other numbers.
paper=peng_thesis table=A.1-variance family="random features alone" licence="none needed, inputs are random"
ways=("unit norm, sigma 1" "unit norm, sigma 2" "equation 4.10")
rows=("z = "{0.5,1,1.5,2,3}) baselines=()
for way in "${ways[@]}"; do rows+=("$way, "{64,1024}" frequencies") baselines+=("$way, mean of the values"); done
smoke_rows=("z = 1" "unit norm, sigma 1, 64 frequencies") smoke_baselines=("unit norm, sigma 1, mean of the values")
seeds_small=3 seeds_paper=3

cell() {
    minutes=0.1 disk=0.1
    case "$scale" in smoke) draws=200 ;; small) draws=20000 ;; paper) draws=200000 minutes=0.5 ;; esac
    dataset="$draws draws"
    [[ "$row" == z* ]] || table=A.1-unit-norm dataset="200 normal keys and queries"
    python -m seqstruct.benchmarks.random_features "$row" --draws "$draws" --seed "$seed" --out "$out/found.json"
    record found.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
