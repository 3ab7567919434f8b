import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { scriptedModeration } from '@gatehouse/tools/scripted-moderation'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { assemble } from '#assemble.ts'
import { loadConfig } from '#config.ts'
import type { Arm } from '#gateway-config/decide/arm.ts'
import { drawArm } from '#gateway-config/decide/draw-arm.ts'
import { createServer } from '#http/server.ts'
import { serveRoutes } from '#routes.ts'
import { completion, type PlainCalls, preparePlainCalls, sendPlain } from '#testing/plain-calls.ts'
import { silentLog } from '#testing/silent-log.ts'
import { generousLimits, masterKey } from '#testing/test-gateway.ts'

// The configuration in several processes of one deployment.

/** All processes of a deployment have it. */
const deploymentKey = masterKey(1)
const prepare = () => preparePlainCalls({ environment: { MASTER_KEYS: deploymentKey } })

async function makeFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-state-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

type Process = Pick<PlainCalls, 'app' | 'house'>

/** Another process with the same models, on the same database unless the settings say otherwise. */
async function startProcess({ house }: PlainCalls, settings: Record<string, string>) {
  const { DATABASE_URL, MODELS_FILE = '' } = house.config
  const config = loadConfig({
    DATABASE_URL,
    MODELS_FILE,
    MASTER_KEYS: deploymentKey,
    ...generousLimits,
    ...scriptedModeration,
    ...settings,
  })
  const other = assemble(config, { log: silentLog })
  const app = createServer({ ...other, trustedProxies: [], connectionsMax: 100 })
  serveRoutes(app, other, () => [])
  await app.ready()
  const end = async () => {
    await app.close()
    await other.stop()
  }
  let ended: Promise<void> | undefined
  const stop = () => (ended ??= end())
  onTestFinished(stop)
  await waitUntil(() => Number.isFinite(other.policies.inForce.confirmedAtMs()))
  return { app, house: other, stop }
}

const gatewayIn = ({ house }: Process, { organization }: PlainCalls) =>
  house.policies.inForce.pin(organization.organizationId).snapshot.gateway

/** Saves a configuration, and waits until all of these processes apply it. */
async function configure(calls: PlainCalls, processes: readonly Process[], config: object) {
  const { status, body } = await calls.send(saveGatewayConfig, { body: { config } })
  const { revision } = body as unknown as { revision: number }
  expect(status).toBe(200)
  await waitUntil(() => processes.every((each) => gatewayIn(each, calls)?.revision === revision))
}

const post = ({ app }: Process, { credential }: PlainCalls, content: string, headers = {}) =>
  app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: `Bearer ${credential}`, ...headers },
    payload: { model: 'm', messages: [{ role: 'user', content }] },
  })

const patience = { timeout: 120_000 }

test(
  'a process that starts without the database enforces what it last knew',
  patience,
  async () => {
    const calls = await prepare()
    calls.upstream.behave = (response) => sendPlain(response, completion('Hello'))
    await configure(calls, [calls], { rules: { denylist: ['bomb'] } })
    const STATE_DIRECTORY = await makeFolder()
    const first = await startProcess(calls, { STATE_DIRECTORY })
    expect((await post(first, calls, 'Hello')).statusCode).toBe(200) // its key is known from now on
    await first.stop()
    const late = await startProcess(calls, {
      STATE_DIRECTORY,
      DATABASE_URL: 'postgres://postgres@127.0.0.1:1/none',
    })
    const answer = await post(late, calls, 'A BOMB')
    expect([answer.statusCode, answer.headers['x-policy-decision']]).toEqual([
      400,
      'refuse; mode=enforced',
    ])
    expect(answer.body).toContain('policy_blocked')
  },
)

/** Arms are drawn at random: of this many subjects, a share is off by a percentage point once in 100,000 runs. */
const subjects = Array.from({ length: 50_000 }, (_, number) => `user-${number}`)
const rolledOut = (percent: number) => ({
  rules: { denylist: ['bomb'] },
  rollout: {
    canary: { enabled: true, sample_percent: percent },
    shadow: { enabled: true, sample_percent: 30 },
  },
})

test(
  'a subject has one arm in all processes, and a larger share only adds subjects',
  patience,
  async () => {
    const calls = await prepare()
    calls.upstream.behave = (response) => sendPlain(response, completion('Hello'))
    const start = async () => startProcess(calls, { STATE_DIRECTORY: await makeFolder() })
    const processes = [calls, await start(), await start()]
    let canary = new Set<string>()
    for (const percent of [10, 35, 60]) {
      await configure(calls, processes, rolledOut(percent))
      const drawn = processes.map((each) => {
        const gateway = gatewayIn(each, calls)!
        return subjects.map((subject) =>
          drawArm(gateway, { subject, targets: ['messages'], isRolledBack: false }),
        )
      })
      expect(drawn[1]?.join()).toBe(drawn[0]?.join())
      expect(drawn[2]?.join()).toBe(drawn[0]?.join())
      const arms = drawn[0]!
      const shareOf = (arm: Arm) => (arms.filter((each) => each === arm).length / arms.length) * 100
      expect(Math.abs(shareOf('canary') - percent)).toBeLessThan(1)
      expect(Math.abs(shareOf('shadow') - 30)).toBeLessThan(1)
      const now = new Set(subjects.filter((_, number) => arms[number] === 'canary'))
      expect([...canary].filter((subject) => !now.has(subject))).toEqual([])
      canary = now

      // Calls meet what was drawn.
      for (const [number, subject] of subjects.slice(0, 12).entries()) {
        const answers = await Promise.all(
          processes.map((each) => post(each, calls, 'A bomb', { 'x-policy-user': subject })),
        )
        const arm = arms[number]
        const decision =
          arm === 'outside' ? 'allow' : `${arm === 'canary' ? 'refuse' : 'allow'}; mode=${arm}`
        expect(answers.map(({ headers }) => headers['x-policy-decision'])).toEqual(
          processes.map(() => decision),
        )
      }
    }
  },
)
