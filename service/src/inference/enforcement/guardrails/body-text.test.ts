import fc from 'fast-check'
import { expect, test } from 'vitest'

import { applyEdits } from '#moderation/guardrails/text-edits.ts'

import { editParts, wholeOf } from './body-text.ts'

const edit = (start: number, end: number, replacement: string) => ({ start, end, replacement })
const whole = (parts: readonly string[]) => wholeOf({ role: 'user', kind: 'text', parts })

test('parts are one text, apart where no white space is between them', () => {
  expect(whole(['My number', 'is', ' 12 ', '34', '', '56'])).toBe('My number\nis 12 34\n56')
})

test('a stretch that is divided is replaced in the first of its parts', () => {
  expect(editParts({ parts: ['a 12', '34 b'] }, [edit(2, 7, '#')])).toEqual(['a #', ' b'])
  expect(editParts({ parts: ['12', '34', '56 b'] }, [edit(0, 8, '#')])).toEqual(['#', '…', ' b'])
})

test('what stands between parts goes with the first of them', () => {
  expect(editParts({ parts: ['a', 'b'] }, [edit(1, 2, ' and ')])).toEqual(['a and ', 'b'])
})

test('a part of which all is gone says so', () => {
  expect(editParts({ parts: ['12', 'b', ''] }, [edit(0, 2, '')])).toEqual(['…', 'b', ''])
})

test('one part is edited like any text', () => {
  const text = fc.string({ maxLength: 20 })
  fc.assert(
    fc.property(text, fc.array(fc.nat(20), { maxLength: 8 }), (part, places) => {
      const sorted = [...new Set(places)]
        .filter((at) => at <= part.length)
        .toSorted((a, b) => a - b)
      const edits = sorted.flatMap((start, index) => {
        const end = sorted[index + 1]
        return index % 2 === 0 && end !== undefined ? [edit(start, end, `<${index}>`)] : []
      })
      expect(editParts({ parts: [part] }, edits)).toEqual([applyEdits(part, edits)])
    }),
  )
})

test('joined again, edited parts say what the edited text says, but for the seams', () => {
  const parts = fc.array(fc.constantFrom('ab', 'c ', ' d', '😀', '', '12'), { maxLength: 6 })
  fc.assert(
    fc.property(parts, fc.array(fc.nat(20), { maxLength: 8 }), (given, places) => {
      const text = whole(given)
      const sorted = [...new Set(places)]
        .filter((at) => at <= text.length)
        .toSorted((a, b) => a - b)
      const edits = sorted.flatMap((start, index) => {
        const end = sorted[index + 1]
        return index % 2 === 0 && end !== undefined ? [edit(start, end, `<${index}>`)] : []
      })
      const withoutSpace = (said: string) => said.replaceAll(/[\s…]/g, '')
      expect(withoutSpace(editParts({ parts: given }, edits).join(''))).toBe(
        withoutSpace(applyEdits(text, edits)),
      )
    }),
  )
})
