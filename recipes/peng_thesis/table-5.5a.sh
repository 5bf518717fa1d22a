#!/usr/bin/env bash
# Table 5.5a of Peng (2022), WMT14 en-de with bounded memory: rows BASE, ABC-*, Linformer * of table-4.4.sh at scale paper.
exec "$(dirname "$0")/table-4.4.sh" --table 5.5a "$@"
