# SPDX-License-Identifier: MIT
# $cells, $reasons, $x_values, $y_values; n_x, n_y, n_reasons, value_low, value_high, below (pixels)
set lmargin at screen 110.0 / width
set rmargin at screen 1 - 96.0 / width
set tmargin at screen 1 - 40.0 / height
set bmargin at screen below / height
set xrange [-0.5:n_x - 0.5]
set yrange [-0.5:n_y - 0.5]
set style textbox opaque noborder fillcolor rgb "#ffffff" margins 1,0.6
set border 0
unset grid
set tics scale 0
set xlabel x_title offset 0,label_up
set ylabel y_title offset -0.5,0
set cbrange [value_low:value_high]
set cblabel value_title offset label_right,0
set colorbox user origin screen 1 - 88.0 / width, screen below / height \
  size screen 14.0 / width, screen 1 - (40.0 + below) / height
do for [i = 1:n_reasons] {
  stats $reasons every ::(i-1)::(i-1) using (reason = strcol(2), 0) nooutput
  set label i reason at screen 16.0 / width, screen (14.0 + 20 * (n_reasons - i)) / height left \
    textcolor rgb "#444444"
}
plot $cells using 1:2:($1 - 0.48):($1 + 0.48):($2 - 0.47):($2 + 0.47):3 with boxxyerror \
       fillstyle solid 1 noborder linecolor palette, \
     $cells using ($6 == 0 ? $1 : 1/0):2:($1 - 0.48):($1 + 0.48):($2 - 0.47):($2 + 0.47) with boxxyerror \
       linecolor rgb "#aaaaaa" fillstyle pattern 4, \
     $cells using ($6 == 1 ? $1 : 1/0):2:4:(on_palette($5)) with labels textcolor rgb variable, \
     $cells using ($6 == 0 ? $1 : 1/0):2:4 with labels boxed textcolor rgb "#222222", \
     $x_values using 1:(-1):xticlabels(2) with points pointtype -1, \
     $y_values using (-1):1:yticlabels(2) with points pointtype -1
