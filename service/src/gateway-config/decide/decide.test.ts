import { GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import { expect, test } from 'vitest'

import type { Arm } from './arm.ts'
import { type Decision, decide, type Facts } from './decide.ts'

const nothing: Facts = {
  arm: 'enforced',
  exceededQuotas: new Set(),
  terms: null,
  categories: [],
}

test('the worked example', () => {
  const config = GivenGatewayConfig.parse({
    rules: { flagged_categories: ['hate'], rewrite_instead_of_refuse: true },
  })
  const categories = ['hate/threatening', 'violence']
  expect(decide(config, { ...nothing, categories })).toMatchObject({
    decision: 'rewrite',
    reasonCode: 'REWRITE',
    triggeredCategories: ['hate/threatening'],
  })
  expect(
    decide(config, { ...nothing, categories: [...categories, 'self-harm/intent'] }),
  ).toMatchObject({
    decision: 'refuse',
    reasonCode: 'REFUSE',
    triggeredCategories: ['hate/threatening', 'self-harm/intent'],
  })
})

// The truth table, cell by cell. What is expected stands in tables of its own, which share nothing with the code.

type Action = 'rewrite' | 'summary' | 'escalate' | 'refuse'
const actions = [undefined, 'rewrite', 'summary', 'escalate', 'refuse'] as const

/** By the mode and the pattern that are given (`-`: not given), without and with rewrite_instead_of_refuse. */
const expectedActions: Record<string, [plain: Action, rewriting: Action]> = {
  '- -': ['refuse', 'rewrite'],
  '- rewrite': ['rewrite', 'rewrite'],
  '- summary': ['summary', 'summary'],
  '- escalate': ['escalate', 'escalate'],
  '- refuse': ['refuse', 'rewrite'],
  'rewrite -': ['rewrite', 'rewrite'],
  'rewrite rewrite': ['rewrite', 'rewrite'],
  'rewrite summary': ['rewrite', 'rewrite'],
  'rewrite escalate': ['rewrite', 'rewrite'],
  'rewrite refuse': ['rewrite', 'rewrite'],
  'summary -': ['summary', 'summary'],
  'summary rewrite': ['summary', 'summary'],
  'summary summary': ['summary', 'summary'],
  'summary escalate': ['summary', 'summary'],
  'summary refuse': ['summary', 'summary'],
  'escalate -': ['escalate', 'escalate'],
  'escalate rewrite': ['escalate', 'escalate'],
  'escalate summary': ['escalate', 'escalate'],
  'escalate escalate': ['escalate', 'escalate'],
  'escalate refuse': ['escalate', 'escalate'],
  'refuse -': ['refuse', 'rewrite'],
  'refuse rewrite': ['refuse', 'rewrite'],
  'refuse summary': ['refuse', 'rewrite'],
  'refuse escalate': ['refuse', 'rewrite'],
  'refuse refuse': ['refuse', 'rewrite'],
}

const quotas = [
  { exceeded: [], code: null },
  { exceeded: ['user'], code: 'USER_QUOTA_EXCEEDED' },
  { exceeded: ['project'], code: 'PROJECT_QUOTA_EXCEEDED' },
  { exceeded: ['project', 'user'], code: 'USER_QUOTA_EXCEEDED' },
] as const

const allowlists = [
  { list: [], hits: [], isMissed: false },
  { list: ['fish'], hits: ['fish'], isMissed: false },
  { list: ['fish'], hits: [], isMissed: true },
]
const denylists = [
  { list: [], hits: [] },
  { list: ['bird'], hits: [] },
  { list: ['bird'], hits: ['bird'] },
]

/** With `hate` and `fraud/tax` flagged. */
const found = [
  { categories: [], triggered: [], outside: [] },
  { categories: ['violence', 'fraud', 'hateful'], triggered: [], outside: [] },
  { categories: ['violence', 'hate'], triggered: ['hate'], outside: [] },
  {
    categories: ['hate/x', 'fraud/tax', 'sexual'],
    triggered: ['hate/x', 'fraud/tax'],
    outside: [],
  },
  { categories: ['self-harm'], triggered: ['self-harm'], outside: ['self-harm'] },
  {
    categories: ['sexual/minors', 'hate', 'self-harm/intent'],
    triggered: ['sexual/minors', 'hate', 'self-harm/intent'],
    outside: ['sexual/minors', 'self-harm/intent'],
  },
]

const arms: Record<Arm, { isEnforced: boolean; hasQuotas?: boolean }> = {
  enforced: { isEnforced: true },
  canary: { isEnforced: true },
  shadow: { isEnforced: false },
  rollback: { isEnforced: false, hasQuotas: true },
  outside: { isEnforced: false },
}

const codes = [
  { declared: [], suffix: '' },
  { declared: ['OTHER', 'REFUS'], suffix: '' },
  { declared: ['REFUSE_B', 'REFUSE', 'ALLOW', 'ESCALATE', 'SUMMARY', 'REWRITE'], suffix: '' },
  {
    declared: ['REFUSE_A', 'REFUSE_B', 'ALLOW_A', 'ESCALATE_A', 'SUMMARY_A', 'REWRITE_A'],
    suffix: '_A',
  },
]

const capitals: Record<Decision, string> = {
  allow: 'ALLOW',
  rewrite: 'REWRITE',
  summary: 'SUMMARY',
  escalate: 'ESCALATE',
  refuse: 'REFUSE',
}

type Cell = {
  quota: (typeof quotas)[number]
  allow: (typeof allowlists)[number]
  deny: (typeof denylists)[number]
  seen: (typeof found)[number]
  hasText: boolean
  arm: Arm
  action: Action
  code: (typeof codes)[number]
}

function expected({ quota, allow, deny, seen, hasText, arm, action, code }: Cell): string {
  const triggered = arm === 'outside' ? seen.outside : seen.triggered
  const fires: Record<string, boolean> = {
    quota: arm !== 'outside' && quota.code !== null,
    allowlist: arm !== 'outside' && hasText && allow.isMissed,
    always: seen.outside.length > 0,
    denylist: arm !== 'outside' && hasText && deny.hits.length > 0,
    flagged: triggered.length > 0,
  }
  const first = Object.keys(fires).find((rule) => fires[rule]) ?? 'nothing'
  const decisions: Record<string, Decision> = {
    quota: 'refuse',
    allowlist: 'refuse',
    always: 'refuse',
    denylist: action,
    flagged: action,
    nothing: 'allow',
  }
  const decision = decisions[first]!
  const { isEnforced, hasQuotas = isEnforced } = arms[arm]
  const isApplied = first === 'quota' ? hasQuotas : isEnforced
  const applied = isApplied ? decision : 'allow'
  const isShown = arm !== 'outside' && hasText
  return JSON.stringify([
    decision,
    seen.outside.length > 0 ? 'refuse' : applied,
    first === 'quota' ? quota.code : `${capitals[decision]}${code.suffix}`,
    triggered,
    isShown ? allow.hits : [],
    isShown ? deny.hits : [],
  ])
}

/** All values of one dimension with all of the others. */
function* cells(): Generator<Omit<Cell, 'action' | 'code'>> {
  for (const quota of quotas)
    for (const allow of allowlists)
      for (const deny of denylists)
        for (const seen of found)
          for (const hasText of [true, false])
            for (const arm of Object.keys(arms) as Arm[])
              yield { quota, allow, deny, seen, hasText, arm }
}

const factsOf = ({ quota, allow, deny, seen, hasText, arm }: Omit<Cell, 'action' | 'code'>) => ({
  arm,
  exceededQuotas: new Set<'user' | 'project'>(quota.exceeded),
  terms: hasText ? { allowlist: allow.hits, denylist: deny.hits } : null,
  categories: seen.categories,
})

test('every cell of the grid is as the truth table says', () => {
  const wrong: unknown[] = []
  let count = 0
  const settings = actions.flatMap((mode) =>
    actions.flatMap((pattern) =>
      [false, true].flatMap((rewrites) => codes.map((code) => ({ mode, pattern, rewrites, code }))),
    ),
  )
  for (const { mode, pattern, rewrites, code } of settings) {
    const config = GivenGatewayConfig.parse({
      rules: {
        flagged_categories: ['hate', 'fraud/tax'],
        reason_codes: code.declared,
        rewrite_instead_of_refuse: rewrites,
        ...(pattern && { response_pattern: pattern }),
      },
      ...(mode && { refusal_replacement: { mode } }),
    })
    const action = expectedActions[`${mode ?? '-'} ${pattern ?? '-'}`]![rewrites ? 1 : 0]
    for (const cell of cells()) {
      const rules = { ...config.rules, allowlist: cell.allow.list, denylist: cell.deny.list }
      const outcome = decide({ ...config, rules }, factsOf(cell))
      const got = JSON.stringify([
        outcome.decision,
        outcome.effectiveDecision,
        outcome.reasonCode,
        outcome.triggeredCategories,
        outcome.terms.allowlist,
        outcome.terms.denylist,
      ])
      const want = expected({ ...cell, action, code })
      if (got !== want && wrong.length < 5) wrong.push({ ...cell, mode, pattern, got, want })
      count++
    }
  }
  expect(wrong).toEqual([])
  expect(count).toBeGreaterThan(5000)
})
