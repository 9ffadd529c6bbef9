//@ 1.4
#include "ring.h"

long ring_sum(const struct ring *r);
//@ end
