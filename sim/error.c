// SPDX-License-Identifier: MIT
#include "sim/error.h"

G_DEFINE_QUARK(nj - error - quark, nj_error)
