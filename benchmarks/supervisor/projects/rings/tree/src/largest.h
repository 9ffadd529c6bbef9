//@ 2.1
#include "ring.h"

int ring_largest(const struct ring *r, int *value);
//@ end
