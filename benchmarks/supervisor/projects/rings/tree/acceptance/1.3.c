#include <stdio.h>

#include "ring.h"

#define MUST(what) if (!(what)) { puts("acceptance 1.3: not so: " #what); return 1; }

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  ring_put(&r, 7);
  ring_clear(&r);
  MUST(ring_count(&r) == 0);
  MUST(!ring_take(&r, &value));
  return 0;
}
