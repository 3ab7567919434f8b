import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { cutText } from '#formats/testing/cut-text.ts'
import { finish } from '#platform/steps/steps.ts'
import { decodeEscapes } from '#text/escape-decoder.ts'

import { tailLength, type TextView, TextViews } from './text-views.ts'

const textsOf = (views: readonly TextView[]): string => views.map(({ text }) => text).join('')

describe('decoding', () => {
  test('a text without a backslash has no other reading', () => {
    expect(new TextViews('').decode('0/text', 'plain words')).toEqual([])
  })

  test('the reading begins before the first backslash, and each character has the place it stands for', () => {
    const views = new TextViews('').decode('0/text', 'ab\\ncd')
    expect(views.map(({ text, from, isFlat }) => [text, from, isFlat])).toEqual([
      ['ab', 2, true],
      ['\n', 2, false],
      ['cd', 4, false],
    ])
  })

  test('an escape that has begun is not read until it is complete', () => {
    const views = new TextViews('')
    expect(views.decode('0/text', 'a\\u00')).toMatchObject([{ text: 'a' }, { text: '', readTo: 1 }])
    expect(views.decode('0/text', '41')).toMatchObject([{ text: 'A', from: 1, readTo: null }])
  })

  test('a text that is repeated as a whole adds nothing', () => {
    const views = new TextViews('')
    views.decode('0/text', 'a\\nb')
    expect(views.end('0/text')).toEqual(['?decoded/0/text'])
    expect(views.moreOf('0/text', 'a\\nb', 'whole')).toBe('')
    expect(views.moreOf('0/text', 'a\\nbc', 'whole')).toBe('c')
  })

  const words = fc
    .array(fc.constantFrom('\\', '\\n', '\\u0041', 'u', '00', 'x', ' '), { maxLength: 40 })
    .map((parts) => parts.join(''))

  test('the pieces make no difference', () => {
    fc.assert(
      fc.property(
        words,
        fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1 }),
        (text, lengths) => {
          const views = new TextViews('')
          const read = textsOf(
            cutText(text, lengths).flatMap((piece) => views.decode('0/text', piece)),
          )
          // What an escape begins with that is never complete has no other reading.
          const whole = finish(decodeEscapes(text.replace(/\\{1,64}(u[\da-fA-F]{0,3})?$/, '')))
          expect(read).toBe(text.includes('\\') ? whole : '')
        },
      ),
    )
  })
})

describe('joining', () => {
  const join = (views: TextViews, channel: string, more: string, separator?: string) =>
    textsOf(views.join({ group: 'prose', channel, ...(separator && { separator }) }, more, 0))

  test('a reading begins at the first seam, with the end of the text before', () => {
    const views = new TextViews('')
    const long = 'x'.repeat(5000)
    expect(join(views, '0', long)).toBe('')
    expect(join(views, '1', 'yes')).toBe(`${long.slice(-tailLength)}yes`)
    expect(join(views, '1', ' it')).toBe(' it')
    expect(join(views, '2', '!')).toBe('!')
  })

  test('after a pause a new reading begins', () => {
    const views = new TextViews('')
    join(views, '0', 'a')
    join(views, '1', 'b')
    expect(views.pauseJoined('prose')).toEqual(['?joined/prose/0'])
    expect(join(views, '3', 'c')).toBe('abc')
    expect(views.pauseAll()).toEqual(['?joined/prose/1'])
  })

  test('words are joined by spaces', () => {
    const views = new TextViews('')
    join(views, '0', 'project', ' ')
    expect(join(views, '1', 'falcon', ' ')).toBe('project falcon')
  })

  test('the first text goes on where the caller has begun the answer', () => {
    expect(join(new TextViews('I think kumquat'), '0', ' marmalade')).toBe(
      'I think kumquat marmalade',
    )
  })
})
