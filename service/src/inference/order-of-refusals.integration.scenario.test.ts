import { readFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'

import { expect, test } from 'vitest'

import type { Reason, Refusal } from '#testing/refusals/fault.ts'
import { prepareRefusals } from '#testing/refusals/prepare-refusals.ts'
import { reasonsBeforeChecks } from '#testing/refusals/reasons-before-checks.ts'
import { reasonsOfChecks } from '#testing/refusals/reasons-of-checks.ts'
import type { Setting } from '#testing/refusals/setting.ts'

// A call that could be refused for two reasons is refused for the one that stands first in the table of
// docs/specification/order-of-refusals.md. This is compared for every two reasons that can be true of one call.

const reasons = { ...reasonsBeforeChecks, ...reasonsOfChecks }
type Name = keyof typeof reasons
/** The earlier in the table is the first. */
type Pair = readonly [first: Name, second: Name]
const names = Object.keys(reasons) as Name[]
const reasonOf = (name: Name): Reason => reasons[name]

const unreadable: readonly Name[] = [
  'policy headers',
  'JSON',
  'form of the body',
  'model',
  'capability of the model',
  'image',
  'feature',
]

/** Reasons that cannot be true of one call, and why. */
const apart: readonly { one: readonly Name[]; other: readonly Name[]; why: string }[] = [
  {
    one: ['budget', 'size beyond the limits'],
    other: unreadable,
    why: 'A request that cannot be read has neither a price nor a number of tokens.',
  },
  { one: ['credits'], other: ['model'], why: 'A model that does not exist has no price.' },
  {
    one: ['named project'],
    other: ['permission'],
    why: 'A caller who names a project needs the permission first, which is a row of its own.',
  },
  {
    one: ['policy that cannot be evaluated'],
    other: ['plain language', 'failed judge', 'plain language, earlier answer'],
    why: 'It cannot be evaluated because there is no judge, without which these rules have no verdict.',
  },
  {
    one: ['denylist', 'flagged category'],
    other: ['escalate, rewrite or summary'],
    why: 'A configuration has one effective action for all that it finds.',
  },
]

const isApart = (first: Name, second: Name) =>
  apart.some(
    ({ one, other }) =>
      (one.includes(first) && other.includes(second)) ||
      (one.includes(second) && other.includes(first)),
  )

/** Where the later of two reasons decides, as the page says below the table. */
const exceptions: readonly Pair[] = [['failed scorer', 'flagged category']]

/** Which of two reasons decides. */
function winnerOf([first, second]: Pair): Name {
  const isReversed = exceptions.some(([one, other]) => one === first && other === second)
  return isReversed ? second : first
}

const usual = { isLocalAccepted: true, hasJudge: true, isOverQuestions: false, isSuspended: false }
const moderations = [
  {},
  { isLocalAccepted: false },
  { hasJudge: false },
  { isLocalAccepted: false, hasJudge: false },
]
const states = [{}, { isSuspended: true }]
const actions = ['refuse', 'escalate'] as const

/** Too many questions stay too many for a minute, so they come last. */
const settings: readonly Setting[] = [false, true].flatMap((isOverQuestions) =>
  moderations.flatMap((moderation) =>
    actions.flatMap((action) =>
      [false, true].flatMap((isStrict) =>
        states.map((state) => ({
          ...usual,
          isOverQuestions,
          action,
          isStrict,
          ...moderation,
          ...state,
        })),
      ),
    ),
  ),
)

const allPairs = (ordered: readonly Name[]): Pair[] =>
  ordered.flatMap((first, index) => ordered.slice(index).map((second): Pair => [first, second]))

/** What is true of a call with this pair: also the reasons that are true of every call in the setting. */
function truthsOf(pair: Pair, setting: Setting, ordered: readonly Name[]): Name[] {
  const isTrue = (name: Name) => {
    const { fault, isIn = () => true } = reasonOf(name)
    return pair.includes(name) || (!fault && isIn(setting))
  }
  // The scorers of the test read no images, wherever they are.
  const isUnread = (name: Name) =>
    name === 'image that nothing can score' && pair.includes('media URL') && setting.isStrict
  return ordered.filter((name) => isTrue(name) || isUnread(name))
}

/** Whether a call with this pair shows in this setting which of the two comes first. */
function isShownIn(pair: Pair, setting: Setting, ordered: readonly Name[]): boolean {
  const isPossible = pair.every((name) => reasonOf(name).isIn?.(setting) ?? true)
  return isPossible && truthsOf(pair, setting, ordered)[0] === pair[0]
}

type Row = { name: Name; answer: string; credits: string; asked: string }

const cells = /^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm

/** The table, whose reasons are those of the test. */
async function readTable(): Promise<Row[]> {
  const page = new URL('../../../docs/specification/order-of-refusals.md', import.meta.url)
  const rows = [...(await readFile(page, 'utf8')).matchAll(cells)].map((row) =>
    row.map((cell) => cell.trim()),
  )
  expect(rows.map(([, position]) => Number(position))).toEqual(rows.map((_, index) => index + 1))
  expect(rows).toHaveLength(names.length)
  expect(new Set(rows.map(([, , name]) => name))).toEqual(new Set(names))
  return rows.map(([, , name, answer = '', credits = '', asked = '']) => ({
    name: name as Name,
    answer,
    credits,
    asked,
  }))
}

type Refusals = Awaited<ReturnType<typeof prepareRefusals>>
type Traces = Awaited<ReturnType<Refusals['readTraces']>>

/** What a row of the table says, as far as one call shows it. */
function describe(
  { answer, credits, asked }: Row,
  { status, code }: Refusal,
  [before, after]: readonly [Traces, Traces],
) {
  return {
    isAnswer: answer.includes(code) || answer.includes(String(status)),
    isHeld: after.settled > before.settled === credits.includes('held'),
    isCharged: after.charged > before.charged,
    // What is known is not asked again.
    mayAskScorers: asked.includes('scorers') || after.scorers === before.scorers,
    mayAskJudge: asked.includes('judge') || after.judge === before.judge,
  }
}

const asDescribed = {
  isAnswer: true,
  isHeld: true,
  isCharged: false,
  mayAskScorers: true,
  mayAskJudge: true,
}

/** Makes the calls whose order this setting shows; returns those that were not refused as the table says. */
async function tryPairs({ ids, send }: Refusals, pairs: readonly Pair[]) {
  const wrong: unknown[] = []
  for (const pair of pairs) {
    const refusal = await send([...new Set(pair)].flatMap((name) => reasonOf(name).fault ?? []))
    if (!reasonOf(winnerOf(pair)).isOf(refusal, ids)) wrong.push({ pair, refusal })
  }
  return wrong
}

test(
  'of every two reasons to refuse a call the first of the table decides',
  { timeout: 300_000 },
  async () => {
    const ordered = (await readTable()).map(({ name }) => name)
    let open = allPairs(ordered).filter((pair) => !isApart(...pair))
    const refusals = await prepareRefusals()
    const wrong: unknown[] = []
    for (const setting of settings) {
      const shown = open.filter((pair) => isShownIn(pair, setting, ordered))
      if (shown.length === 0) continue
      await refusals.change(setting)
      wrong.push(...(await tryPairs(refusals, shown)))
      open = open.filter((pair) => !shown.includes(pair))
    }
    expect(wrong).toEqual([])
    // Every pair was shown in some setting.
    expect(open).toEqual([])
  },
)

test(
  'a refused call is answered, held and asked about as its row says, and never charged',
  { timeout: 120_000 },
  async () => {
    let open = await readTable()
    const ordered = open.map(({ name }) => name)
    const { send, readTraces, change } = await prepareRefusals()
    const wrong: unknown[] = []
    for (const setting of settings) {
      const shown = open.filter(({ name }) => isShownIn([name, name], setting, ordered))
      if (shown.length === 0) continue
      await change(setting)
      for (const row of shown) {
        const before = await readTraces()
        const { fault } = reasonOf(row.name)
        const refusal = await send(fault ? [fault] : [])
        const found = describe(row, refusal, [before, await readTraces()])
        if (!isDeepStrictEqual(found, asDescribed)) wrong.push({ row, found, refusal })
      }
      open = open.filter((row) => !shown.includes(row))
    }
    expect(wrong).toEqual([])
    expect(open).toEqual([])
  },
)
