import { expect } from 'vitest'

import { type Call, everyWay, isCounting, nameOf, openEveryWay } from './every-way.ts'

/** The models take turns. Anonymous calls have no policies. */
export const ways = everyWay
  .filter((_, number) => number % 3 === Math.floor(number / 3) % 3)
  .filter(({ caller }) => caller !== 'anonymous')

type Talk = { asked?: string; answered?: string }
export const inRequest = (text: string): Talk => ({ asked: text })
export const inAnswer = (text: string): Talk => ({ answered: `${text} Forty-two.` })

/** What each way to a model makes of a talk, each outcome once. */
export async function outcomesOf(ask: (way: Call, talk: Talk) => Promise<string>, talk: Talk) {
  const met = ways.filter(({ endpoint }) => talk.asked !== undefined || !isCounting(endpoint))
  const answers = await Promise.all(met.map((way) => ask(way, talk)))
  return new Set(
    answers.map((answer, index) =>
      ['served', 'blocked'].includes(answer) ? answer : `${nameOf(met[index]!)}: ${answer}`,
    ),
  )
}

type Texts = { broken: string; harmless: string }

/** An enforcing rule ends what breaks it, in requests and answers, and nothing else. */
export async function expectBlockedOnEveryWay(rule: string, { broken, harmless }: Texts) {
  const { ask, putInForce } = await openEveryWay()
  await putInForce({ mode: 'enforcing', rule, direction: 'both' }, false)
  for (const place of [inRequest, inAnswer]) {
    expect(await outcomesOf(ask, place(broken))).toEqual(new Set(['blocked']))
    expect(await outcomesOf(ask, place(harmless))).toEqual(new Set(['served']))
  }
}

export async function expectOnlyMonitored(rule: string, broken: string) {
  const { ask, putInForce } = await openEveryWay()
  await putInForce({ mode: 'monitoring', rule }, false)
  for (const place of [inRequest, inAnswer]) {
    expect(await outcomesOf(ask, place(broken))).toEqual(new Set(['served']))
  }
}
