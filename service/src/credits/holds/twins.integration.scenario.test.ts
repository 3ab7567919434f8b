import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Db } from '#platform/database.ts'
import {
  findImbalances,
  holdOf,
  letExpire,
  openOrganization,
  postOnce,
  settlementOf,
} from '#testing/credit-calls.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'

import type { CreditMove, Moved } from './credit-move.ts'
import { moveCredits, moveCreditsOneByOne } from './move-store.ts'
import { sweepHolds } from './sweep-store.ts'

// The same random batches in two databases: in one, usual batches are moved by sets; in the other, every item is decided by
// itself. Every answer must be the same, and every row in the end. CREDIT_BATCHES sets how many, CREDIT_SEED repeats a run.

const batches = sizeOf({ usual: 1000, long: 30_000, variable: 'CREDIT_BATCHES' })
const seed = Number(process.env['CREDIT_SEED'] ?? Date.now() % 2 ** 31)
const stepsPerRun = 25
/** Longer than the test takes: only what it lets expire is swept, in both databases alike. */
const expiresInMs = 24 * 60 * 60 * 1000

type Twin = Awaited<ReturnType<typeof createTestDatabase>>
let bySets: Twin
let oneByOne: Twin
/** With statistics about functions. */
let db: Db
beforeAll(async () => {
  ;[bySets, oneByOne] = await Promise.all([createTestDatabase(), createTestDatabase()])
  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(bySets.db)
  await sql`alter database ${sql.id(rows[0]!.name)} set track_functions = 'pl'`.execute(bySets.db)
  db = connectPatiently({ url: bySets.url, poolSize: 1 })
})
afterAll(async () => {
  await db.destroy()
  await bySets[Symbol.asyncDispose]()
  await oneByOne[Symbol.asyncDispose]()
})

const someItem = fc.record({
  kind: fc.constantFrom('settle' as const, 'settle' as const, 'hold' as const, 'hold' as const),
  isRelease: fc.nat(9).map((number) => number === 0),
  organization: fc.nat(2),
  call: fc.nat(11),
  amount: fc.integer({ min: 0, max: 90 }).map(BigInt),
  /** Any amount, for any call, of any organization: then everything can happen. */
  isAny: fc.nat(4).map((number) => number === 0),
  hasNoAccount: fc.nat(40).map((number) => number === 0),
})
type SomeItem = typeof someItem extends fc.Arbitrary<infer T> ? T : never

const organization = fc.nat(2)
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('batch' as const),
      items: fc.array(someItem, { minLength: 1, maxLength: 14 }),
      isCalm: fc.boolean(),
      isMetered: fc.nat(9).map((number) => number === 0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('sweep' as const), organization }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('grant' as const),
      organization,
      amount: fc.integer({ min: 0, max: 800 }).map(BigInt),
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** What the test knows about the holds of an organization, to settle them. */
type Run = { name: string; holds: Map<string, Map<string, bigint>>; ids: number }
const met: Record<string, number> = {}
const organizationOf = ({ name }: Run, number: number) => `org_${name}_${number}`

function moveOf(item: SomeItem, isCalm: boolean, run: Run): CreditMove | undefined {
  const organizationId = organizationOf(run, item.organization)
  const open = [...(run.holds.get(organizationId) ?? [])]
  if (!isCalm && item.isAny) {
    const call = {
      organizationId: item.hasNoAccount ? 'org_without_account' : organizationId,
      id: `req_any_${item.call}`,
      amount: item.amount,
    }
    return toMove(item.isRelease ? 'release' : item.kind, call)
  }
  if (item.kind === 'hold')
    return toMove('hold', { organizationId, id: `req_${run.ids++}`, amount: item.amount })
  const [id, held] = open[item.call % Math.max(1, open.length)] ?? []
  if (id === undefined || held === undefined) return undefined
  const isRelease = !isCalm && item.isRelease
  const amount = isRelease || item.amount > held ? held : item.amount
  return toMove(isRelease ? 'release' : 'settle', { organizationId, id, amount })
}

function toMove(
  kind: CreditMove['kind'],
  call: { organizationId: string; id: string; amount: bigint },
): CreditMove {
  const { organizationId, id, amount } = call
  const subject = {
    projectId: amount % 3n === 0n ? null : 'proj_1',
    keyId: `key_${amount % 2n}`,
    model: 'model-1',
  }
  return kind === 'settle'
    ? { kind, organizationId, id, call: settlementOf({ ...call, subject }) }
    : { kind, organizationId, id, call: { ...holdOf({ ...call, subject }), expiresInMs } }
}

