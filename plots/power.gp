# SPDX-License-Identifier: MIT
# $power, $averages; n_shown, duration_s, limit_w, top_w, clock_low, clock_high
array stage_of[n_shown]
array average[n_shown]
do for [i = 1:n_shown] {
  stats $averages every ::(i-1)::(i-1) using (stage_of[i] = $1, average[i] = $2, 0) nooutput
}
array stage_color[8] = [blue, orange, green, pink, sky, red, black, gray]
set multiplot
set lmargin at screen 80.0 / width
set rmargin at screen 1 - 20.0 / width
set xrange [0:duration_s]
entry_text = "mean over 1/480 of the time"
entry_color = stage_color[1]
entry_mark = 0
eval add_entry
entry_text = "highest in it"
entry_color = 0xb0b0b0
eval add_entry
entry_text = "average"
entry_color = black
entry_dash = 2
eval add_entry
entry_text = "limit"
entry_color = red
entry_dash = 4
eval add_entry
each = 150.0 / height
head = 58.0 / height
do for [i = 1:n_shown] {
  set tmargin at screen 1 - head - (i - 1) * each
  set bmargin at screen 1 - head - i * each + 14.0 / height
  set format x ""
  set yrange [0:top_w]
  set ytics 100
  set ylabel sprintf("stage %d power (W)", stage_of[i]) offset 1,0
  plot $power using ($1 == stage_of[i] ? $2 : 1/0):4 with steps linecolor rgb "#b0b0b0" linewidth 1, \
       $power using ($1 == stage_of[i] ? $2 : 1/0):3 with steps linecolor rgb stage_color[i] linewidth 1.4, \
       average[i] with lines linecolor rgb "#000000" linewidth 1.4 dashtype 2, \
       limit_w with lines linecolor rgb red linewidth 1.4 dashtype 4
  eval drop_legend
}
set tmargin at screen 1 - head - n_shown * each - 4.0 / height
set bmargin at screen 50.0 / height
set format x "%g"
set xlabel "time (s)" offset 0,label_up
set ylabel "clock (MHz)" offset 1,0
set yrange [clock_low - 60:clock_high + 60]
set ytics 250
plot for [i = 1:n_shown] $power using ($1 == stage_of[i] ? $2 : 1/0):5 with steps \
  linecolor rgb stage_color[i] linewidth 1.4
unset multiplot
