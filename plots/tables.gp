# SPDX-License-Identifier: MIT
# $cells, $rows, $metrics; n_panels, n_rows
array metric_name[n_panels]
do for [i = 1:n_panels] {
  stats $metrics every ::(i-1)::(i-1) using (metric_name[i] = strcol(2), 0) nooutput
}
names = 322.0 / width
each = (1 - names - 12.0 / width) / n_panels
array row_name[n_rows]
do for [i = 1:n_rows] {
  stats $rows every ::(i-1)::(i-1) using (row_name[i] = strcol(2), 0) nooutput
}
set multiplot
entry_text = "published"
entry_color = black
entry_mark = 6
eval add_entry
entry_text = "simulated"
entry_color = red
entry_mark = 7
eval add_entry
entry_text = "the authors' second run"
entry_color = 0x666666
entry_mark = 2
eval add_entry
set tmargin at screen 1 - 92.0 / height
set bmargin at screen 46.0 / height
set xtics 10
set border 1
do for [p = 0:n_panels - 1] {
  set lmargin at screen names + p * each
  set rmargin at screen names + (p + 1) * each - 14.0 / width
  set title metric_name[p + 1] offset 0,-0.7
  set xlabel "reduction (%)" offset 0,label_up
  set xrange [*:*]
  set yrange [*:*]
  stats $cells using ($1 == p ? $3 : NaN) nooutput
  low = STATS_min
  high = STATS_max
  stats $cells using ($1 == p ? $4 : NaN) nooutput
  low = STATS_min < low ? STATS_min : low
  high = STATS_max > high ? STATS_max : high
  set xrange [low - 3:high + 3]
  set yrange [-n_rows + 0.4:0.6]
  if (p == 0) {
    set ytics scale 0 ()
    do for [i = 1:n_rows] {
      set ytics add (row_name[i] 1 - i)
    }
  } else {
    set ytics scale 0 ("" 0)
    eval drop_legend
  }
  plot $cells using ($1 == p ? $4 : 1/0):(-$2):($3 - $4):(0) with vectors nohead linecolor rgb "#999999" \
         linewidth 2, \
       $cells using ($1 == p ? $5 : 1/0):(-$2) with points pointtype 2 pointsize 0.54 linewidth 1.6 \
         linecolor rgb "#666666", \
       $cells using ($1 == p ? $4 : 1/0):(-$2) with points pointtype 6 pointsize 0.61 linewidth 1.8 \
         linecolor rgb black, \
       $cells using ($1 == p ? $3 : 1/0):(-$2) with points pointtype 7 pointsize 0.54 \
         linecolor rgb red, \
       $cells using ($1 == p && $6 == 1 ? low - 2 : 1/0):(-$2):("none published") with labels left \
         textcolor rgb "#777777", \
       $cells using ($1 == p && $7 == 1 ? $4 + 1.5 : 1/0):(-$2):("none simulated") \
         with labels left textcolor rgb "#777777"
}
unset multiplot
