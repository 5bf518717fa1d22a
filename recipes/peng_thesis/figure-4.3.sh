#!/usr/bin/env bash
# Figure 4.3 of Peng (2022), decoding without a source: its rows and measurements are those of figure-4.2.sh.
exec "$(dirname "$0")/figure-4.2.sh" --table figure-4.3 "$@"
