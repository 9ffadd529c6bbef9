#include <stdio.h>

#include "sum.h"

#define MUST(what) if (!(what)) { puts("acceptance 1.4: not so: " #what); return 1; }

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  MUST(ring_sum(&r) == 0);
  ring_put(&r, 6);
  ring_put(&r, 7);
  ring_take(&r, &value);
  MUST(ring_sum(&r) == 7);
  return 0;
}
