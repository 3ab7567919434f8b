import { expect, test } from 'vitest'

import type { Piece } from '#formats/answer.ts'
import { toProviderError } from '#formats/provider-failure.ts'
import { createFindings } from '#inference/enforcement/findings.ts'
import { answerWith } from '#inference/enforcement/replacement/sent-blocks.ts'

import { checkErrorTexts } from './check-error-texts.ts'

// `passes`: whether a text may leave. The integration tests have real rules and scorers.
function open(pieces: AsyncIterable<Piece>, passes: (text: string) => boolean = () => true) {
  const judged: string[] = []
  const guarded = checkErrorTexts(pieces, {
    findings: createFindings(),
    async *guard(given) {
      for await (const piece of given) {
        const [content] = piece.frames[0]!.source.json['content'] as [{ text: string }]
        judged.push(content.text)
        if (!passes(content.text)) throw new Error('blocked')
        yield piece
      }
    },
    redaction: null,
    asker: { owner: 'org_1', signal: new AbortController().signal },
  })
  return { guarded, judged }
}

async function* failing(error: unknown, onClosed = () => {}) {
  try {
    yield answerWith('One.')
    yield answerWith('Two.')
    throw error
  } finally {
    onClosed()
  }
}

async function readAll(guarded: AsyncIterable<Piece>) {
  let pieces = 0
  try {
    for await (const _ of guarded) pieces++
  } catch (error) {
    return { pieces, error }
  }
  return { pieces }
}

test('errors without words of a provider are thrown as they are, and not judged', async () => {
  const error = new Error('reset')
  const { guarded, judged } = open(failing(error))
  expect(await readAll(guarded)).toEqual({ pieces: 2, error })
  const silent = open(failing(toProviderError(null)))
  expect(await readAll(silent.guarded)).toMatchObject({
    error: { code: 'upstream_error', message: 'The model provider failed.' },
  })
  expect([...judged, ...silent.judged]).toEqual([])
})

const said = { message: 'Fruit.', type: 'invalid_request_error', code: 'context_length_exceeded' }
const names = 'invalid_request_error\ncontext_length_exceeded'

test('what was said is judged as one text', async () => {
  const { guarded, judged } = open(failing(toProviderError(said)))
  expect(await readAll(guarded)).toMatchObject({
    pieces: 2,
    error: { message: 'The model provider failed: Fruit.', cause: { code: said.code } },
  })
  expect(judged).toEqual([`Fruit.\n${names}`])
})

test('if that may not leave, the names are judged alone; they decide what the error is', async () => {
  const withNames = open(failing(toProviderError(said)), (text) => !text.includes('Fruit'))
  const ours = { code: 'upstream_rejected', message: 'The model provider failed.' }
  expect(await readAll(withNames.guarded)).toMatchObject({
    error: { ...ours, cause: { code: said.code } },
  })
  const bare = open(failing(toProviderError(said)), () => false)
  expect(await readAll(bare.guarded)).toMatchObject({ error: { ...ours, cause: { code: '' } } })
  for (const { judged } of [withNames, bare]) expect(judged).toEqual([`Fruit.\n${names}`, names])
})

test('an answer that is not read to its end is closed', async () => {
  let isClosed = false
  const { guarded } = open(failing(new Error('unread'), () => void (isClosed = true)))
  for await (const _ of guarded) break
  expect(isClosed).toBe(true)
})
