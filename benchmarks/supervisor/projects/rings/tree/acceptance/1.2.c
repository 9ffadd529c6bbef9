#include <stdio.h>

#include "ring.h"

#define MUST(what) if (!(what)) { puts("acceptance 1.2: not so: " #what); return 1; }

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  MUST(!ring_peek(&r, &value));
  ring_put(&r, 6);
  ring_put(&r, 7);
  ring_take(&r, &value);
  MUST(ring_peek(&r, &value) && value == 7);
  MUST(ring_count(&r) == 1);
  return 0;
}
