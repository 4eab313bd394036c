# SPDX-License-Identifier: MIT
# Stages: $blocks, $waiting; n_stages, duration_s, power_low, power_high. Zoomed: $spans; from_ms, to_ms, sm_count.
if (!zoomed) {
  low(s, kind) = -s - (kind eq "F" ? 0.28 : 0.40)
  high(s, kind) = -s + (kind eq "F" ? 0.28 : 0.40)
  set lmargin at screen 70.0 / width
  set rmargin at screen 1 - 84.0 / width
  set tmargin at screen 1 - 66.0 / height
  set bmargin at screen 50.0 / height
  set xrange [0:duration_s * 1.004]
  set yrange [-n_stages + 0.45:0.55]
  set xlabel "time (s)" offset 0,label_up
  set ytics scale 0 ()
  do for [s = 0:n_stages - 1] {
    set ytics add (sprintf("stage %d", s) -s)
  }
  unset grid
  set cbrange [power_low:power_high]
  set cblabel "average power (W)" offset label_right,0
  set cbtics scale 0.3
  set colorbox user origin screen 1 - 76.0 / width, screen 50.0 / height \
    size screen 14.0 / width, screen 1 - 116.0 / height
  entry_text = "waiting"
  entry_color = 0xaaaaaa
  entry_mark = -1
  eval add_entry
  entry_text = "critical path"
  entry_color = red
  entry_mark = 0
  eval add_entry
  entry_text = "low: forward, tall: backward; numbers: microbatch"
  entry_color = 0x707173
  entry_mark = 5
  eval add_entry
  plot $waiting using (($2 + $3) / 2):(-$1):2:3:(-$1 - 0.4):(-$1 + 0.4) with boxxyerror \
         linecolor rgb "#aaaaaa" fillstyle pattern 4 noborder, \
       $blocks using (($2 + $3) / 2):(-$1):2:3:(low($1, strcol(4))):(high($1, strcol(4))):6 with boxxyerror \
         fillstyle solid 1 noborder linecolor palette, \
       $blocks using (($2 + $3) / 2):(-$1):2:3:(low($1, strcol(4))):(high($1, strcol(4))) with boxxyerror \
         linecolor rgb "#ffffff" linewidth 0.8 fillstyle empty, \
       $blocks using ($7 == 1 ? ($2 + $3) / 2 : 1/0):(-$1):2:3:(low($1, strcol(4))):(high($1, strcol(4))) \
         with boxxyerror linecolor rgb red linewidth 2.2 fillstyle empty, \
       $blocks using (($2 + $3) / 2):(-$1):8:(on_palette($9)) with labels textcolor rgb variable
} else {
  entry_text = "host dispatch"
  entry_color = gray
  entry_mark = 5
  eval add_entry
  do for [k = 1:4] {
    entry_text = kind_name[k]
    entry_color = kind_color[k]
    eval add_entry
  }
  set multiplot
  set lmargin at screen 122.0 / width
  set rmargin at screen 1 - 20.0 / width
  set tmargin at screen 1 - 60.0 / height
  set bmargin at screen 160.0 / height
  set xrange [from_ms:to_ms]
  set yrange [-3.0:0.3]
  set format x ""
  set ytics scale 0 ("host" 0, "compute" -1.1, "communication" -2.45)
  unset grid
  set style fill solid 1 border linecolor rgb "#ffffff"
  # Labels by their background: dark text on light colours.
  ink(kind) = kind == 0 || kind == 3 ? 0xFFFFFF : 0x000000
  middle(row) = row == 0 ? 0 : row == 1 ? -1.1 : -2.45
  half(row) = row == 0 ? 0.2 : row == 1 ? 0.78 : 0.45
  plot $spans using ($1 == 0 ? ($2 + $3) / 2 : 1/0):(0):2:3:(-half(0)):(half(0)) with boxxyerror \
         linecolor rgb "#999999", \
       for [k = 0:3] $spans using ($1 > 0 && $4 == k ? ($2 + $3) / 2 : 1/0):(middle($1)):2:3: \
         (middle($1) - half($1)):(middle($1) + half($1)) with boxxyerror linecolor rgb kind_color[k + 1], \
       $spans using ($1 > 0 && $8 == 0 ? ($2 + $3) / 2 : 1/0):(middle($1)):7:(ink($4)) with labels \
         textcolor rgb variable, \
       $spans using ($1 > 0 && $8 == 90 ? ($2 + $3) / 2 : 1/0):(middle($1)):7:(ink($4)) with labels rotate by 90 \
         textcolor rgb variable
  eval drop_legend
  set tmargin at screen 140.0 / height
  set bmargin at screen 50.0 / height
  set format x "%g"
  set xlabel "time since the instruction began (ms)" offset 0,label_up
  set ylabel sprintf("SMs held\n(of %d)", sm_count) offset -4,0
  set yrange [0:most_sms * 1.2]
  set ytics autofreq 0, ceil(most_sms / 15.0) * 5
  set grid
  plot $spans using ($1 == 2 ? ($2 + $3) / 2 : 1/0):($5 / 2):2:3:(0):5 with boxxyerror \
    linecolor rgb red fillstyle solid 0.6 noborder
  unset multiplot
}
