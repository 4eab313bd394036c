# SPDX-License-Identifier: MIT
# $plans, $arrows, $published, $titles; n_panels, n_rows, n_across, any_published
array panel_title[n_panels]
do for [i = 1:n_panels] {
  set print $unused
  stats $titles every ::(i-1)::(i-1) using (panel_title[i] = strcol(2), 0) nooutput
}
do for [m = 1:4] {
  entry_text = method_name[m]
  entry_color = method_color[m]
  entry_mark = method_point[m]
  eval add_entry
}
entry_text = "what Kareus saves against Megatron-LM + Perseus"
entry_color = 0x444444
entry_mark = 0
eval add_entry
if (any_published) {
  entry_text = "published saving"
  entry_mark = 12
  eval add_entry
}
head = (entry_y + 14) / height
each = (1 - head) / n_rows
set multiplot
do for [p = 0:n_panels - 1] {
  column_number = p % n_across
  row_number = p / n_across
  set lmargin at screen column_number * 1.0 / n_across + 66.0 / width
  set rmargin at screen (column_number + 1) * 1.0 / n_across - 22.0 / width
  set tmargin at screen 1 - head - row_number * each - (n_panels > 1 ? 24.0 : 4.0) / height
  set bmargin at screen 1 - head - (row_number + 1) * each + 52.0 / height
  if (n_panels > 1) {
    set title panel_title[p + 1] offset 0,-0.6
  }
  if (p > 0) {
    eval drop_legend
  }
  set xlabel "iteration time (s)" offset 0,label_up
  set ylabel "energy of an iteration (kJ)" offset 1,0
  set xrange [*:*]
  set yrange [*:*]
  stats $plans using ($1 == p ? $3 : NaN):($1 == p ? $4 : NaN) nooutput
  dx = STATS_max_x - STATS_min_x
  dy = STATS_max_y - STATS_min_y
  dx = dx > 0 ? dx : 0.1 * STATS_max_x
  dy = dy > 0 ? dy : 0.1 * STATS_max_y
  set xrange [STATS_min_x - 0.06 * dx : STATS_max_x + 0.06 * dx]
  set yrange [STATS_min_y - 0.10 * dy : STATS_max_y + 0.08 * dy]
  set xtics autofreq nomirror
  set ytics autofreq nomirror
  plot for [m = 0:3] $plans using ($1 == p && $2 == m ? $3 : 1/0):4 with linespoints \
         linecolor rgb method_color[m + 1] pointtype method_point[m + 1] \
         pointsize (m == 0 ? 0.9 : 0.55) linewidth 1.6, \
       $arrows using ($1 == p ? $3 : 1/0):4:($5 - $3):($6 - $4) with vectors head filled size screen 0.012,20 \
         linecolor rgb "#444444" linewidth 1.4, \
       $arrows using ($1 == p && strcol(2) eq "iso-time" ? $3 : 1/0):4:7 with labels left offset 0.7,0.5 \
         textcolor rgb "#222222", \
       $arrows using ($1 == p && strcol(2) eq "iso-energy" ? $3 : 1/0):4:7 with labels center offset 0,1 \
         textcolor rgb "#222222", \
       $published using ($1 == p ? $2 : 1/0):3 with points pointtype 12 pointsize 0.88 linewidth 1.6 \
         linecolor rgb "#444444"
}
unset multiplot