async function takeBatch({ items, isCalm, isMetered }: Extract<Step, { kind: 'batch' }>, run: Run) {
  const moves = new Map<string, CreditMove>()
  for (const item of items) {
    const move = moveOf(item, isCalm, run)
    if (move) moves.set(`${move.organizationId} ${move.id}`, move)
  }
  const batch = [...moves.values()]
  const answers = await moveCredits(db, batch, isMetered)
  expect(answers).toEqual(await moveCreditsOneByOne(oneByOne.db, batch, isMetered))
  for (const [index, move] of batch.entries()) note(move, answers[index]!, run)
}

function note({ kind, organizationId, call }: CreditMove, { outcome, amount }: Moved, run: Run) {
  const what = outcome === 'settled' && amount < call.amount ? 'charged less' : outcome
  met[what] = (met[what] ?? 0) + 1
  const holds = run.holds.get(organizationId)
  if (outcome === 'held') holds?.set(call.id, call.amount)
  else if (kind === 'settle') holds?.delete(call.id)
  else if (kind === 'release' && amount > 0n) holds?.delete(call.id)
}

async function take(each: Step, run: Run): Promise<void> {
  if (each.kind === 'batch') return takeBatch(each, run)
  const organizationId = organizationOf(run, each.organization)
  if (each.kind === 'grant') {
    const entry = { id: `grant_${run.ids++}`, kind: 'grant', amount: each.amount }
    await Promise.all([db, oneByOne.db].map((twin) => postOnce(twin, organizationId, entry)))
    return undefined
  }
  const [id] = run.holds.get(organizationId)?.keys() ?? []
  if (id === undefined) return undefined
  // It stays among those to settle: its settlement then comes late.
  for (const twin of [db, oneByOne.db]) {
    await letExpire(twin, organizationId, id)
    await sweepHolds(twin)
  }
  met['swept'] = (met['swept'] ?? 0) + 1
}

/** Everything about the credits of a run, but for times and for what a sweep makes up. */
async function readRun(twin: Db, { name }: Run) {
  const of = sql`organization_id like ${`org_${name}_%`}`
  const { rows } = await sql`
    select 'account' as what, to_jsonb(credit_account) as found from credit_account where ${of}
    union all select 'hold', to_jsonb(credit_hold) - 'expires_at' from credit_hold where ${of}
    union all select 'entry', to_jsonb(entry) - '{seq,at}'::text[]
      from (
        select *, row_number() over (partition by organization_id order by seq) as place
        from ledger_entry where ${of}
      ) entry
    union all select 'day', to_jsonb(usage_day) from usage_day where ${of}
    union all select 'event', case header->>'outcome'
        when 'unknown' then jsonb_build_array(organization_id, header->'request_id')
        else to_jsonb(event) - '{seq,xid}'::text[] end
      from event where ${of}
    order by what, found`.execute(twin)
  return rows
}

test(`${batches} random batches: moved by sets, nothing is different`, async () => {
  console.log(`seed ${seed}`)
  let runs = 0
  const property = fc.asyncProperty(
    fc.array(step, { minLength: stepsPerRun, maxLength: stepsPerRun }),
    async (steps) => {
      const run: Run = { name: String(runs++), holds: new Map(), ids: 0 }
      for (const number of [0, 1, 2]) {
        const id = organizationOf(run, number)
        run.holds.set(id, new Map())
        for (const twin of [db, oneByOne.db]) await openOrganization(twin, id, 500n)
      }
      for (const each of steps) await take(each, run)
      expect(await readRun(db, run)).toEqual(await readRun(oneByOne.db, run))
    },
  )
  await fc.assert(property, { numRuns: Math.ceil(batches / stepsPerRun), seed })
  expect(await findImbalances(bySets.db)).toEqual([])
  await db.destroy() // so that its statistics are written
  const { rows } = await sql<{ name: string; calls: number }>`
    select funcname as name, calls::integer from pg_stat_user_functions
    where funcname like 'move_credits%'`.execute(bySets.db)
  const calls = Object.fromEntries(rows.map((row) => [row.name, row.calls]))
  console.log(`seed ${seed}`, calls, met)
  const special = calls['move_credits'] ?? 0
  expect(special).toBeGreaterThan(batches / 10)
  expect(calls['move_credits_by_sets'] ?? 0).toBeGreaterThan(special + batches / 10)
  const outcomes = ['settled', 'charged less', 'released', 'held', 'refused', 'other_amount']
  expect(Object.keys(met)).toEqual(expect.arrayContaining([...outcomes, 'no_account', 'swept']))
}, 3_600_000)
