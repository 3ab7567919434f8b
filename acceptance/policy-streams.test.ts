import { setTimeout as sleep } from 'node:timers/promises'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { afterAll, describe, expect, test } from 'vitest'

import { draftPolicy, eventually, putInForce } from './support/policies/enforcing.ts'
import {
  ask,
  begin,
  type Format,
  formats,
  type RequestOptions,
  type RunningCall,
  type Target,
} from './support/streams/call.ts'
import { expectBrokenStream } from './support/streams/errors.ts'
import { startLockstep } from './support/streams/lockstep.ts'
import { catalogueOf } from './support/streams/models.ts'
import { argumentsOf, reasoningOf, textOf } from './support/streams/text.ts'
import { stateOf } from './support/streams/upstream.ts'
import { windowWord, wordsScored } from './support/streams/windows.ts'
import { useStack } from './support/use-stack.ts'

// What a caller receives of a stream while enforcing policies read it: the provider's own bytes as far as nothing matches,
// no later than the rules need, and nothing from a match on.

const lockstep = await startLockstep(1)
afterAll(lockstep.stop)

const stack = useStack({
  processes: 2,
  paidUsd: '5000',
  models: ({ scripted }) =>
    catalogueOf({
      ...Object.fromEntries(formats.map((format) => [`by-${format}`, [{ url: scripted, format }]])),
      ...Object.fromEntries(
        formats.map((format) => [`step-${format}`, [{ url: lockstep.url, format }]]),
      ),
    }),
})

const target = (process = 0): Target => ({
  baseUrl: stack().description.base_urls[process] ?? '',
  credential: stack().description.project_key,
})

/** A policy on answers. The prompt contains all words of the answer, in its script. */
const guardAnswers = (rule: string) => putInForce(stack(), { rule, direction: 'response' })

const send = (format: Format, script: Script, options: Partial<RequestOptions> = {}) =>
  ask(target(), { format, model: `by-${format}`, script, ...options })

describe.each(formats)('%s: of a blocked stream', (format) => {
  test.each(formats)(
    'from an upstream of %s everything before the match arrives, and nothing from it on',
    async (origin) => {
      await guardAnswers('cel: text.contains("forbidden") || text.matches("se(v|ven)th")')
      const options = { model: `by-${origin}` }
      const speech = 'one two three forbidden four five'
      for (const coalesce of [false, true]) {
        const answer = await send(format, { text: speech, coalesce }, options)
        expectBrokenStream(answer, format)
        expect(textOf(answer.text)).toBe('one two three')
        expect(answer.text).not.toMatch(/forbidden|four|five/)
        expect(answer.text).toContain('policy_blocked')
      }
      const split = { text: 'the sixth and the seventh day', splitBytes: 5 }
      const answer = await send(format, split, options)
      expectBrokenStream(answer, format)
      expect(textOf(answer.text)).toBe('the sixth and the')
      // A word that is only begun is not a match.
      const begun = await send(format, { text: 'one forbid two seve' }, options)
      expect([begun.isBroken, textOf(begun.text)]).toEqual([false, 'one forbid two seve'])
    },
  )
})

/** Rules of every kind that is decided while an answer grows, none of which matches what is said here. */
const silentRules: readonly string[] = [
  ...Array.from({ length: 8 }, (_, index) => `cel: text.contains("never said ${index}")`),
  ...Array.from(
    { length: 8 },
    (_, index) => `cel: text.matches("(?i)\\\\bnever[0-9]{1,9}${index}")`,
  ),
  'cel: text.containsAny(["the sun sets", "Grüße aus", "🐦🐦"])',
  'cel: text.size() > 100000',
  'cel: text.contains("sun") && text.contains("unsaid")',
  'cel: model == "another" || text.matches("rose over a quiet hill,")',
]

const richScripts: Record<string, Script> = {
  'text, reasoning and calls': {
    thinking: 'Hm, never said: the sun rose över a quiet hill… 🐦 and two',
    text: 'The sun rose over a quiet hill and never1 said “Grüße” to 🐦 or é.',
    toolCalls: [
      { name: 'weather', arguments: '{"city":"M\\u00fcnchen","note":"never said \\ud83d\\udc26"}' },
      { name: 'clock', arguments: { zone: 'Europe/Berlin', quote: '"never"\\ said' } },
    ],
    argumentPieces: 9,
  },
  'a refusal': { text: 'never', refusal: 'I never said that I could help with this.' },
  'sealed reasoning': { redacted: 'bmV2ZXIgc2FpZCAx', text: 'Done, never said.' },
  'many words': { tokens: 400 },
}
const deliveries: readonly Script[] = [{}, { splitBytes: 3 }, { coalesce: true }, { crlf: true }]

