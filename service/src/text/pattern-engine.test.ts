import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { loadPatternEngine } from './pattern-engine.ts'
import { readPatternShape } from './pattern-shape.ts'
import { loadRe2 } from './re2-engine.ts'
import { re2jsEngine } from './re2js-engine.ts'

const native = loadRe2()
if (!native) console.warn('The native pattern engine is not built here: it is not compared.')
const engines = [re2jsEngine, ...(native ? [native] : [])]

const atoms =
  'a b ab k s é 😀 中 Σ . \\d \\w \\W \\s \\S \\pL \\p{Greek} \\x{1F600} [a-c] [^a] [é-ü] [😀-😎x] [[:alpha:]]'
const conditions = '\\b \\B ^ $ \\A \\z'
const repetition = fc.constantFrom('', '', '', '', ...'* + ? {2} {0,3} {1,} +? {1,2}?'.split(' '))
const atom = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...atoms.split(' ')) },
  { weight: 1, arbitrary: fc.constantFrom(...conditions.split(' ')) },
)
const { pattern: grammatical } = fc.letrec<{ pattern: string; part: string }>((tie) => ({
  part: fc.oneof(
    { weight: 6, arbitrary: atom },
    { weight: 2, arbitrary: tie('pattern').map((inner) => `(?:${inner})`) },
    { weight: 1, arbitrary: tie('pattern').map((inner) => `(?i:${inner})`) },
    { weight: 1, arbitrary: tie('pattern').map((inner) => `(?m)(${inner})`) },
  ),
  pattern: fc.oneof(
    { maxDepth: 3 },
    fc
      .array(fc.tuple(tie('part'), repetition), { minLength: 1, maxLength: 4 })
      .map((parts) =>
        parts
          .map(([part, times]) => (/^[\^$]|^\\[bBAz]/.test(part) ? part : part + times))
          .join(''),
      ),
    fc.tuple(tie('part'), tie('part')).map(([one, other]) => `${one}|${other}`),
  ),
}))
/** Whatever characters stand in patterns, in any order: most are invalid, some are parsed in unexpected ways. */
const soup = fc
  .array(fc.constantFrom(...Array.from('ab1-,^$|?*+.:=!<>()[]{}\\PpdDwWbBzAixUk😀é')), {
    maxLength: 12,
  })
  .map((characters) => characters.join(''))
const pattern = fc.oneof({ weight: 3, arbitrary: grammatical }, { weight: 1, arbitrary: soup })

const character = fc.constantFrom(
  ...Array.from('abcABxkK\u212as\u017fS1 \n_-!éÉü😀😎中σςΣ\ufffd'),
  '\ud83d',
  '\ude00',
)
const text = fc.array(character, { maxLength: 30 }).map((characters) => characters.join(''))

const isValid = (each: string) => !('problem' in readPatternShape(each))

function accepted(each: string): boolean {
  if (!isValid(each)) return false
  try {
    for (const engine of engines) engine.compileSet([each])
    return true
  } catch {
    return false
  }
}

describe.each(engines)('$name', (engine) => {
  test('says which patterns occur, and where', () => {
    const set = engine.compileSet(['foo\\d+', '(?i)bar', '\\bx', 'never', '^q', ''])
    expect(set.hits('q 😀foo12 BARx')).toEqual([0, 1, 4, 5])
    expect(set.find(0, 'q 😀foo12', 0)).toEqual({ start: 4, end: 9 })
    expect(set.find(0, 'foo1 foo2', 1)).toEqual({ start: 5, end: 9 })
    expect(set.find(0, 'foo1', 5)).toBeNull()
    expect(set.find(3, 'foo1', 0)).toBeNull()
  })

  test('sees what stands before the place where it starts', () => {
    const set = engine.compileSet(['\\bx', '^x', '(?m)^x'])
    expect(set.find(0, 'ax x', 1)).toEqual({ start: 3, end: 4 })
    expect(set.find(1, 'axx', 1)).toBeNull()
    expect(set.find(2, 'ax\nx', 1)).toEqual({ start: 3, end: 4 })
  })

  test('starts at no half of a pair, and reads lone halves', () => {
    const set = engine.compileSet(['a', '.'])
    expect(set.find(0, '😀a', 1)).toEqual({ start: 2, end: 3 })
    expect(set.find(1, '😀a', 1)).toEqual({ start: 2, end: 3 })
    expect(set.find(0, '\ud800a', 0)).toEqual({ start: 1, end: 2 })
    expect(set.hits('\ud800a')).toEqual([0, 1])
  })

  test('knows all cases of a letter', () => {
    const set = engine.compileSet(['(?i)secret', '(?i)kilo'])
    expect(set.hits('\u017fecret \u212aILO')).toEqual([0, 1])
  })

  test('sees no place inside of a character', () => {
    expect(engine.compileSet(['a\\b|\\B']).hits('é')).toEqual([0])
    expect(engine.compileSet(['\\B']).hits('aéb')).toEqual([])
  })

  test('takes more patterns than fit into one automaton', () => {
    const words = Array.from({ length: 1_200 }, (_, index) => `\\bw${index}x?\\b`)
    expect(engine.compileSet(words).hits('w7 w1199x w600 w1200')).toEqual([7, 600, 1_199])
  })

  test('refuses what is not RE2', () => {
    expect(() => engine.compileSet(['fine', '(a)\\1'])).toThrow(/escape/)
    expect(() => engine.compileSet(['(?=a)'])).toThrow(/\(\?=/)
  })

  test('hits and find agree, and no match is wider than the shape says', () => {
    fc.assert(
      fc.property(
        fc.array(pattern.filter(accepted), { minLength: 1, maxLength: 4 }),
        text,
        (some, each) => {
          const set = engine.compileSet(some)
          const found = some.map((_, index) => set.find(index, each, 0))
          expect(set.hits(each)).toEqual([...found.keys()].filter((index) => found[index]))
          for (const [index, one] of some.entries()) {
            const shape = readPatternShape(one)
            for (let from = 0; from <= each.length; from++) {
              const match = set.find(index, each, from)
              if (!match) continue
              expect(match.start).toBeGreaterThanOrEqual(from)
              expect(shape).toHaveProperty('width')
              if ('width' in shape) expect(match.end - match.start).toBeLessThanOrEqual(shape.width)
            }
          }
        },
      ),
      { numRuns: 1_000 },
    )
  })
})

describe.skipIf(!native)('both engines', () => {
  test('find the same', () => {
    fc.assert(
      fc.property(pattern.filter(accepted), text, fc.nat(31), (one, each, from) => {
        const [first, second] = engines.map((engine) => {
          const set = engine.compileSet([one])
          return { hits: set.hits(each), find: set.find(0, each, from) }
        })
        expect(first).toEqual(second)
      }),
      { numRuns: 2_000 },
    )
  })

  test('accept the same of what our parser accepts', () => {
    const accepts = (one: string) =>
      engines.map((engine) => {
        try {
          engine.compileSet([one]).find(0, '', 0)
          return true
        } catch {
          return false
        }
      })
    fc.assert(
      fc.property(pattern.filter(isValid), (one) => {
        const [first, second] = accepts(one)
        expect(first).toBe(second)
      }),
      { numRuns: 2_000 },
    )
  })

  test('the native one is taken', () => {
    expect(loadPatternEngine().name).toBe('re2')
  })
})
