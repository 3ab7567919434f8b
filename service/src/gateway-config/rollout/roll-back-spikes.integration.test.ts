import {
  readGatewayRollout,
  saveGatewayConfig,
  simulateGateway,
} from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { beforeEach, expect, onTestFinished, test } from 'vitest'

import { assemble, type House } from '#assemble.ts'
import { insertEvents } from '#audit/event-store.ts'
import { buildCallEvent } from '#audit/event.ts'
import { nothingFound } from '#audit/policy-report.ts'
import { isRolledBack } from '#gateway-config/decide/arm.ts'
import { alwaysBlocked } from '#moderation/categories.ts'
import { transact } from '#platform/transaction.ts'
import { silentLog } from '#testing/silent-log.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'
import { listTasks, startWorker } from '#worker.ts'

import { sweepCallers } from './decision-count-store.ts'
import { rollBackSpikes } from './roll-back-spikes.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
let clock: ReturnType<typeof createTestClock>
beforeEach(async () => {
  clock = createTestClock()
  api = await createTestApi({ now: clock.now })
  await waitUntil(() => Number.isFinite(api.house.policies.inForce.confirmedAtMs()))
})

const minuteMs = 60_000
const pin = (house: House = api.house) =>
  house.policies.inForce.pin(api.organization.organizationId).snapshot
const isOff = (house?: House) =>
  isRolledBack(pin(house).gateway?.rolledBackUntil ?? null, clock.now())

async function save(config: object = {}, rollout: object = {}) {
  const body = { config: { ...config, rollout: { rollback_on_spike: true, ...rollout } } }
  const { status } = await api.send(saveGatewayConfig, { body })
  expect(status).toBe(200)
  return readEpoch()
}

async function readEpoch() {
  const { body } = await api.send(readGatewayRollout)
  return (body as unknown as { policy_epoch: number }).policy_epoch
}

type Calls = {
  decision: string
  epoch: number
  arm?: string | undefined
  actor?: string
  header?: object
}

/** Writes the events of this many calls. */
async function record(count: number, calls: Calls) {
  const { decision, epoch, actor = 'key_1' } = calls
  const arm = 'arm' in calls ? calls.arm : 'enforced'
  const events = Array.from({ length: count }, () => {
    const event = buildCallEvent(
      {
        organizationId: api.organization.organizationId,
        requestId: 'req_1',
        projectId: null,
        actor,
        actorType: 'project_key',
        model: null,
        target: 'messages',
        outcome: 'completed',
        dataClassification: 'internal',
        usage: { credits: 0 },
        policies: { ...nothingFound, epoch },
      },
      clock.now(),
    )
    const mode = arm !== undefined && { rollout_mode: arm }
    return { ...event, header: { ...event.header, decision, ...mode, ...calls.header } }
  })
  await insertEvents(api.db, events)
}

/** Whether a look has rolled the configuration back. */
async function look(): Promise<boolean> {
  const before = await readEpoch()
  await rollBackSpikes(api.house)
  return (await readEpoch()) > before
}

const readRollbacks = async () =>
  (await api.db.selectFrom('event').selectAll().orderBy('seq').execute())
    .map(({ header, payload }) => ({
      header: header as Record<string, unknown>,
      payload: JSON.parse(payload?.toString() ?? '') as { before: object; after: object },
    }))
    .filter(({ header }) => header['action'] === 'rolled_back')

test('a spike rolls the configuration back in every process, and an event has the numbers', async () => {
  const config = api.house.config
  const other = assemble(config, { now: clock.now, log: silentLog })
  onTestFinished(other.stop)
  const epoch = await save({ policy_id: 'strict' }, { rollback_cooldown_minutes: 10 })
  await record(15, { decision: 'allow', epoch })
  await record(4, { decision: 'refuse', epoch })
  expect(await look()).toBe(false)
  await record(1, { decision: 'escalate', epoch, arm: 'canary' })
  await waitUntil(() => pin().epoch === epoch && pin(other).epoch === epoch)
  expect([isOff(), isOff(other)]).toEqual([false, false])
  expect(await look()).toBe(true)
  await waitUntil(() => isOff() && isOff(other))
  expect([pin().epoch, pin(other).epoch]).toEqual([epoch + 1, epoch + 1])
  const until = new Date(clock.now().getTime() + 10 * minuteMs).toISOString()
  const [rollback, ...more] = await readRollbacks()
  expect(more).toEqual([])
  expect(rollback?.header).toMatchObject({
    action: 'rolled_back',
    actor: 'gatehouse',
    object: 'policy_gateway.config',
    object_id: 'strict',
    policy_id: 'strict',
    revision: 1,
    rolled_back_until: until,
    requests: 20,
    hits: 5,
    share: 0.25,
    credentials: 1,
    credentials_refused: 1,
    threshold: 0.25,
    window_minutes: 15,
    rollback_decisions: ['refuse', 'escalate'],
  })
  expect(rollback?.payload).toMatchObject({
    before: { revision: 1 },
    after: { revision: 1, rolled_back_until: until },
  })
  const { body } = await api.send(readGatewayRollout)
  expect(body).toMatchObject({ rolled_back_until: `${until.slice(0, 19)}Z` })
  const simulated = await api.send(simulateGateway, { body: {} })
  expect(simulated.body).toMatchObject({ rollout_mode: 'rollback' })
})

