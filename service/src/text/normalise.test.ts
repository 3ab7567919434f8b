import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { normalise, Normaliser } from './normalise.ts'

const acute = '\u0301'
const cedilla = '\u0327'
const zeroWidthSpace = '\u200b'
const joiner = '\u200d'

/** What is removed from a text. */
const unseen = /[\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]|(?!\p{White_Space})\p{Cc}/gu

const textOf = (original: string) => normalise(original).text
const offsetsOf = (original: string) => {
  const { text, originalOffset } = normalise(original)
  return Array.from({ length: text.length + 1 }, (_, index) => originalOffset(index))
}

/** Characters of every kind that the normaliser tells apart, and those around which mistakes are likely. */
const character = fc.constantFrom(
  ...Array.from(
    'aeK=7  \n\t\u00a0\u2003\u0085\u00a8\u00e9\u4e2d\u05d0\u0e33\ufb01\ufdfa\u{1d400}\u{1f600}' +
      '\u0301\u0327\u0338\u0344\u3099\u20dd\u09be\u{11127}\u{1d165}\u{16d63}\u{16d67}' +
      '\u200b\u200d\u00ad\ufeff\u202e\u2066\ufe0f\u{e0041}\u034f\u3164\u0001\u009f\u2800' +
      '\u1100\u1161\u11a8\uac00\u3131\u314f\uffa1\uffc2\uff76\uff9e\uff9f',
  ),
)
const half = fc.constantFrom('\ud835', '\udc00', '\ud83d', '\ude00')
const wellFormedText = fc.array(character, { maxLength: 25 }).map((all) => all.join(''))
const anyText = fc
  .array(fc.oneof({ arbitrary: character, weight: 9 }, { arbitrary: half, weight: 1 }), {
    maxLength: 90,
  })
  .map((all) => all.join(''))
const pieceLengths = fc.array(fc.integer({ min: 0, max: 7 }), { minLength: 1, maxLength: 20 })

