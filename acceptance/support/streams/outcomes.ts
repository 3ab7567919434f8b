import type { Stack } from '@gatehouse/tools/start-stack'
import { expect } from 'vitest'

import { type Answer, beginRaw, type Format, formats, pathOf } from './call.ts'
import { expectBrokenStream } from './errors.ts'

// Whether calls are served or refused, in every format, streamed and plain.

export type Way = { name: string; format: Format; isStreamed: boolean }

export const ways: readonly Way[] = formats.flatMap((format) => [
  { name: `${format}, streamed`, format, isStreamed: true },
  { name: `${format}, plain`, format, isStreamed: false },
])

type Outcome = 'refused' | 'served'

/** What became of a call; a stream that was cut is refused too. */
export function outcomeOf({ status, text }: Answer): string {
  if (/policy_blocked|moderation_blocked/.test(text)) return 'refused'
  return status === 200 ? 'served' : `${status} ${text}`
}

export function send({ description }: Stack, format: Format, body: object): Promise<Answer> {
  const { base_url: baseUrl, project_key: credential } = description
  const payload = JSON.stringify(body)
  return beginRaw({ baseUrl, credential }, { path: pathOf[format], payload }).answer
}

export type NamedRequest = { name: string; format: Format; body: object }

/** Sends all of the requests, some at a time, and expects one outcome of all. */
export async function expectOfAll(
  stack: Stack,
  requests: readonly NamedRequest[],
  expected: Outcome,
) {
  const outcomes: Record<string, string> = {}
  for (let at = 0; at < requests.length; at += 8) {
    await Promise.all(
      requests.slice(at, at + 8).map(async ({ name, format, body }) => {
        const answer = await send(stack, format, body)
        // Nothing of a refused request has been answered yet.
        const isExpected = answer.status === { refused: 400, served: 200 }[expected]
        outcomes[name] = isExpected ? outcomeOf(answer) : `${answer.status} ${answer.text}`
      }),
    )
  }
  expect(outcomes).toEqual(Object.fromEntries(requests.map(({ name }) => [name, expected])))
}

/** A stream is refused in its midst, because its status is sent before its answer is known. */
export function expectAnswerRefused(answer: Answer, { format, isStreamed, name }: Way) {
  expect([name, outcomeOf(answer)]).toEqual([name, 'refused'])
  if (isStreamed) expectBrokenStream(answer, format)
  else expect(answer.status).toBe(400)
}

export function expectServed(answer: Answer, { name }: Way) {
  expect([name, outcomeOf(answer)]).toEqual([name, 'served'])
}