test('it ends with the cool-down, in every process by itself, and begins to count anew', async () => {
  const epoch = await save({}, { rollback_cooldown_minutes: 2 })
  await record(20, { decision: 'refuse', epoch })
  expect(await look()).toBe(true)
  await waitUntil(isOff)
  clock.pass(2 * minuteMs - 1)
  expect([isOff(), await look()]).toEqual([true, false])
  clock.pass(1)
  // The refused calls are still in the window, but from before the rollback.
  expect([isOff(), await look()]).toEqual([false, false])
  await record(20, { decision: 'refuse', epoch: epoch + 1 })
  expect(await look()).toBe(true)
  expect(await readRollbacks()).toHaveLength(2)
})

test('what is older than the window does not count', async () => {
  const epoch = await save({}, { rollback_window_minutes: 5 })
  await record(20, { decision: 'refuse', epoch })
  clock.pass(6 * minuteMs)
  await record(1, { decision: 'allow', epoch })
  expect(await look()).toBe(false)
})

test('shadow, other organizations, and configurations without rollback_on_spike do not count', async () => {
  const epoch = await save()
  await record(50, { decision: 'refuse', epoch, arm: 'shadow' })
  expect(await look()).toBe(false)
  await save({}, { rollback_on_spike: false })
  await record(50, { decision: 'refuse', epoch: epoch + 1 })
  expect(await look()).toBe(false)
})

test('decisions of older rules do not count against new ones; a change of the rollout keeps them', async () => {
  const first = await save()
  await record(19, { decision: 'refuse', epoch: first })
  const second = await save({ rules: { denylist: ['bomb'] } })
  await record(1, { decision: 'refuse', epoch: second })
  expect(await look()).toBe(false)
  await record(18, { decision: 'refuse', epoch: second })
  const third = await save({ rules: { denylist: ['bomb'] } }, { rollback_min_requests: 20 })
  await record(1, { decision: 'refuse', epoch: third })
  expect(await look()).toBe(true)
})

test.each([
  ['other rules', { rules: { denylist: ['bomb'] } }, {}, false],
  ['switching rollbacks off', {}, { rollback_on_spike: false }, false],
  ['another share', {}, { canary: { enabled: true, sample_percent: 5 } }, true],
])('%s: the rollback goes on is %s', async (_, config, rollout, goesOn) => {
  const epoch = await save()
  await record(20, { decision: 'refuse', epoch })
  expect(await look()).toBe(true)
  await waitUntil(isOff)
  const saved = await save(config, rollout)
  await waitUntil(() => pin().epoch === saved)
  expect(isOff()).toBe(goesOn)
})

test('200: the rollout shows what the arms decided by the rules that are saved, of the last day', async () => {
  const older = await save()
  await record(3, { decision: 'refuse', epoch: older })
  const epoch = await save({ rules: { denylist: ['bomb'] } })
  await record(9, { decision: 'refuse', epoch, arm: 'canary' })
  clock.pass((24 * 60 + 1) * minuteMs)
  await record(9, { decision: 'allow', epoch, arm: 'canary' })
  await record(1, { decision: 'refuse', epoch, arm: 'canary' })
  await record(2, { decision: 'rewrite', epoch, arm: 'shadow' })
  const { body } = await api.send(readGatewayRollout)
  const { arms, ...rollout } = body as unknown as {
    arms: { arm: string; requests: number; decisions: { decision: string; requests: number }[] }[]
  }
  expect(rollout).toMatchObject({ rolled_back_until: null, counted_since: '2026-06-01T12:01:00Z' })
  expect(arms.map(({ arm, requests }) => [arm, requests])).toEqual([
    ['canary', 10],
    ['shadow', 2],
    ['enforced', 0],
  ])
  const refused = arms.map(({ decisions }) => decisions.find((each) => each.decision === 'refuse'))
  expect(refused).toEqual([
    {
      decision: 'refuse',
      requests: 1,
      share: 0.1,
      share_low: expect.closeTo(0.0179, 4) as number,
      share_high: expect.closeTo(0.4042, 4) as number,
    },
    {
      decision: 'refuse',
      requests: 0,
      share: 0,
      share_low: 0,
      share_high: expect.closeTo(0.6576, 4) as number,
    },
    { decision: 'refuse', requests: 0, share: null, share_low: 0, share_high: 1 },
  ])
})

