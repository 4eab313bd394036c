#!/bin/sh
# SPDX-License-Identifier: MIT
# The README's figures, from shipped scenarios: meson compile -C build figures
# Arguments: the program, the source folder.
set -eu
nanojoule=$1
cd "$2"
mkdir -p plots/figures
"$nanojoule" plot scenarios/paper-frontier-llama-3.2-3b.ini frontier -o plots/figures/frontier.svg
"$nanojoule" plot scenarios/llama-3.2-3b-tp8.ini timeline --method kareus -o plots/figures/timeline.svg
"$nanojoule" plot scenarios/paper.ini tables -o plots/figures/tables.svg
