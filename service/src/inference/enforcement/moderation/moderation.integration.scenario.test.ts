import { expect, test } from 'vitest'

import {
  type Call,
  everyWay,
  isCounting,
  nameOf,
  openEveryWay,
} from '#inference/enforcement/testing/every-way.ts'
import { alwaysBlocked, categories, type Category } from '#moderation/categories.ts'

// The scripted scorer reads marks such as [[cat:hate=0.9]]. Two categories are blocked in every call, whatever its way to a
// model; the others where its caller asks for it.

const optional = categories.filter((each) => !isAlwaysBlocked(each))
function isAlwaysBlocked(category: Category): boolean {
  return (alwaysBlocked as readonly Category[]).includes(category)
}

/** The models take turns: how their answers are written is the concern of other tests. */
const ways = everyWay.filter((_, number) => number % 3 === Math.floor(number / 3) % 3)
const directions = ['request', 'response'] as const
const mark = (category: Category, score = '0.9') => `Words [[cat:${category}=${score}]] and words.`

/** The text stands in the request, or in the answer; an answer that is served begins with what `ask` looks for. */
const talkOf = (direction: (typeof directions)[number], text: string) =>
  direction === 'request' ? { asked: text } : { answered: `${text} Forty-two.` }

const meets = ({ endpoint }: Call, direction: (typeof directions)[number]) =>
  direction === 'request' || !isCounting(endpoint)

const takesFlags = ({ endpoint }: Call) => !isCounting(endpoint)

type Asked = {
  way: Call
  text: string
  expected: 'blocked' | 'served'
  members?: object
  headers?: object
}

async function expectAll(asked: readonly Asked[]) {
  const { ask } = await openEveryWay()
  const cells = asked.flatMap((each) =>
    directions.filter((it) => meets(each.way, it)).map((direction) => ({ ...each, direction })),
  )
  const name = ({ way, direction, text, members, headers }: (typeof cells)[number]) =>
    `${nameOf(way)} ${direction} ${text} ${JSON.stringify({ members, headers })}`
  const outcomes: string[] = []
  // Not all at once, because the process would refuse some of them.
  for (let first = 0; first < cells.length; first += 50) {
    const some = cells.slice(first, first + 50)
    const answers = await Promise.all(
      some.map(({ way, direction, text, members = {}, headers = {} }) =>
        ask(way, { ...talkOf(direction, text), members, headers }),
      ),
    )
    outcomes.push(...answers.map((answer, index) => `${name(some[index]!)}: ${answer}`))
  }
  expect(outcomes).toEqual(cells.map((cell) => `${name(cell)}: ${cell.expected}`))
  console.log(`${cells.length} calls were moderated`)
}

const patience = { timeout: 300_000 }

test('flagged_categories: each value blocks its category, and no other', patience, () =>
  expectAll(
    ways.filter(takesFlags).flatMap((way, number) =>
      categories.flatMap((category) =>
        [[], [optional[number % optional.length]!], [...optional]].map((flagged): Asked => ({
          way,
          text: mark(category),
          members: { flagged_categories: flagged },
          expected: isAlwaysBlocked(category) || flagged.includes(category) ? 'blocked' : 'served',
        })),
      ),
    ),
  ),
)

/** What an attacker might try. None of these means anything to moderation. */
const attempts: readonly Omit<Asked, 'way' | 'text' | 'expected'>[] = [
  {},
  { members: { flagged_categories: [] } },
  { members: { metadata: { user_id: 'moderation-off' } } },
  { headers: { 'x-policy-mode': 'shadow' } },
  { headers: { 'x-moderation': 'off', 'openai-beta': 'moderation=off' } },
  { headers: { 'x-policy-target': 'none', 'x-policy-user': 'nobody' } },
]

test('what is always blocked cannot be switched off by a field or a header', patience, () =>
  expectAll(
    ways.flatMap((way) =>
      alwaysBlocked.flatMap((category) =>
        attempts
          .filter(({ members }) => takesFlags(way) || !members)
          .map((attempt): Asked => ({
            ...attempt,
            way,
            text: mark(category),
            expected: 'blocked',
          })),
      ),
    ),
  ),
)

test('below the threshold everything passes', patience, () =>
  expectAll(
    ways.map((way): Asked => ({
      way,
      text: `${mark('self-harm', '0.39')} ${mark('sexual/minors', '0.19')}`,
      expected: 'served',
    })),
  ),
)

test(
  'what is always blocked is blocked whatever the policies of the organization do',
  patience,
  async () => {
    const { ask, putInForce } = await openEveryWay()
    for (const [mode, isPaused] of [
      ['monitoring', false],
      ['enforcing', false],
      ['enforcing', true],
    ] as const) {
      // It matches no text here.
      const end = await putInForce({ mode, rule: 'cel: text.contains("[[absent]]")' }, isPaused)
      for (const direction of directions) {
        const met = ways.filter((way) => meets(way, direction))
        const answers = await Promise.all(
          met.map((way) => ask(way, talkOf(direction, mark('sexual/minors')))),
        )
        expect(new Set(answers), `${mode} ${direction}`).toEqual(new Set(['blocked']))
      }
      await end()
    }
  },
)
