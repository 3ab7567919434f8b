import type { Hold, Settlement } from '#credits/settlement.ts'
import { type Db, type NamedStatement, runNamed } from '#platform/database.ts'

import { binaryArray, plainArray } from './array-values.ts'

/** What can be done with the credits of a call. */
export type Move =
  | {
      readonly kind: 'settle'
      readonly organizationId: string
      readonly id: string
      readonly call: Settlement
    }
  | {
      readonly kind: 'release' | 'hold'
      readonly organizationId: string
      readonly id: string
      readonly call: Hold
    }

/**
 * `amount` and `rest` of a settlement are the charge and the balance after it; of a hold, what new calls could
 * use and what calls under way hold.
 */
export type Moved = {
  outcome: 'settled' | 'released' | 'held' | 'refused' | 'other_amount' | 'no_account'
  amount: bigint
  rest: bigint
}

type Row = [outcome: Moved['outcome'], amount: string | null, rest: string | null]

/** The function is in migrations/0014_move_credits.sql. */
const moveStatement: NamedStatement = {
  name: 'move_credits',
  text: `select outcome, amount, rest from move_credits(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`,
}

/** Moves the credits of many calls; answers in the order of `moves`. No call may be in them twice. */
export async function moveCredits(
  db: Db,
  moves: readonly Move[],
  isMetered: boolean,
): Promise<Moved[]> {
  const settlements: Settlement[] = []
  const releases: Hold[] = []
  const holds: Hold[] = []
  for (const move of moves) {
    if (move.kind === 'settle') settlements.push(move.call)
    else if (move.kind === 'release') releases.push(move.call)
    else holds.push(move.call)
  }
  const values = [
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
  const rows = await runNamed<Row>(db, moveStatement, values)
  if (rows.length !== moves.length) throw new Error('move_credits gave too few answers')
  const next = {
    settle: 0,
    release: settlements.length,
    hold: settlements.length + releases.length,
  }
  return moves.map(({ kind }) => toMoved(rows[next[kind]++] as Row))
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

const toMoved = ([outcome, amount, rest]: Row): Moved => ({
  outcome,
  amount: BigInt(amount ?? 0),
  rest: BigInt(rest ?? 0),
})
