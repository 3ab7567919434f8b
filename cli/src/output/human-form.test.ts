import { expect, test } from 'vitest'

import { humanForm as formOf } from './human-form.ts'
import { listColumns } from './list-columns.ts'
import { terminalWidth } from './terminal-width.ts'

const humanForm = (answer: unknown, columns?: readonly string[]) =>
  formOf(answer, { width: 80, columns })

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
      'id      name  redacted_value      created_at (UTC)  expires_at (UTC)',
      'key_1   Ops   gate_adm_Zz...RU98  2026-01-01 00:00  -',
      'key_22  -     -                   -                 1970-01-01 00:00',
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

test('a report is what it is about, its list, and its sums', () => {
  const latency = { count: 2, p50_ms: 80 }
  const report = {
    object: 'report',
    span: 'hour',
    from: 1_767_225_600,
    data: [{ start: 1_767_225_600, calls: 2, latency }],
    total: [{ calls: 2, latency }],
  }
  expect(humanForm(report, ['start', 'calls', 'latency.p50_ms'])).toBe(
    [
      'span:  hour',
      'from:  2026-01-01 00:00:00 UTC',
      '',
      'start (UTC)       calls  latency.p50_ms',
      '2026-01-01 00:00  2      80',
      '',
      'total:',
      'calls  latency.p50_ms',
      '2      80',
      '',
    ].join('\n'),
  )
})

const id = `pol_${'x'.repeat(24)}`

test('a table fits the terminal: texts are cut as far as they must be, ids never', () => {
  const item = { id, name: 'é'.repeat(60), rule: 'word '.repeat(20), state: 'enforcing', extra: 7 }
  const [head, row, ...note] = humanForm(page([item]), Object.keys(item)).split('\n')
  expect(head).toBe(`id${' '.repeat(28)}name${' '.repeat(16)}rule${' '.repeat(10)}state      extra`)
  expect(row).toBe(`${id}  ${'é'.repeat(17)}…  word word w…  enforcing  7`)
  expect(note).toEqual([''])
  const [, wide] = formOf(page([item]), { width: 200, columns: ['id', 'name'] }).split('\n')
  expect(wide).toBe(`${id}  ${'é'.repeat(47)}…`)
})

test('columns without room are named; those without values are left out', () => {
  const item = { id, other_id: id, third_id: id, empty: null, state: 'x' }
  expect(humanForm(page([item]), Object.keys(item)).split('\n')).toEqual([
    'id                            other_id                      state',
    `${id}  ${id}  x`,
    '',
    'No room for third_id: a wider terminal or --json shows all.',
    '',
  ])
  const long = 'x'.repeat(100)
  expect(
    humanForm(page([{ id: long, state: 'x' }]))
      .split('\n')
      .slice(0, 2),
  ).toEqual(['id', long])
})

test('quotas and budgets show what is used, and of how much, at 80 columns', () => {
  const usage = (used: number, limit: number | null) => ({ used, limit })
  const quota = {
    id: 'a',
    subject: `proj_${'a'.repeat(24)}`,
    kind: 'quota',
    scope: 'project',
    window: 'monthly',
    window_end: '2026-12-01T00:00:00Z',
    requests: usage(12, 1000),
    tokens: usage(5, null),
  }
  const none = { requests: undefined, tokens: undefined }
  const budget = { ...quota, ...none, credits: usage(78, 100_000_000), hard_stop: true }
  const shown = humanForm(page([quota, budget]), listColumns['listGatewayQuotas'])
  expect(shown.split('\n').slice(0, 3)).toEqual([
    'subject                        credits       requests  tokens  window   scope',
    'proj_aaaaaaaaaaaaaaaaaaaaaaaa  -             12/1000   5       monthly  project',
    'proj_aaaaaaaaaaaaaaaaaaaaaaaa  78/100000000  -         -       monthly  project',
  ])
})

test('a member of an object inside is a column, too', () => {
  const item = { id: '1', record: { created_at: '2026-01-01T00:00:00.123Z', action: 'created' } }
  expect(humanForm(page([item]), ['id', 'record.created_at', 'record.action'])).toBe(
    'id  created_at (UTC)  action\n1   2026-01-01 00:00  created\n',
  )
})

test.each([
  [120, '100', 120],
  [undefined, '100', 100],
  [undefined, undefined, 80],
  [0, 'many', 80],
  [5, undefined, 40],
])('a terminal of %j and COLUMNS=%j: %i columns', (columns, variable, width) => {
  expect(terminalWidth(columns, variable)).toBe(width)
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
    'draft.updated_at:  1970-01-01 00:00:01 UTC',
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

test('texts that are times are shown as times; those that only look like them are not changed', () => {
  const answer = { created: 1_767_225_600, window_end: '2026-12-01T00:00:00Z', note: '2026-12' }
  expect(humanForm({ ...answer, odd: '2026-99-01T00:00:00Z' }).split('\n')).toEqual([
    'created:     2026-01-01 00:00:00 UTC',
    'window_end:  2026-12-01 00:00:00 UTC',
    'note:        2026-12',
    'odd:         2026-99-01T00:00:00Z',
    '',
  ])
})

test('a time no date can hold stays a number', () => {
  expect(humanForm({ created_at: 1e300 })).toBe('created_at:  1e+300\n')
})
