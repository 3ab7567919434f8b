import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import type { Json, OutFrame } from '#formats/answer.ts'
import { responseCallerFormat } from '#formats/responses/response-format.ts'
import { parseStream } from '#formats/testing/parse-stream.ts'

import {
  answering,
  credits,
  eventsOf,
  finishedStreams,
  goldenStreams,
  parseOutput,
  readAll,
  receipt,
  sumUp,
} from './golden-streams.ts'

const terminalOf = (bytes: Buffer): Json =>
  parseStream([bytes]).findLast(({ json }) => json['response'])!.json['response'] as Json

function passAll(pieces: readonly Buffer[]): OutFrame[] {
  const writer = responseCallerFormat.createPassThrough(answering)
  const passed = readAll(parseStream(pieces)).flatMap((frame) => writer.write(frame))
  return [...passed, ...writer.close(receipt)]
}

function rewriteAll(bytes: Buffer): OutFrame[] {
  const writer = responseCallerFormat.createWriter(answering)
  const written = readAll(parseStream([bytes])).flatMap((frame) => writer.write(frame))
  return [...written, ...writer.close(receipt)]
}

const anonymous = (items: unknown) => (items as Json[]).map((item) => ({ ...item, id: 'any' }))

/** Streams with items that another format would not have made. */
const isRewrittenAlike = (name: string) =>
  ![
    'content-filter',
    'custom-tool',
    'encrypted-reasoning',
    'hidden-reasoning',
    'max-tokens',
    'no-snapshot',
    'raw-reasoning',
    'two-parts',
    'web-search',
  ].includes(name)

describe.each(finishedStreams)('$name', ({ name, bytes, summary }) => {
  test('is read as what it says', () => {
    expect(sumUp(eventsOf(parseStream([bytes])))).toEqual(summary)
  })

  test('is handed on byte by byte up to its last frame', () => {
    const frames = passAll([bytes])
    const untouched = Buffer.concat(frames.flatMap((frame) => frame.bytes ?? []))
    expect(untouched).toEqual(bytes.subarray(0, untouched.length))
    const rest = parseStream([bytes.subarray(untouched.length)])
    expect(rest).toHaveLength(1)
    expect(frames.at(-1)).toEqual({
      event: rest[0]!.event,
      data: { ...rest[0]!.json, response: { ...terminalOf(bytes), ...credits } },
      bytes: null,
    })
  })

  test('becomes the plain answer it describes, with its bill', () => {
    const body = responseCallerFormat.fold(passAll([bytes]))
    const terminal = terminalOf(bytes)
    const output =
      name === 'no-snapshot' ? [expect.objectContaining({ id: 'msg_o1' })] : terminal['output']
    expect(body).toEqual({ ...terminal, output, ...credits })
  })

  test('says the same when it is written anew', () => {
    const written = rewriteAll(bytes)
    const again = sumUp(eventsOf(parseOutput(written)))
    const ids = again.blocks.map(({ opaque }) => opaque?.id ?? null)
    expect(again).toEqual({
      ...summary,
      id: 'resp_0123456789abcdefghjkmnpq',
      model: 'house-model',
      blocks: summary.blocks.map((block, index) => ({
        ...block,
        opaque: block.opaque && { ...block.opaque, id: ids[index] },
      })),
    })
    const body = responseCallerFormat.fold(written)
    const { status, incomplete_details, usage } = terminalOf(bytes)
    expect(body).toMatchObject({ status, incomplete_details, usage, ...credits })
  })
})

test.each(finishedStreams.filter(({ name }) => isRewrittenAlike(name)))(
  '$name has the same items when it is written anew',
  ({ bytes }) => {
    const body = responseCallerFormat.fold(rewriteAll(bytes))
    expect(anonymous(body['output'])).toEqual(anonymous(terminalOf(bytes)['output']))
  },
)

test('streams that break off are read up to there and say why', () => {
  const read = (name: string) =>
    eventsOf(parseStream([goldenStreams.find((stream) => stream.name === name)!.bytes]))
  expect(() => read('error-in-the-middle')).toThrow(
    expect.objectContaining({
      code: 'overloaded',
      message: 'The model provider failed: Slow down, please.',
    }),
  )
  expect(() => read('failed-in-the-middle')).toThrow(
    expect.objectContaining({
      code: 'upstream_rejected',
      message: 'The model provider failed: The input is too long for this model.',
    }),
  )
  expect(read('early-end').map(({ type }) => type)).toEqual([
    'started',
    'block_started',
    'block_delta',
  ])
})

test('pieces of any size give the same events and the same output', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...finishedStreams),
      fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 30 }),
      ({ bytes }, sizes) => {
        const pieces: Buffer[] = []
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = sizes[turn % sizes.length]!
          pieces.push(bytes.subarray(at, at + size))
          at += size
        }
        expect(readAll(parseStream(pieces))).toEqual(readAll(parseStream([bytes])))
        expect(passAll(pieces)).toEqual(passAll([bytes]))
      },
    ),
    { numRuns: 60 },
  )
})
