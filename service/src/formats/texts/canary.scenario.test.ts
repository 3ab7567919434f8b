import { expect, test } from 'vitest'

import type { Json, SourceFrame } from '#formats/answer.ts'
import { goldens as chatGoldens } from '#formats/chat-completions/testing/golden-streams.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { upstreamFormats } from '#formats/formats.ts'
import { objectOf } from '#formats/json-values.ts'
import { bytesOf, expectedOf, wholeStreams } from '#formats/messages/testing/golden-streams.ts'
import { goldenStreams } from '#formats/responses/testing/golden-streams.ts'
import { parseStream } from '#formats/testing/parse-stream.ts'

import type { FrameTexts } from './frame-texts.ts'
import { rareFrames } from './testing/rare-frames.ts'
import { stringPlacesIn } from './testing/string-places.ts'

// A canary takes the place of each string of each recorded answer, one at a time. It must be found in a text, unless
// its member is listed here. A new member of a recorded answer that is neither makes this test fail.

const names = ['messages', 'responses', 'chat_completions'] as const

/** Members that are no text if they hold an identifier, in every format and at every place. */
const identifiers: Record<string, string> = {
  id: 'chosen by the provider',
  object: 'chosen from a fixed list',
  role: 'chosen from a fixed list',
  status: 'chosen from a fixed list',
  type: 'chosen from a fixed list',
  model: 'the name of the model',
}

const encrypted = 'encrypted or binary: no rule can read it'
const signature = 'a seal on reasoning that is judged itself'
const fixed = 'chosen from a fixed list'
const echo = 'what the caller sent, or a setting'
const padding = 'random padding'

/** Members that are no text, whatever they hold. */
const noText: Record<CallerFormatName, Record<string, string>> = {
  messages: {
    'content_block.data': encrypted,
    'content[].data': encrypted,
    'content_block.signature': signature,
    'content[].signature': signature,
    'delta.signature': signature,
    'delta.stop_reason': fixed,
    stop_reason: fixed,
    'message.usage.service_tier': fixed,
    'usage.service_tier': fixed,
  },
  responses: {
    'item.encrypted_content': encrypted,
    'response.output[].encrypted_content': encrypted,
    'output[].encrypted_content': encrypted,
    'item.result': encrypted,
    delta: encrypted, // only of audio: see below
    obfuscation: padding,
    'response.instructions': echo,
    'response.service_tier': echo,
    'response.text.format.name': echo,
    'response.text.format.schema.type': echo,
    'response.text.format.type': echo,
    'response.text.verbosity': echo,
    'response.tool_choice': echo,
    'response.truncation': echo,
    'response.incomplete_details.reason': fixed,
    'incomplete_details.reason': fixed,
    instructions: echo,
    service_tier: echo,
    'text.format.name': echo,
    'text.format.schema.type': echo,
    'text.format.type': echo,
    'text.verbosity': echo,
    tool_choice: echo,
    truncation: echo,
  },
  chat_completions: {
    'choices[].delta.reasoning_signature': signature,
    'choices[].message.reasoning_signature': signature,
    'choices[].delta.role': fixed,
    'choices[].message.role': fixed,
    'choices[].finish_reason': fixed,
    obfuscation: padding,
    service_tier: fixed,
    system_fingerprint: 'chosen by the provider',
  },
}

/** Members that hold encrypted or binary data, and are texts if they hold anything else. */
const data: ReadonlySet<string> = new Set([
  'encrypted_content',
  'encrypted_index',
  'data',
  'partial_image_b64',
])

const streams: Record<CallerFormatName, SourceFrame[][]> = {
  messages: wholeStreams.map((name) => parseStream([bytesOf(name)])),
  responses: goldenStreams.map(({ bytes }) => parseStream([bytes])),
  chat_completions: chatGoldens.map(({ bytes }) => parseStream([bytes])),
}

const bodies: Record<CallerFormatName, Json[]> = {
  messages: wholeStreams.map((name) => expectedOf(name).body),
  responses: streams.responses.map((frames) => objectOf(frames.at(-1)?.json['response'])),
  chat_completions: chatGoldens.flatMap(({ body }) => body ?? []),
}

const readerOf = (format: CallerFormatName) => upstreamFormats.get(format)!.createTextReader()

type Sighting = { path: string; isText: boolean; hasUnreadable: boolean }

/** Where a canary is, and whether the reader finds it there. */
function* sightings(format: CallerFormatName, canary: string): Generator<Sighting> {
  const see = (path: string, { texts, hasUnreadable }: FrameTexts): Sighting => ({
    path,
    isText: texts.some(({ text }) => text.includes(canary)),
    hasUnreadable,
  })
  for (const frames of [...streams[format], rareFrames[format]]) {
    for (const [position, source] of frames.entries()) {
      for (const { path, replaceWith } of stringPlacesIn(source.json)) {
        const reader = readerOf(format)
        for (const before of frames.slice(0, position)) reader.read({ events: [], source: before })
        const json = replaceWith(canary) as Json
        yield see(path, reader.read({ events: [], source: { ...source, json } }))
      }
    }
  }
  for (const body of bodies[format]) {
    for (const { path, replaceWith } of stringPlacesIn(body)) {
      yield see(path, readerOf(format).readPlain(replaceWith(canary) as Json))
    }
  }
}

const nameOf = (path: string) => path.replaceAll('[]', '').split('.').at(-1) ?? ''
const isIdentifier = (path: string) =>
  Object.hasOwn(identifiers, nameOf(path)) || nameOf(path).endsWith('_id')

test.each(names)(
  '%s: a sentence is found wherever it stands, but for the listed members',
  (format) => {
    const listed = noText[format]
    const missed = new Set<string>()
    for (const { path, isText, hasUnreadable } of sightings(format, 'a canary sings')) {
      if (isText) continue
      missed.add(path)
      if (listed[path] === encrypted) expect(hasUnreadable).toBe(true)
    }
    expect([...missed].toSorted()).toEqual(Object.keys(listed).toSorted())
  },
)

test.each(names)('%s: a word is found, but for identifiers and data too', (format) => {
  for (const { path, isText, hasUnreadable } of sightings(format, 'canary7f3a')) {
    const isListed = Object.hasOwn(noText[format], path)
    if (isText || isListed || isIdentifier(path)) continue
    expect(data).toContain(nameOf(path))
    expect(hasUnreadable).toBe(true)
  }
})

test('of the deltas of Responses, only audio is no text', () => {
  for (const frames of [...streams.responses, rareFrames.responses]) {
    for (const source of frames.filter(({ json }) => typeof json['delta'] === 'string')) {
      const reader = readerOf('responses')
      const json = { ...source.json, delta: 'a canary sings' }
      const { texts } = reader.read({ events: [], source: { ...source, json } })
      expect(texts.length > 0).toBe(json['type' as never] !== 'response.audio.delta')
    }
  }
})
