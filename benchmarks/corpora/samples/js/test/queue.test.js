const { Queue, drain } = require('../src/queue')

describe('queue', () => {
  let queue
  beforeEach(() => {
    queue = new Queue({ limit: 3 })
  })

  it('keeps the order', () => {
    queue.push('a')
    queue.push('b')
    expect(queue.shift()).toBe('a')
    expect(queue.length).toBe(1)
  })

  it('refuses more than its limit', () => {
    for (const item of [1, 2, 3]) queue.push(item)
    expect(() => queue.push(4)).toThrow('full')
    expect(queue.length).toEqual(3)
  })

  it('drains in the background', async () => {
    queue.push('a')
    const done = await drain(queue, 5)
    expect(done).toEqual({ drained: 1, left: 0 })
    expect(queue.isEmpty()).toBe(true)
  })

  it.each([
    ['low', 1],
    ['normal', 5],
    ['high', 9],
    ['urgent', 10],
  ])('gives %s its weight', (name, weight) => {
    expect(Queue.weight(name)).toBe(weight)
  })
})
