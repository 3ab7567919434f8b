import { simulateGateway } from '@gatehouse/contract/policy-gateway/gateway'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import {
  everyWay,
  isCounting,
  nameOf,
  openEveryWay,
} from '#inference/enforcement/testing/every-way.ts'

// Calls are decided as simulations of the same texts are: 25 configurations of the grid, each with 20 texts, in every format,
// streamed and plain.

const actions = [
  {},
  { refusal_replacement: { mode: 'refuse' } },
  { refusal_replacement: { mode: 'escalate', escalation_path: 'help@example.com' } },
  { refusal_replacement: { mode: 'rewrite' } },
  { refusal_replacement: { mode: 'summary' } },
  { rules: { rewrite_instead_of_refuse: true } },
]
const allowlists = [[], ['fish']]
const denylists = [['bird'], []]
const flagged = [['hate'], [], ['hate', 'sexual']]
const rollouts = [
  {},
  { canary: { enabled: true, sample_percent: 100 } },
  { shadow: { enabled: true, sample_percent: 100 } },
]
const codes = [[], ['REFUSE_A', 'ALLOW_A', 'ESCALATE_A', 'SUMMARY_A', 'REWRITE_A'], ['OTHER']]

const pick = <T>(list: readonly T[], number: number): T => list[number % list.length]!

/** The numbers of the dimensions have no common factors with the steps, so that their values meet in many ways. */
const configs = Array.from({ length: 25 }, (_, number) => {
  const action = pick(actions, number)
  return {
    ...action,
    policy_id: `config-${number}`,
    rules: {
      ...action.rules,
      allowlist: pick(allowlists, Math.floor(number / 3)),
      denylist: pick(denylists, Math.floor(number / 5)),
      flagged_categories: pick(flagged, Math.floor(number / 2)),
      reason_codes: pick(codes, Math.floor(number / 4)),
    },
    rollout: pick(rollouts, Math.floor(number / 6) + number),
  }
})

const texts = ['', 'A fish.'].flatMap((allowed) =>
  ['', 'A BIRD.'].flatMap((denied) =>
    ['', 'hate', 'sexual', 'self-harm', 'hate self-harm'].map((found) => {
      const marks = found.split(' ').flatMap((name) => (name ? [`[[cat:${name}=0.9]]`] : []))
      return ['Well.', allowed, denied, ...marks].filter((each) => each !== '').join(' ')
    }),
  ),
)
const ways = everyWay.filter(({ caller }) => caller !== 'anonymous')

type Simulated = {
  decision: string
  reason_code: string
  rollout_mode: string
  policy_id: string
  triggered_categories: string[]
  allowlist_hits: string[]
  denylist_hits: string[]
  matches: object[]
}
type Header = Partial<Simulated> & { policy_user?: string; effective_decision: string }

/** What the lists alone refuse is not shown to scorers that cost something. */
const isScored = (
  { decision, rollout_mode, ...found }: Simulated,
  config: (typeof configs)[number],
) => {
  const misses = config.rules.allowlist.length > 0 && found.allowlist_hits.length === 0
  const hits = found.denylist_hits.length > 0 && ['refuse', undefined].includes(actionOf(config))
  return rollout_mode === 'shadow' || decision !== 'refuse' || !(misses || hits)
}
const actionOf = ({
  refusal_replacement,
  rules,
}: {
  refusal_replacement?: { mode: string }
  rules: object
}) => ('rewrite_instead_of_refuse' in rules ? 'rewrite' : refusal_replacement?.mode)

/** Without a rewriter every replacement fails, and what is always blocked is refused in every mode. */
function effectiveOf({ decision, rollout_mode, triggered_categories }: Simulated) {
  if (triggered_categories.includes('self-harm')) return 'refuse'
  if (rollout_mode === 'shadow') return 'allow'
  return decision === 'rewrite' || decision === 'summary' ? 'refuse' : decision
}

test('500 calls are decided as they are simulated', { timeout: 600_000 }, async () => {
  const { api, ask, configure } = await openEveryWay()
  const expected = new Map<string, object>()
  const served = new Map<string, string>()
  for (const [number, config] of configs.entries()) {
    await configure(config)
    const cells = texts.map((text, index) => {
      const cell = number * texts.length + index
      return { text, user: `cell-${cell}`, way: pick(ways, cell * 7) }
    })
    await Promise.all(
      cells.map(async ({ text, user, way }) => {
        const { body } = await api.send(simulateGateway, { body: { scenario: { text } } })
        const simulated = body as unknown as Simulated
        const { triggered_categories, allowlist_hits, denylist_hits, matches, ...rest } = simulated
        // Their numbers may differ: terms that differ only in case share a place.
        expect(matches.length > 0).toBe(allowlist_hits.length + denylist_hits.length > 0)
        const effective = effectiveOf(simulated)
        const triggered = isScored(simulated, config) ? triggered_categories : []
        expected.set(user, {
          ...rest,
          effective_decision: effective,
          ...(triggered.length > 0 && { triggered_categories: triggered }),
          ...(allowlist_hits.length > 0 && { allowlist_hits }),
          ...(denylist_hits.length > 0 && { denylist_hits }),
        })
        const outcome = await ask(way, { asked: text, headers: { 'x-policy-user': user } })
        const wanted = effective === 'allow' ? 'served' : 'blocked'
        served.set(`${user} ${nameOf(way)} ${outcome}`, `${user} ${nameOf(way)} ${wanted}`)
      }),
    )
  }
  expect([...served.keys()]).toEqual([...served.values()])
  const { rows } = await sql<{ header: Header }>`
    select header from event where kind = 'enforcement' and header ? 'policy_user'`.execute(api.db)
  const found = new Map(rows.map(({ header }) => [header.policy_user, header]))
  const picked = [...expected].map(([user, members]) => {
    const header = found.get(user) as Record<string, unknown> | undefined
    const names = [...new Set([...Object.keys(members), ...compared])]
    return [
      user,
      Object.fromEntries(
        names.flatMap((name) => (header && name in header ? [[name, header[name]]] : [])),
      ),
    ]
  })
  expect(Object.fromEntries(picked)).toEqual(Object.fromEntries(expected))
  expect(expected.size).toBe(500)
  expect(ways.some(({ endpoint }) => isCounting(endpoint))).toBe(true)
})

const compared = ['triggered_categories', 'allowlist_hits', 'denylist_hits']
