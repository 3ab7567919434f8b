import { expect, test } from 'vitest'

import type { LedgerRow } from './support/credits/books.ts'
import { checkNames, compareLogs, type Findings, type Logs } from './support/credits/comparison.ts'

// The crash test relies on its comparison, so each check must detect what it is meant to detect.

const organizationId = 'org_a'
const ofCall = { organizationId, model: 'crash-1', inputTokens: 10, outputTokens: 20 }
const usage: LedgerRow = {
  ...ofCall,
  id: 'req_1',
  kind: 'usage',
  usageSource: 'upstream',
  debit: 'wallet',
  credit: 'revenue',
  amount: 330,
}
const grant: LedgerRow = {
  organizationId,
  id: 'grant-1',
  debit: 'promo',
  credit: 'wallet',
  amount: 1000,
  kind: 'grant',
  model: null,
  inputTokens: null,
  outputTokens: null,
  usageSource: null,
}
const swept: LedgerRow = {
  ...usage,
  id: 'req_2',
  model: 'crash-2',
  kind: 'void_unknown',
  amount: 0,
  inputTokens: null,
  outputTokens: null,
  usageSource: null,
}
const late: LedgerRow = { ...usage, id: 'req_2:late', model: 'crash-2', kind: 'late_usage' }
const writeoff: LedgerRow = {
  ...usage,
  id: 'req_1:writeoff',
  kind: 'writeoff',
  debit: 'writeoff',
  amount: 30,
}
const tokens = { input: 10, output: 20, cached: 0, cacheWrite: 0, reasoning: 0 }
const answered = { key: 'org_a/crash-1', usage: tokens, pieces: 20, isWhole: true }
const clientCall = {
  organizationId,
  model: 'crash-1',
  requestId: 'req_1',
  status: 200,
  code: null,
  isStreamed: false,
  hungUp: false,
  isWhole: true,
  receipt: { credits: 330, remaining: 670 },
}
const event = { organizationId, requestId: 'req_1', outcome: 'completed' }
const account = { organizationId, posted: 670, used: 330, held: 0 }
const day = { organizationId, requests: 1, credits: 330 }
const granted = { organizationId, id: 'grant-1', credits: 1000 }

const books = {
  ledger: [grant, usage],
  accounts: [account],
  holds: 0,
  events: [event],
  days: [day],
}
const good: Logs = { clientCalls: [clientCall], served: [answered], books, granted: [granted] }

const failing = (logs: Logs) => {
  const findings: Findings = compareLogs(logs)
  return checkNames.filter((check) => findings[check].length > 0)
}
const withBooks = (changes: Partial<Logs['books']>): Logs => ({
  ...good,
  books: { ...books, ...changes },
})
const withLedger = (...ledger: LedgerRow[]) => withBooks({ ledger })

test('logs that agree have no findings', () => {
  expect(failing(good)).toEqual([])
})

test('a swept hold, a late charge and a write-off produce no findings', () => {
  const served = [answered, { ...answered, key: 'org_a/crash-2' }]
  const unknown = { ...event, requestId: 'req_2', outcome: 'unknown' }
  const ledger = [grant, usage, swept]
  expect(failing({ ...withBooks({ ledger, events: [event, unknown] }), served })).toEqual([])
  const afterwards = withBooks({
    ledger: [...ledger, late],
    events: [event, unknown, { ...event, requestId: 'req_2' }],
    accounts: [{ ...account, posted: 340, used: 660 }],
    days: [{ ...day, requests: 2, credits: 660 }],
  })
  const lateCall = { ...clientCall, model: 'crash-2', receipt: { credits: 330, remaining: null } }
  const clientCalls = [clientCall, lateCall]
  expect(failing({ ...afterwards, served, clientCalls })).toEqual([])
  const poor = withBooks({
    ledger: [{ ...grant, amount: 300 }, { ...usage, amount: 300 }, writeoff],
    accounts: [{ ...account, posted: 0, used: 300 }],
    days: [{ ...day, credits: 300 }],
  })
  const partlyPaid = { ...clientCall, receipt: { credits: 300, remaining: 0 } }
  const smallGrant = { ...granted, credits: 300 }
  expect(failing({ ...poor, clientCalls: [partlyPaid], granted: [smallGrant] })).toEqual([])
})

