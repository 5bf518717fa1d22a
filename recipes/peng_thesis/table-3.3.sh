#!/usr/bin/env bash
# Table 3.3 of Peng (2022), unlabeled F1: trained with table 3.1; table-3.4.sh has the rows without training.
exec "$(dirname "$0")/table-3.1.sh" --table 3.3 "$@"
