import { expect, test } from 'vitest'

import type { LedgerRow } from './support/credit-books.ts'
import { checkNames, compareLogs, type Findings, type Logs } from './support/credit-comparison.ts'

// The crash test believes its comparison: so each of its checks has to see what it is there for.

const organizationId = 'org_a'
const ofCall = { organizationId, model: 'crash-1', inputTokens: 10, outputTokens: 20 }
const usage: LedgerRow = {
  ...{ ...ofCall, id: 'req_1', kind: 'usage', usageSource: 'upstream' },
  ...{ debit: 'wallet', credit: 'revenue', amount: 330 },
}
const grant: LedgerRow = {
  ...{
    organizationId,
    id: 'grant-1',
    debit: 'promo',
    credit: 'wallet',
    amount: 1000,
    kind: 'grant',
  },
  ...{ model: null, inputTokens: null, outputTokens: null, usageSource: null },
}
const givenUp: LedgerRow = {
  ...{ ...usage, id: 'req_2', model: 'crash-2', kind: 'void_unknown', amount: 0 },
  ...{ inputTokens: null, outputTokens: null, usageSource: null },
}
const late: LedgerRow = { ...usage, id: 'req_2:late', model: 'crash-2', kind: 'late_usage' }
const writeoff: LedgerRow = {
  ...{ ...usage, id: 'req_1:writeoff', kind: 'writeoff', debit: 'writeoff', amount: 30 },
}
const tokens = { input: 10, output: 20, cached: 0, cacheWrite: 0, reasoning: 0 }
const answered = { key: 'org_a/crash-1', usage: tokens, pieces: 20, isWhole: true }
const heard = {
  ...{ organizationId, model: 'crash-1', requestId: 'req_1', status: 200, code: null },
  ...{ isStreamed: false, hungUp: false, isWhole: true, told: { credits: 330, remaining: 670 } },
}
const event = { organizationId, requestId: 'req_1', outcome: 'completed' }
const account = { organizationId, posted: 670, used: 330, held: 0 }
const day = { organizationId, requests: 1, credits: 330 }
const granted = { organizationId, id: 'grant-1', credits: 1000 }

const books = {
  ...{ ledger: [grant, usage], accounts: [account], holds: 0, events: [event], days: [day] },
}
const good: Logs = { told: [heard], served: [answered], books, granted: [granted] }

const failing = (logs: Logs) => {
  const findings: Findings = compareLogs(logs)
  return checkNames.filter((check) => findings[check].length > 0)
}
const withBooks = (changes: Partial<Logs['books']>): Logs => ({
  ...good,
  books: { ...books, ...changes },
})
const withLedger = (...ledger: LedgerRow[]) => withBooks({ ledger })

test('logs that agree are found in order', () => {
  expect(failing(good)).toEqual([])
})

test('so are a call that was given up, one that was charged late, and a written-off rest', () => {
  const served = [answered, { ...answered, key: 'org_a/crash-2' }]
  const unknown = { ...event, requestId: 'req_2', outcome: 'unknown' }
  const ledger = [grant, usage, givenUp]
  expect(failing({ ...withBooks({ ledger, events: [event, unknown] }), served })).toEqual([])
  const afterwards = withBooks({
    ledger: [...ledger, late],
    events: [event, unknown, { ...event, requestId: 'req_2' }],
    accounts: [{ ...account, posted: 340, used: 660 }],
    days: [{ ...day, requests: 2, credits: 660 }],
  })
  const told = [heard, { ...heard, model: 'crash-2', told: { credits: 330, remaining: null } }]
  expect(failing({ ...afterwards, served, told })).toEqual([])
  const poor = withBooks({
    ledger: [{ ...grant, amount: 300 }, { ...usage, amount: 300 }, writeoff],
    accounts: [{ ...account, posted: 0, used: 300 }],
    days: [{ ...day, credits: 300 }],
  })
  const toldLess = [{ ...heard, told: { credits: 300, remaining: 0 } }]
  expect(failing({ ...poor, told: toldLess, granted: [{ ...granted, credits: 300 }] })).toEqual([])
})

