import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { LiteralSet } from './literal-set.ts'

type Hit = readonly [literal: number, start: number]

function scanPieces(set: LiteralSet, pieces: readonly string[]): Hit[] {
  const scan = set.scan()
  const hits: Hit[] = []
  for (const piece of pieces) scan.read(piece, (literal, start) => hits.push([literal, start]))
  return inOrder(hits)
}

const inOrder = (hits: readonly Hit[]) => hits.toSorted((a, b) => a[1] - b[1] || a[0] - b[0])

/** Every place at which a literal stands, found the slow way. */
function findAll(literals: readonly string[], text: string): Hit[] {
  const hits: Hit[] = []
  for (const [literal, wanted] of literals.entries()) {
    for (let start = 0; start + wanted.length <= text.length; start++) {
      if (text.startsWith(wanted, start)) hits.push([literal, start])
    }
  }
  return inOrder(hits)
}

test('nested, overlapping and repeated literals are all reported', () => {
  const set = new LiteralSet(['he', 'she', 'his', 'hers', 'she'])
  expect(scanPieces(set, ['us', 'he', 'rs'])).toEqual([
    [1, 1],
    [4, 1],
    [0, 2],
    [3, 2],
  ])
  expect(set.hits('ushers')).toEqual([0, 1, 3, 4])
  expect(set.longest).toBe(4)
})

test('the empty literal is in every text', () => {
  const set = new LiteralSet(['', 'a'])
  expect(set.hits('')).toEqual([0])
  expect(scanPieces(set, ['b', 'a'])).toEqual([
    [0, 0],
    [1, 1],
  ])
})

test('a set without literals finds nothing and holds nothing', () => {
  const set = new LiteralSet([])
  expect(set.longest).toBe(0)
  expect(scanPieces(set, ['abc', '\u4e2d'])).toEqual([])
  expect(set.scan().held).toBe(0)
})

test('as many characters are held as may still become a literal', () => {
  const scan = new LiteralSet(['abcx', 'bcd']).scan()
  const held: number[] = []
  for (const unit of 'zabcd\u4e2da') {
    scan.read(unit, () => {})
    held.push(scan.held)
  }
  expect(held).toEqual([0, 1, 2, 3, 3, 0, 1])
})

describe('for any literals and any text', () => {
  const unit = fc.constantFrom('a', 'b', 'c', '\u4e2d', '\u{1f600}', '\u00e9')
  const literal = fc.array(unit, { minLength: 1, maxLength: 6 }).map((units) => units.join(''))
  const literals = fc.array(literal, { maxLength: 12 })
  const pieces = fc.array(fc.array(unit, { maxLength: 9 }).map((units) => units.join('')))

  test('the hits are those of a slow search', () => {
    fc.assert(
      fc.property(literals, pieces, (wanted, cut) => {
        const set = new LiteralSet(wanted)
        const expected = findAll(wanted, cut.join(''))
        expect(scanPieces(set, cut)).toEqual(expected)
        const different = [...new Set(expected.map(([number]) => number))]
        expect(set.hits(cut.join(''))).toEqual(different.toSorted((a, b) => a - b))
      }),
      { numRuns: 2_000 },
    )
  })

  test('no literal starts before what is held', () => {
    fc.assert(
      fc.property(literals, pieces, pieces, (wanted, cut, rest) => {
        const scan = new LiteralSet(wanted).scan()
        for (const piece of cut) scan.read(piece, () => {})
        const length = cut.join('').length
        const earliest = length - scan.held
        for (const piece of rest) {
          scan.read(piece, (_, start) => expect(start).toBeGreaterThanOrEqual(earliest))
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

test('many long literals take little memory and are found', () => {
  const literals = Array.from({ length: 2_000 }, (_, index) => `${index}-`.repeat(100))
  const set = new LiteralSet(literals)
  expect(set.hits(`x${literals[1_234]}`)).toContain(1_234)
  const states = literals.join('').length
  expect(states).toBeGreaterThan(800_000)
})
