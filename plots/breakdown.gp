# SPDX-License-Identifier: MIT
# $parts, $names; longest_s, largest_j
array part_name[7]
do for [i = 1:7] {
  stats $names every ::(i-1)::(i-1) using (part_name[i] = strcol(2), 0) nooutput
}
array part_ink[7] = [0xFFFFFF, 0, 0, 0xFFFFFF, 0, 0, 0]
set multiplot
set style fill solid 1 border linecolor rgb "#ffffff"
set xrange [-0.6:3.6]
set xtics scale 0 ("Megatron-\nLM" 0, "M-LM +\nPerseus" 1, "Nanob. +\nPerseus" 2, "Kareus" 3)
set grid noxtics
set tmargin at screen 1 - 72.0 / height
set bmargin at screen 48.0 / height
entry_mark = 5
do for [k = 1:7] {
  entry_text = part_name[k]
  entry_color = kind_color[k]
  eval add_entry
}
do for [p = 0:1] {
  set lmargin at screen p * 0.5 + 66.0 / width
  set rmargin at screen (p + 1) * 0.5 - 14.0 / width
  top = p == 0 ? longest_s : largest_j
  set yrange [0:top * 1.05]
  set ylabel (p == 0 ? "time of a GPU (s)" : "energy of a GPU (J)") offset 1,0
  if (p == 1) {
    eval drop_legend
  }
  plot for [k = 0:6] $parts using ($1 == p && $3 == k && $4 > 0 ? $2 : 1/0):6:($2 - 0.38):($2 + 0.38):5:6 \
         with boxxyerror linecolor rgb kind_color[k + 1], \
       $parts using ($1 == p && $4 > 0.045 * top ? $2 : 1/0):(($5 + $6) / 2): \
         (p == 0 ? sprintf("%.2f", $4) : sprintf("%.0f", $4)):(part_ink[$3 + 1]) with labels \
         textcolor rgb variable
}
unset multiplot