const twice = { ...usage, id: 'req_9' }
const refused = { ...heard, status: 503, told: null }
const wrong: [check: (typeof checkNames)[number], what: string, logs: Logs][] = [
  ['charged twice', 'a second request id', withLedger(grant, usage, twice)],
  [
    'charged twice',
    'charged in time and late',
    withLedger(grant, usage, { ...late, id: 'req_1:late', model: 'crash-1' }),
  ],
  [
    'charged twice',
    'charged and given up',
    withLedger(grant, usage, { ...givenUp, id: 'req_1', model: 'crash-1' }),
  ],
  ['acknowledged without a charge', 'no entry', withLedger(grant)],
  [
    'acknowledged without a charge',
    'only given up',
    withLedger(grant, { ...givenUp, id: 'req_1', model: 'crash-1' }),
  ],
  [
    'told another amount than charged',
    'told less',
    { ...good, told: [{ ...heard, told: { credits: 329, remaining: 670 } }] },
  ],
  [
    'told another amount than charged',
    'told of a rest that was written off',
    withLedger(grant, { ...usage, amount: 300 }, writeoff),
  ],
  [
    'told another amount than charged',
    'an estimate for a whole answer',
    withLedger(grant, { ...usage, usageSource: 'local-estimate' }),
  ],
  [
    'told another amount than charged',
    'a negative balance',
    { ...good, told: [{ ...heard, told: { credits: 330, remaining: -1 } }] },
  ],
  [
    'charged another amount than served',
    'another amount',
    withLedger(grant, { ...usage, amount: 329 }),
  ],
  [
    'charged another amount than served',
    "another call's tokens",
    { ...good, served: [{ ...answered, usage: { ...tokens, output: 21 } }] },
  ],
  [
    'charged another amount than served',
    'an estimate far beyond what was written',
    {
      ...withLedger(grant, { ...usage, usageSource: 'local-estimate' }),
      served: [{ ...answered, pieces: 9, isWhole: false }],
    },
  ],
  ['served without a record', 'no entry', withLedger(grant)],
  ['charged but not served', 'no answer', { ...good, served: [] }],
  ['refused but served or charged', 'refused after all', { ...good, told: [refused] }],
  [
    'refused but served or charged',
    'refused and charged',
    { ...good, told: [refused], served: [] },
  ],
  ['without exactly one event', 'none', withBooks({ events: [] })],
  ['without exactly one event', 'two', withBooks({ events: [event, event] })],
  [
    'without exactly one event',
    'one that says unknown',
    withBooks({ events: [{ ...event, outcome: 'unknown' }] }),
  ],
  [
    'without exactly one event',
    'one of no call',
    withBooks({ events: [event, { ...event, requestId: 'req_9' }] }),
  ],
  [
    'booked between wrong accounts',
    'turned round',
    withLedger(grant, { ...usage, debit: 'revenue', credit: 'wallet' }),
  ],
  [
    'booked between wrong accounts',
    'given up for money',
    withLedger(grant, usage, { ...givenUp, amount: 1 }),
  ],
  [
    'balance differs from the ledger',
    'posted',
    withBooks({ accounts: [{ ...account, posted: 671 }] }),
  ],
  ['balance differs from the ledger', 'used', withBooks({ accounts: [{ ...account, used: 329 }] })],
  [
    'balance differs from the ledger',
    'below zero',
    { ...withBooks({ ledger: [usage], accounts: [{ ...account, posted: -330 }] }), granted: [] },
  ],
  ['still held', 'a hold', withBooks({ holds: 1 })],
  ['still held', 'an account', withBooks({ accounts: [{ ...account, held: 5 }] })],
  ['sums of the days differ', 'requests', withBooks({ days: [{ ...day, requests: 2 }] })],
  ['sums of the days differ', 'none', withBooks({ days: [] })],
  ['granted other than once', 'never', withLedger(usage)],
  ['granted other than once', 'another amount', withLedger({ ...grant, amount: 999 }, usage)],
]

test.each(wrong)('%s: %s', (check, _, logs) => {
  expect(failing(logs)).toContain(check)
})

test('every check has been seen to fail', () => {
  expect(new Set(wrong.map(([check]) => check))).toEqual(new Set(checkNames))
})
