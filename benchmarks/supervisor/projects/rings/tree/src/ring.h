#ifndef RING_H
#define RING_H

enum { RING_SIZE = 8 };

struct ring {
  int values[RING_SIZE];
  int first;
  int count;
};

int ring_count(const struct ring *r);
int ring_put(struct ring *r, int value);
int ring_take(struct ring *r, int *value);
//@ 1.2
int ring_peek(const struct ring *r, int *value);
//@ end
//@ 1.3
void ring_clear(struct ring *r);
//@ end
//@ 2.2
void ring_copy(struct ring *to, const struct ring *from);
//@ end

#endif
