import { isDeepStrictEqual } from 'node:util'

import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createRandom } from '#testing/fault-proxy.ts'
import { createTestApi } from '#testing/test-api.ts'

import { createWriters, readConfigSet, slotsOf, type Written } from './testing/random-writers.ts'

// Two sets and a person write the same objects at once. The audit log has every change in the order in which the locks let
// them happen: a model replays it. MANAGED_WRITES sets the number of requests, MANAGED_SEED repeats a choice of them.

const size = sizeOf({ usual: 600, long: 10_000, variable: 'MANAGED_WRITES' })
const seed = Number(process.env['MANAGED_SEED'] ?? Date.now() % 2 ** 31)
const atOnce = 8
const writers = ['platform', 'shop', null]

type Resource = { managed_by: string | null }
type Change = {
  action: string
  objectId: string
  requestId: string
  before: Resource | null
  after: Resource | null
}

test(`no write of two sets and a person is lost or overwrites another's (seed ${seed})`, async () => {
  const api = await createTestApi()
  const draw = createRandom(seed)
  const random = (below: number) => Math.floor(draw() * below)
  const { take, writes } = createWriters(api)
  const slots = slotsOf()
  let next = 0
  const write = async () => {
    while (next < size) {
      const name = `n${next++}`
      await take({
        slot: slots[random(slots.length)]!,
        set: writers[random(writers.length)]!,
        takesOver: random(100) < 10,
        deed: random(100),
        name,
      })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, write))
  expect(writes).toHaveLength(size)

  const byRequest = new Map(writes.map((written) => [written.requestId, written]))
  const changes = (await readChanges(api)).filter(({ requestId }) => byRequest.has(requestId))
  const history = replay(changes, byRequest)
  checkAnswers(writes, history)
  const last = history.sets.get('policy-gateway')
  expect(await readConfigSet(api)).toBe(last?.at(-1))
})

async function readChanges({ db, organization }: Awaited<ReturnType<typeof createTestApi>>) {
  const { rows } = await sql<{ header: Record<string, string>; payload: Buffer }>`
    select header, payload from event
    where organization_id = ${organization.organizationId} and kind = 'revision' order by seq`.execute(
    db,
  )
  return rows.map(({ header, payload }): Change => {
    const content = JSON.parse(payload.toString()) as Pick<Change, 'before' | 'after'>
    const { action = '', object_id: objectId = '', request_id: requestId = '' } = header
    return { action, objectId, requestId, ...content }
  })
}

type History = {
  /** The sets that have managed an object, one after the other. */
  sets: Map<string, (string | null)[]>
  /** The actions of a request, in their order. */
  actions: Map<string, string[]>
}

/** Every change begins with what the one before has left, and was made by a request that may make it. */
function replay(changes: readonly Change[], byRequest: ReadonlyMap<string, Written>): History {
  const states = new Map<string, Resource | null>()
  const sets: History['sets'] = new Map()
  const actions: History['actions'] = new Map()
  for (const { action, objectId, requestId, before, after } of changes) {
    const { endpoint, set, takesOver, status } = byRequest.get(requestId)!
    const state = states.get(objectId) ?? null
    if (!isDeepStrictEqual(before, state))
      throw new Error(`${objectId}: ${requestId} has overwritten a change`)
    expect(status).toBeLessThan(300)
    if (action === 'taken_over') {
      expect([takesOver, before!.managed_by !== set, after]).toEqual([
        true,
        true,
        { ...before, managed_by: set },
      ])
    } else if (endpoint.managed === 'exempt') {
      if (after) expect(after.managed_by).toBe(before!.managed_by)
    } else {
      const managed = [before, after].map((each) => (each ? each.managed_by : set))
      expect(managed).toEqual([set, set])
    }
    states.set(objectId, after)
    if (after) sets.set(objectId, [...(sets.get(objectId) ?? []), after.managed_by])
    actions.set(requestId, [...(actions.get(requestId) ?? []), action])
  }
  return { sets, actions }
}

function checkAnswers(writes: readonly Written[], { actions }: History) {
  const counts = { changed: 0, refused: 0, takenOver: 0, exempt: 0, other: 0 }
  for (const { endpoint, set, takesOver, status, code, message, requestId, shown } of writes) {
    const made = actions.get(requestId) ?? []
    if (code === 'managed_elsewhere') {
      // The exceptions are never refused, and neither is what takes over.
      expect([endpoint.managed, takesOver]).toEqual(['change', false])
      const [, named = null] = /by the set '(.+)'/.exec(message) ?? []
      expect(named).not.toBe(set)
      counts.refused++
    } else if (status >= 300) {
      expect([
        'policy_not_active',
        'no_unpublished_changes',
        'revision_conflict',
        'limit_reached',
      ]).toContain(code?.endsWith('_not_found') ? 'revision_conflict' : code)
      counts.other++
    } else if (endpoint.managed === 'exempt') {
      counts.exempt++
    } else {
      if (shown !== undefined) expect(shown).toBe(set)
      // Every name is new, so a change that is answered as done has been recorded.
      expect(made.filter((action) => action !== 'taken_over')).toHaveLength(1)
      counts.changed++
    }
    if (status >= 300) expect(made).toEqual([])
    if (made.includes('taken_over')) counts.takenOver++
  }
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(size / 100)
}