const twice = { ...usage, id: 'req_9' }
const refused = { ...clientCall, status: 503, receipt: null }
const wrong: [check: (typeof checkNames)[number], what: string, logs: Logs][] = [
  ['charged twice', 'a second request id', withLedger(grant, usage, twice)],
  [
    'charged twice',
    'charged in time and late',
    withLedger(grant, usage, { ...late, id: 'req_1:late', model: 'crash-1' }),
  ],
  [
    'charged twice',
    'charged and swept',
    withLedger(grant, usage, { ...swept, id: 'req_1', model: 'crash-1' }),
  ],
  ['acknowledged without a charge', 'no entry', withLedger(grant)],
  [
    'acknowledged without a charge',
    'only swept',
    withLedger(grant, { ...swept, id: 'req_1', model: 'crash-1' }),
  ],
  [
    'receipt differs from the charge',
    'a smaller receipt',
    { ...good, clientCalls: [{ ...clientCall, receipt: { credits: 329, remaining: 670 } }] },
  ],
  [
    'receipt differs from the charge',
    'a receipt that includes the write-off',
    withLedger(grant, { ...usage, amount: 300 }, writeoff),
  ],
  [
    'receipt differs from the charge',
    'an estimate for a whole answer',
    withLedger(grant, { ...usage, usageSource: 'local-estimate' }),
  ],
  [
    'receipt differs from the charge',
    'a negative balance',
    { ...good, clientCalls: [{ ...clientCall, receipt: { credits: 330, remaining: -1 } }] },
  ],
  [
    'charge differs from what was served',
    'another amount',
    withLedger(grant, { ...usage, amount: 329 }),
  ],
  [
    'charge differs from what was served',
    "another call's tokens",
    { ...good, served: [{ ...answered, usage: { ...tokens, output: 21 } }] },
  ],
  [
    'charge differs from what was served',
    'an estimate far above what was written',
    {
      ...withLedger(grant, { ...usage, usageSource: 'local-estimate' }),
      served: [{ ...answered, pieces: 9, isWhole: false }],
    },
  ],
  ['served without a record', 'no entry', withLedger(grant)],
  ['charged but not served', 'no answer', { ...good, served: [] }],
  ['refused but served or charged', 'refused and served', { ...good, clientCalls: [refused] }],
  [
    'refused but served or charged',
    'refused and charged',
    { ...good, clientCalls: [refused], served: [] },
  ],
  ['without exactly one event', 'none', withBooks({ events: [] })],
  ['without exactly one event', 'two', withBooks({ events: [event, event] })],
  [
    'without exactly one event',
    'one with the outcome unknown',
    withBooks({ events: [{ ...event, outcome: 'unknown' }] }),
  ],
  [
    'without exactly one event',
    'one without a call',
    withBooks({ events: [event, { ...event, requestId: 'req_9' }] }),
  ],
  [
    'booked between wrong accounts',
    'debit and credit swapped',
    withLedger(grant, { ...usage, debit: 'revenue', credit: 'wallet' }),
  ],
  [
    'booked between wrong accounts',
    'a swept hold with an amount',
    withLedger(grant, usage, { ...swept, amount: 1 }),
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
  [
    'daily totals differ from the ledger',
    'requests',
    withBooks({ days: [{ ...day, requests: 2 }] }),
  ],
  ['daily totals differ from the ledger', 'none', withBooks({ days: [] })],
  ['not granted exactly once', 'never', withLedger(usage)],
  ['not granted exactly once', 'another amount', withLedger({ ...grant, amount: 999 }, usage)],
]

test.each(wrong)('%s: %s', (check, _, logs) => {
  expect(failing(logs)).toContain(check)
})

test('every check has an example that fails it', () => {
  expect(new Set(wrong.map(([check]) => check))).toEqual(new Set(checkNames))
})
