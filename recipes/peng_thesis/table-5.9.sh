#!/usr/bin/env bash
# Table 5.9 of Peng (2022), memory sizes: rows "cross *, causal *" of at most 64 of table-4.4.sh at scale paper.
exec "$(dirname "$0")/table-4.4.sh" --table 5.9 "$@"
