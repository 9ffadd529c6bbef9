#include <stdio.h>

#include "largest.h"

#define MUST(what) if (!(what)) { puts("acceptance 2.1: not so: " #what); return 1; }

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  MUST(!ring_largest(&r, &value));
  ring_put(&r, -7);
  ring_put(&r, -3);
  MUST(ring_largest(&r, &value) && value == -3);
  return 0;
}
