#!/usr/bin/env bash
# Table A.4 of Peng (2022), sizes of random features: rows "cross *, causal *" above 64 of table-4.4.sh at scale paper.
exec "$(dirname "$0")/table-4.4.sh" --table A.4 "$@"