/** Ids, times and receipts differ between two equal calls. */
const withoutOwn = (text: string) =>
  text
    .replaceAll(/scripted\d{8}/g, 'scripted')
    .replaceAll(/"signature":"(\w{40})\w*=*"/g, '"signature":"$1"')
    .replaceAll(/"(created|created_at|completed_at)":\d+/g, '"$1":0')
    .replaceAll(/"remaining_credits":\d+/g, '"remaining_credits":0')

/** Where the frames begin that are held for the receipt. */
const closing: Record<Format, RegExp> = {
  messages: /event: message_delta/,
  chat: /data: [^\n]*"finish_reason":"/,
  responses: /event: response\.completed/,
}

/** What the upstream itself answers to the request that it last received. */
async function askUpstreamAgain(): Promise<string> {
  const { upstream_url } = stack().description
  const { lastRequests } = await stateOf(upstream_url)
  const { path, body } = lastRequests.at(-1)!
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(new URL(path, upstream_url), {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  return answer.text()
}

test('20 rules that do not match change no byte of a stream', async () => {
  const cases = formats.flatMap((format) =>
    Object.entries(richScripts).flatMap(([name, script]) =>
      deliveries.map((delivery) => ({ format, name, script: { ...script, ...delivery } })),
    ),
  )
  const streamAll = async () => {
    const streams: string[] = []
    for (const { format, script } of cases) {
      const answer = await send(format, script)
      expect([answer.status, answer.isBroken]).toEqual([200, false])
      streams.push(answer.text)
    }
    return streams
  }
  const free = await streamAll()
  await Promise.all(silentRules.map(guardAnswers))
  expect(silentRules).toHaveLength(20)
  for (const [index, { format, name, script }] of cases.entries()) {
    const label = `${format}, ${name}, ${JSON.stringify(Object.keys(script))}`
    const answer = await send(format, script)
    expect(answer.headers['x-policy-holdback'], label).toBe('56')
    const guarded = withoutOwn(answer.text)
    expect(guarded, label).toBe(withoutOwn(free[index] ?? ''))
    const own = withoutOwn(await askUpstreamAgain())
    const end = own.search(closing[format])
    expect(end, label).toBeGreaterThan(100)
    expect(guarded.slice(0, end), label).toBe(own.slice(0, end))
  }
})

/** Starts a call whose upstream sends a piece whenever `step` is called. */
function beginSteps(format: Format, script: Script) {
  lockstep.restart()
  const call = begin(target(), { format, model: `step-${format}`, script })
  const received = () => textOf(call.chunks.map((chunk) => chunk.text).join(''))
  return { ...call, received }
}

const headerOf = async ({ responseStarted }: RunningCall, name: string) =>
  (await responseStarted).headers[name]

test.each(formats)('%s: a stream keeps the version it began with', async (format) => {
  const policy = await draftPolicy(stack(), {
    rule: 'cel: text.contains("never")',
    direction: 'response',
  })
  const epoch = await policy.publish()
  // The first word fills the first window.
  const now = 'now'.repeat(33)
  const script = { text: `${now} and then later too` }
  const call = beginSteps(format, script)
  for (let piece = 1; piece <= 3; piece++) lockstep.sendNext()
  await expect.poll(call.received, eventually).toBe(now)
  await policy.changeRule('cel: text.contains("later")')
  expect(await policy.publish()).toBe(epoch + 1)
  for (let piece = 4; piece <= 5; piece++) lockstep.sendNext()
  const answer = await call.answer
  expect([textOf(answer.text), answer.text.includes('policy_blocked')]).toEqual([
    script.text,
    false,
  ])
  expect(answer.headers['x-policy-epoch']).toBe(String(epoch))
  for (const process of [0, 1]) {
    const next = await ask(target(process), { format, model: `by-${format}`, script })
    expectBrokenStream(next, format)
    expect([textOf(next.text), next.headers['x-policy-epoch']]).toEqual([
      `${now} and then`,
      String(epoch + 1),
    ])
  }
})

describe.each(formats)('%s:', (format) => {
  const word = 'p\\u0061ssw\\u006frd'
  const json = `{"note":"the ${word} is here","tail":"x"}`

  test('the arguments of tool calls are judged as what their JSON says', async () => {
    await guardAnswers('cel: text.contains("password")')
    const speech = { text: 'I call.', toolCalls: [{ name: 'save', arguments: json }] }
    for (const argumentPieces of [1, 3, json.length]) {
      const answer = await send(format, { ...speech, argumentPieces })
      expectBrokenStream(answer, format)
      expect(textOf(answer.text)).toBe('I call.')
      expect(json.slice(0, json.indexOf(word))).toContain(argumentsOf(answer.text))
      expect(answer.text).not.toMatch(/ssw|is here/)
    }
    const plain = await send(format, speech, { isStreamed: false })
    expect([plain.status, plain.text.includes('policy_blocked')]).toEqual([400, true])
    expect(plain.text).not.toMatch(/ssw|I call/)
    const harmless = { ...speech, toolCalls: [{ name: 'save', arguments: '{"note":"pass"}' }] }
    expect(argumentsOf((await send(format, harmless)).text)).toBe('{"note":"pass"}')
  })

  test('reasoning is judged', async () => {
    await guardAnswers('cel: text.contains("secret plan")')
    const speech = { thinking: 'Hm, a secret plan of mine.', text: 'Nothing.' }
    const answer = await send(format, speech)
    expectBrokenStream(answer, format)
    expect([reasoningOf(answer.text), textOf(answer.text)]).toEqual(['Hm, a', ''])
    expect(answer.text).not.toMatch(/secret|plan of|Nothing/)
    const plain = await send(format, speech, { isStreamed: false })
    expect([plain.status, plain.text.includes('policy_blocked')]).toEqual([400, true])
    expect(plain.text).not.toMatch(/secret|Nothing/)
    // Two texts are not one.
    const apart = await send(format, { thinking: 'a secret', text: ' plan' })
    expect([reasoningOf(apart.text), textOf(apart.text)]).toEqual(['a secret', ' plan'])
  })

  test('a rule that needs the whole answer holds back all of its text, but not its head', async () => {
    await guardAnswers('cel: !text.contains("please")')
    const script = { text: 'come in and sit down please' }
    const call = beginSteps(format, script)
    lockstep.sendNext()
    expect(await headerOf(call, 'x-policy-holdback')).toBe('full')
    await expect.poll(() => call.chunks.length, eventually).toBeGreaterThan(0)
    for (let piece = 2; piece <= 5; piece++) lockstep.sendNext()
    await sleep(500) // long enough for text that is not held back
    expect(call.received()).toBe('')
    lockstep.sendNext()
    const answer = await call.answer
    expect([textOf(answer.text), answer.text.includes('policy_blocked')]).toEqual([
      script.text,
      false,
    ])
    const rude = await send(format, { text: 'come in and sit down' })
    expectBrokenStream(rude, format)
    expect([textOf(rude.text), rude.text.includes('come')]).toEqual(['', false])
  })

  // A window waits for the space after it, and a rule for its widest match and one character more, which a mark could still be
  // combined with. Pieces stay whole: one waits for its last character.
  test.each([
    { width: 40, header: '56' },
    { width: 302, header: '302' },
  ])(
    'under a rule of the width $width a word leaves when it and its window are judged',
    async ({ width, header }) => {
      await guardAnswers(`cel: text.matches("x[a-z]{${width - 2}}y")`)
      const word = windowWord
      const words = Array.from({ length: 26 }, () => word)
      const call = beginSteps(format, { text: words.join(' ') })
      for (let sent = 1; sent < words.length; sent++) {
        lockstep.sendNext()
        expect(await headerOf(call, 'x-policy-holdback')).toBe(header)
        const judged = Math.floor((sent * (word.length + 1) - width - 1) / (word.length + 1))
        const left = words.slice(0, Math.max(0, Math.min(wordsScored(sent), judged))).join(' ')
        await expect.poll(call.received, eventually).toBe(left)
        const held = words.slice(0, sent).join(' ').length - left.length
        expect(held - word.length).toBeLessThanOrEqual(Number(header) + 1)
      }
      const left = call.received()
      await sleep(500) // long enough for text that is not held back
      expect(call.received()).toBe(left)
      lockstep.sendNext()
      expect(textOf((await call.answer).text)).toBe(words.join(' '))
    },
  )
})
