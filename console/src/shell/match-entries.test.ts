import { expect, test } from 'vitest'

import { matchEntries } from './match-entries.ts'

const entries = [
  { name: 'Members' },
  { name: 'Support bot' },
  { name: 'Ada Lovelace', also: 'ada@example.com' },
  { name: 'Bot for support' },
]

test.each([
  ['', ['Members', 'Support bot', 'Ada Lovelace', 'Bot for support']],
  ['bot', ['Bot for support', 'Support bot']],
  ['SUPP  bot ', ['Support bot', 'Bot for support']],
  ['@example', ['Ada Lovelace']],
  ['nothing', []],
])('%j finds %j', (text, names) => {
  expect(matchEntries(entries, text).map(({ name }) => name)).toEqual(names)
})
