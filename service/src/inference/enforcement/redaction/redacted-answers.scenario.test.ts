import { setImmediate } from 'node:timers/promises'

import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { expect, test } from 'vitest'

import type { AnswerEvent, Piece } from '#formats/answer.ts'
import { callerFormats, upstreamFormats } from '#formats/formats.ts'
import { isObject } from '#formats/json-values.ts'
import { meaningOf, plainSource } from '#formats/testing/meaning-of.ts'
import { readPieces } from '#inference/enforcement/testing/guard-written.ts'
import { createAnswer } from '#inference/enforcement/testing/random-answer.ts'
import { writeAnswer } from '#inference/enforcement/testing/write-answer.ts'
import type { WrittenAnswer } from '#inference/enforcement/testing/written-frame.ts'
import { foldAnswer } from '#inference/write-answer.ts'
import { finish } from '#platform/steps/steps.ts'
import { createChoices, type Random } from '#policies/guard/testing/random-case.ts'
import { countEntities } from '#redaction/entity-counts.ts'
import { createPlaceholders } from '#redaction/placeholders.ts'
import { harmless, planted } from '#redaction/testing/corpus.ts'
import { redactText } from '#redaction/text-redactor.ts'

import { CallRedaction } from './call-redaction.ts'

// Answers as providers send them, in every format and cut into any pieces, for callers of every format.

const cases = sizeOf({ usual: 600, long: 20_000, variable: 'REDACTION_CASES' })
const seed = Number(process.env['REDACTION_SEED'] ?? Date.now() % 2 ** 31)
const formatNames = ['messages', 'responses', 'chat_completions'] as const
type FormatName = (typeof formatNames)[number]

const texts = [...planted.map(([text]) => text), ...harmless]
const writeText = (random: Random) =>
  Array.from({ length: 1 + random.below(4) }, () => random.pick(texts)).join(', then ')

const answering = {
  requestId: 'req_1',
  model: 'ours',
  createdAt: new Date(0),
  inputTokens: 1,
  request: { model: 'ours' },
}
const receipt = { remainingCredits: null, creditsUsed: 0, costUsd: 0, usage: null }
const asker = { owner: 'org_1', signal: new AbortController().signal }

async function* plainPieces(format: FormatName, { body }: WrittenAnswer): AsyncGenerator<Piece> {
  const frame = upstreamFormats.get(format)?.readPlain?.(plainSource(body))
  if (frame) yield { format, frames: [frame], isPlain: true }
}

const eventsOf = (pieces: readonly Piece[]): AnswerEvent[] =>
  pieces.flatMap(({ frames }) => frames.flatMap(({ events }) => events))

/** The blocks of an answer, which may overlap. */
function blocksOf(events: readonly AnswerEvent[]) {
  const blocks: { type: string; text: string; isSealed: boolean }[] = []
  for (const event of events) {
    if (event.type === 'block_started') {
      blocks[event.index] = { type: event.block.type, text: '', isSealed: false }
    } else if (event.type === 'block_delta') blocks[event.index]!.text += event.text
    else if (event.type === 'block_sealed') blocks[event.index]!.isSealed = true
  }
  return blocks
}

/** What came, and what left. */
async function redact(pieces: AsyncIterable<Piece>) {
  const came: Piece[] = []
  const left: Piece[] = []
  async function* watch() {
    for await (const piece of pieces) {
      came.push(piece)
      yield piece
    }
  }
  for await (const piece of new CallRedaction().redactAnswer(watch(), asker)) left.push(piece)
  return { came: eventsOf(came), left }
}

type Redacted = Awaited<ReturnType<typeof redact>>

/** The plain answer that a caller gets. */
async function answerIn(name: FormatName, pieces: readonly Piece[]): Promise<unknown> {
  async function* parts() {
    for (const piece of pieces) yield { piece }
    yield { receipt }
  }
  return JSON.parse(await foldAnswer(parts(), callerFormats[name], answering))
}

/** The strings of an answer but the arguments of tools, which pass. */
function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(stringsIn)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    name === 'arguments' || name === 'input' ? [] : stringsIn(inner),
  )
}
const hasAny = (text: string) => finish(countEntities(text)).size > 0

const unnumbered = (text: string) => text.replaceAll(/\[([A-Z]+)_\d+\]/g, '[$1]')
const redactedOf = (text: string) => unnumbered(finish(redactText(text, createPlaceholders())))

function check({ came, left }: Redacted) {
  const said = eventsOf(left)
  const expected = blocksOf(came).map(({ type, text, isSealed }) => {
    const redacted = type === 'tool_call' ? text : redactedOf(text)
    return { type, text: isSealed && redacted !== text ? '' : redacted, isSealed }
  })
  const actual = blocksOf(said).map((block) => ({ ...block, text: unnumbered(block.text) }))
  expect(actual).toEqual(expected)
  // The rules of events hold, and nothing else is different.
  const { text: _, refusal: __, reasoning: ___, ...others } = meaningOf(came)
  expect(meaningOf(said)).toMatchObject(others)
  return actual.some(({ text }) => text.includes('['))
}

test(
  `${cases} answers are redacted in every format`,
  { timeout: 60_000 + cases * 100 },
  async () => {
    let redacted = 0
    for (let number = 0; number < cases; number++) {
      const random = createChoices(seed + number)
      const format = random.pick(formatNames)
      // Texts of one kind that follow each other are one text in some formats, so that each ends with a full stop and a space.
      const blocks = createAnswer(random, (choices) => `${writeText(choices)}. `)
      const written = writeAnswer(format, blocks, random)
      const bytes = Buffer.from(
        written.frames.map((frame) => frame.bytes).join('') + (written.rest ?? ''),
      )
      const wait = () => setImmediate()
      const streamed = await redact(readPieces(format, bytes, { random, wait }))
      const plain = await redact(plainPieces(format, written))
      check(plain)
      if (check(streamed)) redacted++
      for (const name of formatNames) {
        const answers = [await answerIn(name, streamed.left), await answerIn(name, plain.left)]
        expect(answers.flatMap(stringsIn).filter(hasAny), `seed ${seed + number}`).toEqual([])
      }
    }
    console.log(`redacted answers: ${redacted} of ${cases} from seed ${seed}`)
    expect(redacted).toBeGreaterThan(cases / 10)
  },
)