function cut(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = []
  let at = 0
  for (let index = 0; at < text.length; index++) {
    // Never only empty pieces.
    const length = index > 200 ? 1 : (lengths[index % lengths.length] ?? 1)
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}

describe('what becomes of a text', () => {
  test.each([
    ['ordinary text stays', 'Hello, world. 1 < 2', 'Hello, world. 1 < 2'],
    ['full-width letters and ligatures', '\uff21\uff42 \ufb01x', 'Ab fix'],
    ['zero-width characters', `b${zeroWidthSpace}o\u2060m\ufeffb\u00ad`, 'bomb'],
    ['bidirectional controls', '\u202eabc\u202c\u2066d\u2069', 'abcd'],
    ['invisible fillers, tags and selectors', 'a\u3164b\u{e0041}c\ufe0f', 'abc'],
    ['control characters', 's\u0000e\u0007c\u001br\u007fe\u0084t\u009f', 'secret'],
    ['the blank Braille pattern', 'sec\u2800ret', 'secret'],
    ['white space of all kinds', 'a \t\r\n b\u00a0\u2003\u3000c\u2028\u0085d', 'a b c d'],
    ['leading and trailing white space', '  a  ', ' a '],
    ['a space that comes out of a character', 'a \u00a8', 'a \u0308'],
    ['a mark', `e${acute}`, '\u00e9'],
    ['a mark behind a removed character', `e${joiner}${acute}`, '\u00e9'],
    ['marks in another order', `e${acute}${cedilla}`, '\u0229\u0301'],
    ['a mark behind a space stands alone', ` ${acute}`, ` ${acute}`],
    ['Hangul', '\u1100\u1161\u11a8 \uffa1\uffc2', '\uac01 \uac00'],
    ['half-width sound marks', '\uff76\uff9e', '\u30ac'],
    ['a lone half of a pair', 'a\ud800b', 'a\ud800b'],
    ['halves that removing would join', `\ud835${zeroWidthSpace}\udc00`, '\ud835\ufffd'],
    ['nothing', '', ''],
  ])('%s', (_, original, expected) => {
    expect(textOf(original)).toBe(expected)
  })

  test('after thirty marks a boundary is forced', () => {
    const marks = acute.repeat(30)
    expect(textOf(`e${marks}${cedilla}`)).toBe(`\u00e9${acute.repeat(29)}${cedilla}`)
    expect(textOf(`e${marks.slice(1)}${cedilla}`)).toBe(`\u0229${acute.repeat(29)}`)
  })
})

describe('the way back to the original', () => {
  test('characters that stay or disappear', () => {
    expect(offsetsOf(`a${zeroWidthSpace}b  c `)).toEqual([0, 2, 3, 5, 6, 7])
  })

  test('a cluster that was changed starts where its first character does', () => {
    expect(offsetsOf(`xe${acute}y\ufb01z`)).toEqual([0, 1, 3, 4, 4, 5, 6])
  })

  test('what is covered includes trailing removed characters, but nothing that may still change', () => {
    const normaliser = new Normaliser()
    expect(normaliser.push('ab')).toBe('a')
    expect(normaliser.originalOffset(1)).toBe(1)
    expect(normaliser.push(zeroWidthSpace)).toBe('')
    expect(normaliser.originalOffset(1)).toBe(1)
    expect(normaliser.push(' ')).toBe('b ')
    expect(normaliser.push(` ${zeroWidthSpace}`)).toBe('')
    expect(normaliser.length).toBe(3)
    expect(normaliser.originalOffset(3)).toBe(6)
  })

  test('what was forgotten does not change the rest', () => {
    const original = `e${acute} a${zeroWidthSpace}`.repeat(2_000)
    const expected = offsetsOf(original)
    const normaliser = new Normaliser()
    const text = normaliser.push(original) + normaliser.end()
    for (let index = 0; index <= text.length; index++) {
      expect(normaliser.originalOffset(index)).toBe(expected[index])
      normaliser.forget(index)
    }
  })
})

describe('for any text', () => {
  test('the result is the definition applied to the whole', () => {
    fc.assert(
      fc.property(wellFormedText, (original) => {
        const seen = original.replace(unseen, '')
        const expected = seen.normalize('NFKC').replace(/\p{White_Space}+/gu, ' ')
        expect(textOf(original)).toBe(expected)
      }),
      { numRuns: 3_000 },
    )
  })

  test('cutting it changes neither the text nor the map', () => {
    fc.assert(
      fc.property(anyText, pieceLengths, (original, lengths) => {
        const whole = normalise(original)
        const normaliser = new Normaliser()
        let text = ''
        let given = 0
        for (const piece of cut(original, lengths)) {
          text += normaliser.push(piece)
          given += piece.length
          expect(normaliser.length).toBe(text.length)
          expect(normaliser.originalOffset(text.length)).toBeLessThanOrEqual(given)
        }
        text += normaliser.end()
        expect(text).toBe(whole.text)
        for (let index = 0; index <= text.length; index++) {
          expect(normaliser.originalOffset(index)).toBe(whole.originalOffset(index))
        }
      }),
      { numRuns: 3_000 },
    )
  })

  test('what was returned after a piece is what a text with this beginning must begin with', () => {
    fc.assert(
      fc.property(anyText, anyText, (start, rest) => {
        const returned = new Normaliser().push(start)
        expect(textOf(start + rest).startsWith(returned)).toBe(true)
      }),
      { numRuns: 3_000 },
    )
  })

  test('normalising twice is normalising once, and the result is in NFKC', () => {
    fc.assert(
      fc.property(wellFormedText, (original) => {
        const text = textOf(original)
        expect(textOf(text)).toBe(text)
        expect(text.normalize('NFKC')).toBe(text)
      }),
      { numRuns: 3_000 },
    )
  })

  test('the map goes forward and covers the original to its end', () => {
    fc.assert(
      fc.property(anyText, (original) => {
        const offsets = offsetsOf(original)
        expect(offsets.at(-1)).toBe(original.length)
        expect(offsets).toEqual(offsets.toSorted((a, b) => a - b))
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('for every character there is', () => {
  const all = Array.from({ length: 0x110000 }, (_, code) => code)
    .filter((code) => code < 0xd800 || code > 0xdfff)
    .map((code) => String.fromCodePoint(code))
    .filter((one) => !/[\p{Unassigned}\p{Private_Use}]/u.test(one))

  test('what combines with a character before it is waited for', () => {
    const combining = new Set<string>()
    for (const one of all)
      for (const next of Array.from(one.normalize('NFD')).slice(1)) combining.add(next)
    const isCombining = (one: string) => {
      const first = String.fromCodePoint(one.normalize('NFKD').codePointAt(0) ?? 0)
      return /\p{M}/u.test(first) || combining.has(first)
    }
    const isRemoved = (one: string) => textOf(`${one}x`) === 'x'
    const missed = all.filter(
      (one) => isCombining(one) && !isRemoved(one) && new Normaliser().push(`a${one}`) !== '',
    )
    expect(missed).toEqual([])
  })

  test('alone and behind a letter it becomes what the definition says', () => {
    const wrong = all.filter((one) => {
      const seen = one.replace(unseen, '')
      const expected = `a${seen}e`.normalize('NFKC').replace(/\p{White_Space}+/gu, ' ')
      const text = textOf(`a${one}e`)
      return text !== expected || textOf(text) !== text
    })
    expect(wrong).toEqual([])
  })
})

describe('hostile texts take linear time', () => {
  /** For ten times the text. Quadratic work would take a hundred times as long; a busy machine three or four. */
  const mostTimes = 40
  const fastest = (work: () => void) => {
    let leastMs = Infinity
    for (let round = 0; round < 5; round++) {
      const startMs = performance.now()
      work()
      leastMs = Math.min(leastMs, performance.now() - startMs)
    }
    return leastMs
  }
  const timeOf = (text: string) => fastest(() => normalise(text))

  test.each([
    ['marks', acute],
    ['marks of two classes', acute + cedilla],
    ['removed characters', zeroWidthSpace],
    ['white space', ' \n'],
    ['letters with marks', `e${acute}`],
    ['expanding characters', '\ufdfa'],
    ['Hangul', '\u1100\u1161\u11a8'],
    ['halves of pairs', '\ud800'],
  ])('%s', (_, unit) => {
    const short = unit.repeat(20_000 / unit.length)
    timeOf(short)
    expect(timeOf(unit.repeat(200_000 / unit.length))).toBeLessThan(mostTimes * timeOf(short) + 5)
  })

  test('also in pieces of one unit', () => {
    const timeInPieces = (length: number) =>
      fastest(() => {
        const normaliser = new Normaliser()
        for (let at = 0; at < length; at++) normaliser.push(at % 2 === 0 ? 'e' : acute)
      })
    timeInPieces(20_000)
    expect(timeInPieces(200_000)).toBeLessThan(mostTimes * timeInPieces(20_000) + 5)
  })
})
