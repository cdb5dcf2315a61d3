/* The functions of along_axes.h. */
#include "axis_loops.h"
#include "sorting.h"
#include "stable_order.h"
