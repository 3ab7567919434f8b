import type { Hold, Settlement } from '#credits/settlement.ts'
import { type Db, isUniqueViolation, type NamedStatement, runNamed } from '#platform/database.ts'
import { binaryArray, plainArray } from '#platform/statements/array-values.ts'

import type { CreditMove, Moved } from './credit-move.ts'
import { type AccountSums, answerUsual, sumByAccount } from './usual-batch.ts'

type AccountRow = [accountId: string, outcome: null, posted: string, held: string]
type ItemRow = [
  accountId: null,
  outcome: Moved['outcome'],
  amount: string | null,
  rest: string | null,
]

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `$${index + 1}`)

/** The function is in migrations/0031_usual_batches.sql. */
const bySetsStatement: NamedStatement = {
  name: 'move_credits_by_sets',
  text: `select account_id, outcome, amount, rest from move_credits_by_sets(${numbered(24).join(', ')})`,
}

/** The function is in migrations/0014_move_credits.sql. */
const oneByOneStatement: NamedStatement = {
  name: 'move_credits',
  text: `select null, outcome, amount, rest from move_credits(${numbered(21).join(', ')})`,
}

/** Moves the credits of many calls; answers in the order of `moves`. No call may be in them twice. */
export async function moveCredits(
  db: Db,
  moves: readonly CreditMove[],
  isMetered: boolean,
): Promise<Moved[]> {
  const sums = sumByAccount(moves)
  const values = columnsOf(moves, isMetered)
  const rows = await runNamed<AccountRow | ItemRow>(db, bySetsStatement, [
    ...accountColumns(sums),
    ...values,
  ]).catch((error: unknown) => {
    // One of the holds was made before, and its answer was lost: nothing has been moved.
    if (!isUniqueViolation(error)) throw error
    return runNamed<ItemRow>(db, oneByOneStatement, values)
  })
  return areAccounts(rows)
    ? answerUsual(moves, sums, new Map(rows.map(toAccount)))
    : answerEach(moves, rows as ItemRow[])
}

/** The same without the short way for usual batches, for a test that compares both. */
export const moveCreditsOneByOne = async (
  db: Db,
  moves: readonly CreditMove[],
  isMetered: boolean,
) => answerEach(moves, await runNamed<ItemRow>(db, oneByOneStatement, columnsOf(moves, isMetered)))

const areAccounts = (rows: readonly (AccountRow | ItemRow)[]): rows is AccountRow[] =>
  typeof rows[0]?.[0] === 'string'

const toAccount = ([id, , posted, held]: AccountRow) =>
  [id, { posted: BigInt(posted), held: BigInt(held) }] as const

/** The rows of settlements come first, then those of releases, then those of holds. */
function answerEach(moves: readonly CreditMove[], rows: readonly ItemRow[]): Moved[] {
  if (rows.length !== moves.length) throw new Error('move_credits gave too few answers')
  const next = { settle: 0, release: 0, hold: 0 }
  for (const { kind } of moves) {
    if (kind === 'settle') next.release++
    if (kind !== 'hold') next.hold++
  }
  return moves.map(({ kind }) => toMoved(rows[next[kind]++] as ItemRow))
}

function accountColumns(sums: ReadonlyMap<string, AccountSums>) {
  const accounts = [...sums.values()]
  return [
    binaryArray('text', [...sums.keys()]),
    plainArray(accounts.map(({ charged }) => charged)),
    plainArray(accounts.map(({ held }) => held ?? 'null')),
  ]
}

function columnsOf(moves: readonly CreditMove[], isMetered: boolean) {
  const settlements: Settlement[] = []
  const releases: Hold[] = []
  const holds: Hold[] = []
  for (const move of moves) {
    if (move.kind === 'settle') settlements.push(move.call)
    else if (move.kind === 'release') releases.push(move.call)
    else holds.push(move.call)
  }
  return [
    ...settlementColumns(settlements),
    binaryArray('text', releases.map(organizationIdOf)),
    binaryArray('text', releases.map(idOf)),
    plainArray(releases.map(amountOf)),
    binaryArray('text', holds.map(organizationIdOf)),
    binaryArray('text', holds.map(idOf)),
    plainArray(holds.map(amountOf)),
    binaryArray('jsonb', holds.map(metaOf)),
    plainArray(holds.map(({ expiresInMs }) => expiresInMs)),
    isMetered,
  ]
}

function settlementColumns(settlements: readonly Settlement[]) {
  const events = settlements.map(({ event }) => event)
  return [
    binaryArray('text', settlements.map(organizationIdOf)),
    binaryArray('text', settlements.map(idOf)),
    plainArray(settlements.map(amountOf)),
    binaryArray('jsonb', settlements.map(metaOf)),
    plainArray(events.map(({ id }) => id)),
    plainArray(events.map(({ day }) => day)),
    plainArray(events.map(({ shard }) => shard)),
    plainArray(events.map(({ at }) => at.toISOString())),
    binaryArray(
      'jsonb',
      events.map(({ header }) => JSON.stringify(header)),
    ),
    binaryArray(
      'bytea',
      events.map(({ payload }) => payload),
    ),
    binaryArray(
      'bytea',
      events.map(({ salt }) => salt),
    ),
    binaryArray(
      'bytea',
      events.map(({ payloadHash }) => payloadHash),
    ),
  ]
}

const organizationIdOf = ({ organizationId }: Hold | Settlement) => organizationId
const idOf = ({ id }: Hold | Settlement) => id
const amountOf = ({ amount }: Hold | Settlement) => amount
const metaOf = ({ meta }: Hold | Settlement) => JSON.stringify(meta)

const toMoved = ([, outcome, amount, rest]: ItemRow): Moved => ({
  outcome,
  amount: BigInt(amount ?? 0),
  rest: BigInt(rest ?? 0),
})
