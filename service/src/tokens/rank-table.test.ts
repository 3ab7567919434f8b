import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createRankTable, noRank, rankOf } from './rank-table.ts'

const someBytes = fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 12 })

test('every token is found by its bytes, anywhere in a text, and nothing else is', () => {
  const tokenSets = fc.uniqueArray(someBytes, { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(tokenSets, fc.array(someBytes), (tokens, others) => {
      const encoded = tokens.map((token) => Buffer.from(token, 'latin1').toString('base64'))
      const table = createRankTable(encoded.join(' '))
      for (const [rank, token] of tokens.entries()) {
        expect(rankOf(table, token, 0, token.length)).toBe(rank)
        expect(rankOf(table, `a${token}b`, 1, token.length + 1)).toBe(rank)
      }
      for (const other of others) {
        expect(rankOf(table, other, 0, other.length)).toBe(tokens.indexOf(other))
      }
    }),
    { numRuns: 200 },
  )
})

test('bytes above 127, and no token for bytes that are longer than all of them', () => {
  const table = createRankTable(['\xff', '\x80\xfe\xff'].map((token) => btoa(token)).join(' '))
  expect(rankOf(table, '\x80\xfe\xff', 0, 3)).toBe(1)
  expect(rankOf(table, '\x80\xfe\xff\xff', 0, 4)).toBe(noRank)
  expect(rankOf(table, '\x80\xfe\xff\xff', 3, 4)).toBe(0)
})
