import fc from 'fast-check'
import { expect, test } from 'vitest'

import { type AnswerWindow, AnswerWindowCutter } from './answer-windows.ts'

function windowsOf(pieces: readonly string[], before = ''): AnswerWindow[] {
  const cutter = new AnswerWindowCutter(before)
  const windows: AnswerWindow[] = []
  const take = (isEnded: boolean) => {
    for (let window = cutter.next(isEnded); window; window = cutter.next(isEnded))
      windows.push(window)
  }
  for (const piece of pieces) {
    cutter.add(piece)
    take(false)
  }
  take(true)
  return windows
}

const words = (count: number) =>
  Array.from({ length: count }, (_, index) => `word${index}`).join(' ')

test('the first windows are short, the others have about a hundred new characters', () => {
  const ends = windowsOf([words(100)]).map(({ end }) => end)
  const steps = ends.map((end, index) => end - (ends[index - 1] ?? 0))
  expect(steps.slice(0, 4)).toEqual([53, 69, 98, 98])
})

test('a window ends at white space, and has what stands before it', () => {
  const text = words(100)
  for (const { from, text: shown, end } of windowsOf([text]).slice(0, -1)) {
    expect(text.charAt(end)).toBe(' ')
    expect(shown).toBe(text.slice(from, end))
  }
})

test('the last one says so, also where the text ends with a step', () => {
  for (let length = 1; length < 400; length++) {
    const windows = windowsOf([words(100).slice(0, length)])
    expect(windows.map(({ isLast }) => isLast)).toEqual([
      ...Array(windows.length - 1).fill(false),
      true,
    ])
    expect(windows.at(-1)?.end).toBe(length)
  }
})

test('what stands before the text is shown with it, and is not new', () => {
  const [window] = windowsOf(['and more'], 'said before, ')
  expect(window).toMatchObject({ from: -13, text: 'said before, and more', newFrom: 0 })
})

test('windows depend on the text alone, and divide no character', () => {
  const texts = fc.array(fc.constantFrom('a', '😀', ' ', 'word ', '\n', 'x'.repeat(50), '12'), {
    maxLength: 120,
  })
  fc.assert(
    fc.property(texts, fc.nat(40), (pieces, size) => {
      const text = pieces.join('')
      const cut = size + 1
      const chunks = Array.from({ length: Math.ceil(text.length / cut) }, (_, index) =>
        text.slice(index * cut, (index + 1) * cut),
      )
      const whole = windowsOf([text])
      expect(windowsOf(chunks)).toEqual(whole)
      expect(whole.every((each) => each.text.isWellFormed())).toBe(true)
      const news = whole.map(({ end }, index) => text.slice(whole[index - 1]?.end ?? 0, end))
      expect(news.join('')).toBe(text)
    }),
  )
})
