import { expect, test } from 'vitest'

import {
  type Call,
  everyWay as cells,
  isCounting,
  nameOf,
  openEveryWay,
} from './testing/every-way.ts'

// A policy that matches everything blocks every call to a model, with a key or a token, in every format, on the way in and on
// the way out, streamed or not; and blocks none while it only monitors or is paused. Anonymous callers have no policies.

const directions = ['request', 'response', 'both'] as const
const forces = ['enforcing', 'monitoring', 'paused'] as const

function expectedOf({ endpoint, caller }: Call, direction: string, force: string): string {
  const hasPolicies = caller !== 'anonymous'
  // Counting tokens has a request and no answer.
  const isJudged = direction !== 'response' || !isCounting(endpoint)
  return hasPolicies && isJudged && force === 'enforcing' ? 'blocked' : 'served'
}

test('every call is judged, whatever its way to a model', { timeout: 300_000 }, async () => {
  const { ask, putInForce, served } = await openEveryWay()
  for (const direction of directions) {
    for (const force of forces) {
      const mode = force === 'monitoring' ? 'monitoring' : 'enforcing'
      const end = await putInForce({ direction, mode }, force === 'paused')
      const before = served()
      const outcomes = await Promise.all(
        cells.map(async (call) => `${nameOf(call)}: ${await ask(call)}`),
      )
      expect(outcomes, `${direction} ${force}`).toEqual(
        cells.map((call) => `${nameOf(call)}: ${expectedOf(call, direction, force)}`),
      )
      // A request that is blocked never reaches a model.
      if (force === 'enforcing' && direction !== 'response') {
        const anonymous = cells.filter(({ caller }) => caller === 'anonymous')
        expect(served() - before).toBe(anonymous.length)
      }
      await end()
    }
  }
})

// The same for the configuration of the policy gateway: one of its terms is in every request, or in every answer.

const sides = {
  request: { rules: { denylist: ['GO.'] } },
  response: { rules: { denylist: ['[[END]]'] } },
  allowlist: { rules: { allowlist: ['nothing says this'] } },
}
/** The request has it too, in the script of the upstream, but the brackets are hidden there. */
const answered = '[[end]] Forty-two.'
const modes = {
  enforced: {},
  canary: { canary: { enabled: true, sample_percent: 100 } },
  shadow: { shadow: { enabled: true, sample_percent: 100 } },
  outside: { canary: { enabled: true, sample_percent: 0 } },
}

test('the configuration decides about every call', { timeout: 300_000 }, async () => {
  const { ask, configure, served } = await openEveryWay()
  for (const [side, config] of Object.entries(sides)) {
    for (const [mode, rollout] of Object.entries(modes)) {
      await configure({ ...config, rollout })
      const isEnforced = mode === 'enforced' || mode === 'canary'
      const before = served()
      const outcomes = await Promise.all(
        cells.map(async (call) => `${nameOf(call)}: ${await ask(call, { answered })}`),
      )
      expect(outcomes, `${side} ${mode}`).toEqual(
        cells.map((call) => {
          const expected = expectedOf(call, side, isEnforced ? 'enforcing' : 'monitoring')
          return `${nameOf(call)}: ${expected}`
        }),
      )
      if (isEnforced && side !== 'response') {
        const anonymous = cells.filter(({ caller }) => caller === 'anonymous')
        expect(served() - before).toBe(anonymous.length)
      }
    }
  }
})

test(
  'with project_keys only what belongs to a project may call',
  { timeout: 300_000 },
  async () => {
    const { ask, configure } = await openEveryWay()
    await configure({ org_controls: { project_keys: true } })
    const expected = { key: 'served', token: '403', anonymous: 'served' }
    const outcomes = await Promise.all(
      cells.map(async (call) => `${nameOf(call)}: ${(await ask(call)).split(' ')[0]}`),
    )
    expect(outcomes).toEqual(cells.map((call) => `${nameOf(call)}: ${expected[call.caller]}`))
    const [byToken] = cells.filter(({ caller }) => caller === 'token')
    expect(await ask(byToken!)).toContain('name a project themselves')
  },
)
