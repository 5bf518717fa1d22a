#!/usr/bin/env bash
# Figure 5.1 of Peng (2022), with bounded memory: its rows and measurements are those of figure-4.2.sh.
exec "$(dirname "$0")/figure-4.2.sh" --table figure-5.1 "$@"