test('several processes that look at once roll back once', async () => {
  const epoch = await save()
  await record(20, { decision: 'refuse', epoch })
  await Promise.all(Array.from({ length: 5 }, () => rollBackSpikes(api.house)))
  expect(await readRollbacks()).toHaveLength(1)
  expect(await readEpoch()).toBe(epoch + 1)
})

test('the worker looks at all candidates without a rest, and rests shortly however long a look took', async () => {
  const task = listTasks(api.house).find(({ name }) => name === 'rollbacks')
  if (!task || !('run' in task)) throw new Error('There is no such task.')
  const epoch = await save()
  await record(20, { decision: 'refuse', epoch })
  const rest = () => Promise.reject(new Error('It rests.'))
  await task.run({ signal: new AbortController().signal, rest })
  expect(await readRollbacks()).toHaveLength(1)
  // A rollback takes less than 5 seconds, also if the look before has waited for the database.
  expect(Math.max(task.restMaxMs ?? Infinity, task.everyMs)).toBeLessThan(3000)
})

test('one of several credentials cannot have the configuration rolled back', async () => {
  const epoch = await save()
  await record(500, { decision: 'refuse', epoch, actor: 'key_1' })
  await record(1, { decision: 'allow', epoch, actor: 'key_2' })
  expect(await look()).toBe(false)
  // Two of three are more than half.
  await record(1, { decision: 'refuse', epoch, actor: 'https://idp.example|jane' })
  expect(await look()).toBe(true)
  const [rollback] = await readRollbacks()
  expect(rollback?.header).toMatchObject({ credentials: 3, credentials_refused: 2 })
})

test.each([
  ['in the shadow', { arm: 'shadow' }],
  ['outside of the rollout', { arm: undefined }],
  ['over a quota', { header: { reason_code: 'USER_QUOTA_EXCEEDED' } }],
])('nor where the calls of the others are %s', async (_, others) => {
  const epoch = await save()
  await record(50, { decision: 'refuse', epoch, actor: 'key_1' })
  await record(1, { decision: 'allow', epoch, actor: 'key_2', ...others })
  expect(await look()).toBe(false)
})

test.each(alwaysBlocked)(
  'what is refused for %s, which no rule allows, does not count',
  async (category) => {
    const epoch = await save()
    const header = { triggered_categories: [category] }
    await record(500, { decision: 'refuse', epoch, header })
    expect(await look()).toBe(false)
    await record(20, { decision: 'refuse', epoch, header: { triggered_categories: ['hate'] } })
    expect(await look()).toBe(true)
  },
)

test('others who were refused by older rules, or before the window, do not count', async () => {
  const older = await save()
  await record(10, { decision: 'refuse', epoch: older, actor: 'key_2' })
  await record(10, { decision: 'refuse', epoch: older, actor: 'key_3' })
  const epoch = await save({ rules: { denylist: ['bomb'] } })
  clock.pass(20 * minuteMs)
  await record(50, { decision: 'refuse', epoch, actor: 'key_1' })
  await record(1, { decision: 'allow', epoch, actor: 'key_2' })
  expect(await look()).toBe(false)
})

test('many credentials share the places that there are, and are swept', async () => {
  const epoch = await save()
  const day = clock.now().toISOString().slice(0, 10)
  for (let batch = 0; batch < 4; batch++) {
    await sql`
      insert into event (day, id, shard, organization_id, kind, at, header, payload, salt, payload_hash)
      select ${day}::date, gen_random_uuid(), 0, ${api.organization.organizationId}, 'enforcement',
        ${clock.now()}, jsonb_build_object('phase', 'call', 'actor', ${`${batch}|`}::text || number,
          'decision', 'refuse', 'rollout_mode', 'enforced', 'policy_epoch', ${epoch}::bigint,
          'data_classification', 'internal'),
        '{}', decode(repeat('00', 16), 'hex'), decode(repeat('00', 32), 'hex')
      from generate_series(1, 5000) number`.execute(api.db)
  }
  const callers = async () =>
    (await api.db.selectFrom('gateway_caller').select('caller').execute()).map(
      ({ caller }) => caller,
    )
  const known = await callers()
  // 20,000 of them have about 17,230 of 65,536 places.
  expect(Math.abs(known.length - 17_230)).toBeLessThan(400)
  expect(Math.max(...known)).toBeLessThan(65_536)
  expect(await look()).toBe(true)
  const later = new Date(clock.now().getTime() + minuteMs)
  expect(await transact(api.db, (tx) => sweepCallers(tx, later, 100_000))).toBe(known.length)
  expect(await callers()).toEqual([])
})

test('the worker looks by itself', async () => {
  const epoch = await save()
  await record(20, { decision: 'refuse', epoch })
  const worker = startWorker(api.house)
  onTestFinished(worker.stop)
  await waitUntil(isOff)
  expect(await readRollbacks()).toHaveLength(1)
})
