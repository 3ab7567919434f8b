import { Agent, request } from 'node:http'

import { createClient } from '@gatehouse/contract/client'
import { readGatewayRollout, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, test } from 'vitest'

import { hardlyLimited } from './support/hardly-limited.ts'
import { useStack } from './support/use-stack.ts'

// Each subject calls every process; the header of the answers says in which arm of the rollout it is.

const count = sizeOf({ usual: 1000, long: 10_000, variable: 'ROLLOUT_SUBJECTS' })
/** In points: four standard deviations of a share of one half, because organizations draw differently. */
const tolerance = 200 / Math.sqrt(count)
const atOnce = 12
const shadowPercent = 30

const stack = useStack({ processes: 3, environment: hardlyLimited() })
const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
const subjects = Array.from({ length: count }, (_, index) => `user-${index}`)
const payload = JSON.stringify({
  model: 'claude-scripted',
  messages: [{ role: 'user', content: 'Tell me about the falcon.' }],
})

/** Counting tokens is judged as every other call is, and is the cheapest. */
function ask(baseUrl: string, subject: string) {
  return new Promise<string>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${stack().description.project_key}`,
      'content-type': 'application/json',
      'x-policy-user': subject,
    }
    const url = new URL('/v1/messages/count_tokens', baseUrl)
    request(url, { method: 'POST', agent, headers })
      .once('error', reject)
      .once('response', (response) => {
        response.resume().once('end', () => {
          resolve(`${response.statusCode} ${String(response.headers['x-policy-decision'])}`)
        })
      })
      .end(payload)
  })
}

const armOf: Record<string, string> = {
  '400 refuse; mode=canary': 'canary',
  '200 allow; mode=shadow': 'shadow',
  '200 allow': 'outside',
}

/** What every process answers, by subject. */
async function askAll() {
  const found = new Map<string, string[]>()
  const waiting = subjects.values()
  const caller = async () => {
    for (const subject of waiting) {
      const answers = stack().apis.map(({ baseUrl }) => ask(baseUrl, subject))
      found.set(
        subject,
        (await Promise.all(answers)).map((answer) => armOf[answer] ?? answer),
      )
    }
  }
  await Promise.all(Array.from({ length: atOnce / 3 }, caller))
  return found
}

async function configure(percent: number) {
  const { base_url: baseUrl, admin_key: credential } = stack().description
  const client = createClient({ baseUrl, credential })
  const config = {
    rules: { denylist: ['falcon'] },
    rollout: {
      canary: { enabled: true, sample_percent: percent },
      shadow: { enabled: true, sample_percent: shadowPercent },
    },
  }
  await client.call(saveGatewayConfig, { body: { config } })
  await waitUntil(async () => (await client.call(readGatewayRollout, {})).is_applied)
}

test('a subject has one arm in three processes; a larger share only adds subjects', async () => {
  let before: string[] = []
  for (const percent of [20, 50]) {
    await configure(percent)
    const found = await askAll()
    const differing = [...found].filter(([, arms]) => new Set(arms).size > 1)
    expect(differing).toEqual([])
    const inArm = (arm: string) => subjects.filter((subject) => found.get(subject)?.[0] === arm)
    const canary = inArm('canary')
    const shares = [canary, inArm('shadow')].map(({ length }) => (100 * length) / count)
    console.log(`${percent} %: ${shares.join(' % canary, ')} % shadow of ${count} subjects`)
    expect(canary.length + inArm('shadow').length + inArm('outside').length).toBe(count)
    expect(Math.abs(shares[0]! - percent)).toBeLessThan(tolerance)
    expect(Math.abs(shares[1]! - shadowPercent)).toBeLessThan(tolerance)
    const now = new Set(canary)
    expect(before.filter((subject) => !now.has(subject))).toEqual([])
    before = canary
  }
})
