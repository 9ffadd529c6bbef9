import { describe, expect, it } from 'vitest'
import { slug, type Options } from './slug'

const options: Options = { separator: '-', lower: true }

describe('slug', () => {
  it('joins words', () => {
    expect(slug('Hello World', options)).toBe('hello-world')
    expect(slug('a  b', options)).toHaveLength(3)
  })

  it('keeps numbers', () => {
    const made: string = slug('Chapter 12', options)
    expect(made).toEqual('chapter-12')
    expect(made).not.toContain(' ')
  })

  it('says what is wrong', async () => {
    await expect(slug.later('')).rejects.toThrow('empty')
    expect(slug.failures).toBe(1)
  })

  const cases: Array<[string, string]> = [
    ['ä', 'ae'],
    ['ß', 'ss'],
    ['ø', 'o'],
    ['ł', 'l'],
  ]
  for (const [from, to] of cases) {
    it(`turns ${from} into ${to}`, () => {
      expect(slug(from, options)).toBe(to)
    })
  }
})
