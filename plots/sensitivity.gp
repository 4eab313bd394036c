# SPDX-License-Identifier: MIT
# $moves, $constants; n_shown, span, base_iso_time, base_iso_energy
array constant_name[n_shown]
do for [i = 1:n_shown] {
  stats $constants every ::(i-1)::(i-1) using (constant_name[i] = strcol(2), 0) nooutput
}
set multiplot
entry_mark = 5
entry_text = "constant 10 % lower"
entry_color = blue
eval add_entry
entry_text = "constant 10 % higher"
entry_color = orange
eval add_entry
if (any_bounded) {
  entry_text = "* 10 % or as far as it may go"
  entry_color = 0xffffff
  eval add_entry
}
set tmargin at screen 1 - 66.0 / height
set bmargin at screen 82.0 / height
set yrange [-n_shown + 0.4:0.6]
set xrange [-span * 1.1:span * 1.1]
set style fill solid 1 noborder
set border 1
names = 200.0 / width
each = (1 - names - 10.0 / width) / 2
do for [p = 0:1] {
  set lmargin at screen names + p * each
  set rmargin at screen names + (p + 1) * each - 14.0 / width
  set xlabel sprintf("%s of %.1f %%:\nchange (percentage points)", \
    p == 0 ? "iso-time energy reduction" : "iso-energy time reduction", \
    p == 0 ? base_iso_time : base_iso_energy) offset 0,label_up
  if (p == 0) {
    set ytics scale 0 ()
    do for [i = 1:n_shown] {
      set ytics add (constant_name[i] 1 - i)
    }
  } else {
    set ytics scale 0 ("" 0)
    eval drop_legend
  }
  plot $moves using ($1 == p ? $3 / 2 : 1/0):(-$2):(0):3:(-$2):(-$2 + 0.36) with boxxyerror \
         linecolor rgb blue, \
       $moves using ($1 == p ? $4 / 2 : 1/0):(-$2):(0):4:(-$2 - 0.36):(-$2) with boxxyerror \
         linecolor rgb orange
}
unset multiplot
