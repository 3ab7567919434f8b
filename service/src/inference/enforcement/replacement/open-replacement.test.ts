import { expect, test } from 'vitest'

import type { Piece } from '#formats/answer.ts'
import { createFindings, type Findings } from '#inference/enforcement/findings.ts'
import { ApiError } from '#platform/api-error.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'

import { openReplacement } from './open-replacement.ts'
import type { Blocked, ReplacedCall } from './replacement.ts'

const policyBlocked = new ApiError('policy_blocked', 'The configuration blocks this.')
const unjudged = new ApiError('policy_evaluation_unavailable', 'Later.')
const replaceable: Blocked = {
  action: 'rewrite',
  direction: 'response',
  text: 'What was blocked.',
  categories: ['hate'],
  terms: [],
}
const replacement = { text: 'Other words.', model: 'small', tokens: 9 }

/** A call whose answer its guard ends with this error, and all that was asked for it. */
function prepare({ error = policyBlocked, isStreamed = true, isReplaceable = true } = {}) {
  const asked: { blocked: Blocked; call: ReplacedCall }[] = []
  const guarded: Findings[] = []
  const findings = { ...createFindings(), replaceable: isReplaceable ? replaceable : null }
  async function* guard(pieces: AsyncIterable<Piece>, noted: Findings) {
    guarded.push(noted)
    yield* pieces
    throw error
  }
  const { replace, replaceBlocked } = openReplacement({
    findings,
    isStreamed,
    call: {
      principal: { organizationId: 'org_1' },
      cancellation: new Cancellation(),
    } as Parameters<typeof openReplacement>[0]['call'],
    hide: null,
    questions: { begin: async () => undefined, add: () => undefined },
    asker: { owner: 'org_1', signal: new AbortController().signal },
    async replace(blocked, call) {
      asked.push({ blocked, call })
      return replacement
    },
    guard,
  })
  const answer = (pieces: AsyncIterable<Piece>) => replaceBlocked(guard(pieces, findings))
  return { findings, replace, answer, asked, guarded }
}

async function textsOf(pieces: AsyncIterable<Piece>): Promise<string[]> {
  const texts: string[] = []
  for await (const { frames } of pieces) {
    for (const event of frames.flatMap(({ events }) => events)) {
      if (event.type === 'block_delta') texts.push(event.text)
    }
  }
  return texts
}

const source = { event: '', data: '', bytes: Buffer.alloc(0), json: {} }

async function* beginning(): AsyncGenerator<Piece> {
  const events = [
    { type: 'block_started', index: 0, block: { type: 'text' } },
    { type: 'block_delta', index: 0, text: 'Well, ' },
  ] as const
  yield { format: 'messages', frames: [{ events, source }] }
}

test.each([
  [true, ['Well, ', 'Other words.']],
  [false, ['Other words.']],
])('the answer is replaced, streamed: %s', async (isStreamed, texts) => {
  const { findings, answer, asked } = prepare({ isStreamed })
  expect(await textsOf(answer(beginning()))).toEqual(texts)
  expect(asked).toMatchObject([{ blocked: replaceable, call: { organizationId: 'org_1' } }])
  expect(findings.replacement).toMatchObject({ model: 'small', tokens: 9 })
})

test('the request is replaced', async () => {
  const { findings, replace } = prepare()
  expect(await replace(policyBlocked)).toBe(replacement)
  expect(findings.replacement).toBe(replacement)
})

test.each([
  ['something failed', { error: unjudged }],
  ['something else decided', { isReplaceable: false }],
])('nothing is replaced where %s', async (_, given) => {
  const { findings, answer, replace, asked } = prepare(given)
  const { error = policyBlocked } = given as { error?: ApiError }
  await expect(textsOf(answer(beginning()))).rejects.toBe(error)
  expect(await replace(error)).toBeNull()
  expect([asked, findings.replacement]).toEqual([[], null])
})

test('a replacement is judged by the guard of the answer, and what is found in it is not kept', async () => {
  const { findings, replace, asked, guarded } = prepare()
  await replace(policyBlocked)
  await expect(textsOf(asked[0]!.call.judge(beginning()))).rejects.toBe(policyBlocked)
  expect(guarded).toEqual([createFindings()])
  expect(guarded[0]).not.toBe(findings)
})
