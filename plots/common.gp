# SPDX-License-Identifier: MIT
# What all figures share. Colours: Okabe and Ito's palette, which colour-blind readers tell apart, and cividis
# for quantities, whose lightness rises evenly.
set encoding utf8
set border 3 linecolor rgb "#666666"
set tics nomirror out scale 0.5 textcolor rgb "#333333"
set grid linecolor rgb "#e4e4e4" linetype 1 linewidth 0.7
unset key

black = 0x000000
orange = 0xE69F00
sky = 0x56B4E9
green = 0x009E73
yellow = 0xF0E442
blue = 0x0072B2
red = 0xD55E00
pink = 0xCC79A7
gray = 0x999999
light = 0xDDDDDD

# The SVG terminal sets labels of axes further out than those that know their fonts.
label_up = svg ? 0.9 : 0.3
label_right = svg ? -0.8 : 0.6
set xtics offset 0,(svg ? 0.45 : 0)

# Methods: Megatron-LM, + Perseus, nanobatching + Perseus, Kareus.
array method_color[4] = [black, orange, sky, red]
array method_name[4] = ["Megatron-LM", "Megatron-LM + Perseus", "Nanobatching + Perseus", "Kareus"]
array method_point[4] = [2, 5, 9, 7]
# Kinds of kernels, then host gaps, waiting, static power.
array kind_color[7] = [blue, sky, orange, red, gray, light, pink]
array kind_name[4] = ["GEMM", "attention", "HBM-bound", "collective"]

set palette defined (0 "#00224e", 0.125 "#123570", 0.25 "#3b496c", 0.375 "#575d6d", 0.5 "#707173", \
  0.625 "#8a8678", 0.75 "#a59c74", 0.875 "#c3b369", 1 "#fee838")
# Text on a colour of the palette.
on_palette(bright) = bright > 0.5 ? 0x000000 : 0xFFFFFF

# The title and the legend, from the left at the top of a figure: entries are added one by one and wrap where the
# figure ends. mark: a point type, or 0 for a line of a dash type, or -1 for a hatched box.
set label 1001 plot_title at screen 14.0 / width, screen 1 - 15.0 / height left textcolor rgb "#000000"
entry = 0
entry_x = 20.0
entry_y = 38.0
entry_text = ""
entry_mark = 5
entry_dash = 1
entry_color = black
add_entry = 'entry = entry + 1; \
  entry_wide = 7.7 * strlen(entry_text) + 42; \
  entry_y = entry_x + entry_wide > width + 12 ? entry_y + 19 : entry_y; \
  entry_x = entry_x + entry_wide > width + 12 ? 20.0 : entry_x; \
  ex = entry_x / width; ey = 1 - entry_y / height; \
  set label 1001 + entry entry_text at screen (entry_x + 14) / width, screen ey left textcolor rgb "#222222"; \
  if (entry_mark > 0) { set label 1050 + entry " " at screen ex, screen ey point pointtype entry_mark \
    pointsize (entry_mark == 5 ? 0.9 : 0.75) linewidth 1.6 linecolor rgb entry_color; }; \
  if (entry_mark == 0) { set arrow 1001 + entry from screen ex - 9.0 / width, screen ey to \
    screen ex + 9.0 / width, screen ey nohead linewidth 1.8 dashtype entry_dash linecolor rgb entry_color; }; \
  if (entry_mark == -1) { set object 1001 + entry rectangle center screen ex, screen ey \
    size screen 18.0 / width, screen 12.0 / height fillstyle pattern 4 noborder fillcolor rgb entry_color; }; \
  entry_x = entry_x + entry_wide'
# In a figure of several panels, after the first.
drop_legend = 'do for [i = 0:entry] { unset label 1001 + i; unset label 1050 + i; unset arrow 1001 + i; \
  unset object 1001 + i; }'
