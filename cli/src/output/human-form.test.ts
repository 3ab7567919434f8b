import { expect, test } from 'vitest'

import { humanForm } from './output.ts'

const page = (data: unknown[], last_id: string | null = null) => ({
  object: 'list',
  data,
  has_more: last_id !== null,
  first_id: null,
  last_id,
})

test('a list is a table: what names an item first, times last, objects and lists left out', () => {
  const item = {
    created_at: 1_767_225_600,
    object: 'thing',
    id: 'key_1',
    owner: { id: 'org_1' },
    permissions: ['a'],
    redacted_value: 'gate_adm_Zz...RU98',
    name: 'Ops',
  }
  expect(humanForm(page([item, { id: 'key_22', name: null, expires_at: 0 }]))).toBe(
    [
      'id      name  redacted_value      created_at            expires_at',
      'key_1   Ops   gate_adm_Zz...RU98  2026-01-01T00:00:00Z  -',
      'key_22  -     -                   -                     1970-01-01T00:00:00Z',
      '',
    ].join('\n'),
  )
})

test('an unfinished list says how to go on; an empty one says that it is empty', () => {
  expect(humanForm(page([{ id: 'a' }], 'a'))).toBe(
    'id\na\n\nThere is more: --after a shows the next page.\n',
  )
  expect(humanForm(page([]))).toBe('Nothing to list.\n')
})

test('a long text is cut, an id never', () => {
  const id = 'x'.repeat(80)
  const [, row] = humanForm(page([{ id, rule: 'é'.repeat(80) }])).split('\n')
  expect(row).toBe(`${id}  ${'é'.repeat(47)}…`)
})

test('one object is a line per member; objects inside get dotted names', () => {
  const answer = {
    id: 'pol_1',
    object: 'policy',
    draft: { rule: 'one\ntwo', updated_at: 1.5 },
    tags: ['a', 'b'],
    empty: [],
    steps: [{ n: 1 }],
    archived_at: null,
  }
  expect(humanForm(answer).split('\n')).toEqual([
    'id:                pol_1',
    'draft.rule:        one',
    '                   two',
    'draft.updated_at:  1970-01-01T00:00:01.500Z',
    'tags:              a, b',
    'empty:             -',
    'steps:             [{"n":1}]',
    'archived_at:       -',
    '',
  ])
})

test('a new secret comes with the note that it is shown once', () => {
  const created = { id: 'key_1', redacted_value: 'gate_adm_Zz...RU98', value: 'gate_adm_secret' }
  expect(humanForm(created)).toContain('value:           gate_adm_secret\n\nStore the value now')
  expect(humanForm({ id: 'a', value: 1 })).not.toContain('Store')
})

test('a name cannot give orders to the terminal', () => {
  const name = 'a\u001b[2J\u009b1m\r\nb\u202ec'
  const escaped = String.raw`a\u001b[2J\u009b1m\u000d\u000ab\u202ec`
  expect(humanForm(page([{ id: '1', name }]))).toContain(escaped)
  expect(humanForm({ name })).not.toContain('\u001b')
})

test('a time no date can hold stays a number', () => {
  expect(humanForm({ created_at: 1e300 })).toBe('created_at:  1e+300\n')
})
