#include <stdio.h>

#include "ring.h"

#define MUST(what) if (!(what)) { puts("acceptance 1.1: not so: " #what); return 1; }

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  for (int at = 0; at < RING_SIZE; at++) MUST(ring_put(&r, at));
  MUST(!ring_put(&r, 99));
  MUST(ring_count(&r) == RING_SIZE);
  MUST(ring_take(&r, &value) && value == 0);
  return 0;
}
