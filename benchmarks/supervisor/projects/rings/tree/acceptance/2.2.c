#include <stdio.h>

#include "ring.h"

#define MUST(what) if (!(what)) { puts("acceptance 2.2: not so: " #what); return 1; }

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  struct ring other = {0};
  ring_put(&r, 6);
  ring_put(&r, 7);
  ring_take(&r, &value);
  ring_copy(&other, &r);
  MUST(ring_count(&other) == 1);
  MUST(ring_take(&other, &value) && value == 7);
  return 0;
}
