import { durationRatio } from '@gatehouse/tools/testing/duration-ratio'
import { describe, expect, test } from 'vitest'

import { emptyTurn, type Part, type Turn } from '#formats/turn.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { countTexts } from '#tokens/count.ts'

import { type CountAsker, type CountInThread, createTurnCounter } from './count-turn.ts'
import { withoutEarlierReasoning } from './last-turn.ts'

const own = {
  encoding: 'o200k',
  isOwnEncoding: true,
  factors: { ascii: 1, other: 1 },
  imageTokensMax: 3000,
} as const
const asker: CountAsker = {
  owner: 'org',
  cancellation: new Cancellation(),
  patience: 'short',
}
const noThread: CountInThread = () => Promise.reject(new Error('No thread was expected.'))
const tokensOf = async (text: string) =>
  (await countTexts('o200k', [text], () => undefined))[0] ?? 0
const turnOf = (...parts: Part[]): Turn => ({ ...emptyTurn, messages: [{ role: 'user', parts }] })
const text = (value: string): Part => ({ type: 'text', text: value })

async function count(turn: Turn) {
  return createTurnCounter({ countInThread: noThread }).count(turn, own, asker)
}

describe('the count of a turn', () => {
  test('includes 3 per message, 1 per block, and the tokens of the texts', async () => {
    const turn: Turn = {
      ...emptyTurn,
      system: ['Be brief.', 'Be kind.'],
      messages: [
        { role: 'user', parts: [text('Hello there.'), text('How are you?')] },
        { role: 'assistant', parts: [text('Fine.'), { type: 'refusal', text: 'No.' }] },
      ],
    }
    const texts = ['Be brief.', 'Be kind.', 'Hello there.', 'How are you?', 'Fine.', 'No.']
    const counts = await countTexts('o200k', texts, () => undefined)
    const expected = counts.reduce((sum, tokens) => sum + tokens, 2 + 2 * 3 + 4)
    expect(await count(turn)).toMatchObject({ tokens: expected, origin: 'local-exact' })
  })

  test('does not include texts outside of messages', async () => {
    const turn = turnOf(text('Hello there.'))
    expect(await count({ ...turn, other: ['END', 'gates'] })).toEqual(await count(turn))
  })

  test('includes 8 and the JSON for each tool, and the output schema', async () => {
    const parameters = { type: 'object', properties: { city: { type: 'string' } } }
    const tool = { name: 'weather', description: 'Tells it.', parameters, isStrict: null }
    const json = JSON.stringify({ name: 'weather', description: 'Tells it.', parameters })
    const turn: Turn = {
      ...emptyTurn,
      tools: [tool, tool],
      outputFormat: { type: 'json_schema', name: 'x', schema: parameters, isStrict: null },
    }
    const expected = 2 * (8 + (await tokensOf(json))) + (await tokensOf(JSON.stringify(parameters)))
    expect((await count(turn)).tokens).toBe(expected)
  })

  test('includes parts that only one format knows, by their JSON', async () => {
    const foreign = '{"type":"web_search_call","query":"gold"}'
    expect((await count(turnOf({ type: 'foreign', text: foreign }))).tokens).toBe(
      3 + 1 + (await tokensOf(foreign)),
    )
  })

  test('includes tool calls, and tool results with their parts', async () => {
    const turn = turnOf(
      { type: 'tool_call', id: 'x', name: 'weather', arguments: '{"city":"Bern"}' },
      { type: 'tool_result', callId: 'x', parts: [{ type: 'text', text: 'Sun' }], isError: false },
    )
    const texts = await countTexts('o200k', ['weather', '{"city":"Bern"}', 'Sun'], () => undefined)
    const expected = texts.reduce((sum, tokens) => sum + tokens, 3 + 3)
    expect((await count(turn)).tokens).toBe(expected)
  })

  test('includes images by their size, or the maximum if unknown, and is then an estimate', async () => {
    const header = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
    const size = Buffer.from([0, 0, 4, 0, 0, 0, 3, 0])
    const data = Buffer.concat([header, size, Buffer.alloc(16)]).toString('base64')
    const known = { type: 'base64', mediaType: 'image/png', data } as const
    const unknown = { type: 'url', url: 'https://example.com/cat.png' } as const
    const withImage = (source: typeof known | typeof unknown) =>
      turnOf({ type: 'image', source, detail: null })
    const expected = 4 + Math.ceil((1024 * 768) / 750)
    expect(await count(withImage(known))).toMatchObject({
      tokens: expected,
      origin: 'local-estimate',
    })
    expect((await count(withImage(unknown))).tokens).toBe(4 + 3000)
  })

  test('includes text documents by their text, and others by a constant', async () => {
    const words = 'A few words about it.'
    const data = Buffer.from(words).toString('base64')
    const document = (
      source: Extract<Part, { type: 'document' }>['source'],
      title: string | null,
    ) => turnOf({ type: 'document', source, title })
    const expected = 4 + (await tokensOf(words))
    expect((await count(document({ type: 'text', text: words }, null))).tokens).toBe(expected)
    const plain = document({ type: 'base64', mediaType: 'text/plain', data }, null)
    expect((await count(plain)).tokens).toBe(expected)
    const titled = document({ type: 'text', text: words }, 'Title')
    expect((await count(titled)).tokens).toBe(expected + (await tokensOf('Title')))
    const pdf = document({ type: 'base64', mediaType: 'application/pdf', data }, null)
    expect(await count(pdf)).toMatchObject({ tokens: 4 + 3000, origin: 'local-estimate' })
  })

  test('includes reasoning by its text without signature, or by length if encrypted', async () => {
    const opaque = { origin: 'messages', data: 'A'.repeat(1600), id: null } as const
    const signed = turnOf({
      type: 'reasoning',
      text: 'Hm.',
      opaque: { ...opaque, kind: 'signature' },
    })
    expect((await count(signed)).tokens).toBe(4 + (await tokensOf('Hm.')))
    const sealed = turnOf({ type: 'reasoning', text: '', opaque: { ...opaque, kind: 'redacted' } })
    expect(await count(sealed)).toMatchObject({ tokens: 4 + 300, origin: 'local-estimate' })
  })

  test("is multiplied by the factor of its script if the encoding is not the model's", async () => {
    const { count: countTurn } = createTurnCounter({ countInThread: noThread })
    const rule = { ...own, isOwnEncoding: false, factors: { ascii: 1.5, other: 1.25 } }
    const english = await countTurn(turnOf(text('Good morning to all of you.')), rule, asker)
    expect(english).toMatchObject({ origin: 'local-estimate', script: 'ascii' })
    expect(english.tokens).toBe(Math.ceil(english.localTokens * 1.5))
    const chinese = await countTurn(turnOf(text('早上好，各位。')), rule, asker)
    expect(chinese).toMatchObject({ origin: 'local-estimate', script: 'other' })
    expect(chinese.tokens).toBe(Math.ceil(chinese.localTokens * 1.25))
  })
})

describe('reasoning of earlier turns', () => {
  const thinks = (id: string): Part => ({ type: 'reasoning', text: id, opaque: null })
  const result: Part = { type: 'tool_result', callId: 'x', parts: [], isError: false }
  const turn: Turn = {
    ...emptyTurn,
    messages: [
      { role: 'user', parts: [text('1')] },
      { role: 'assistant', parts: [thinks('a'), text('2')] },
      { role: 'user', parts: [text('3')] },
      { role: 'assistant', parts: [thinks('b')] },
      { role: 'user', parts: [result] },
      { role: 'system', parts: [text('rule')] },
      { role: 'assistant', parts: [thinks('c'), text('4')] },
      { role: 'user', parts: [text('5')] },
    ],
  }
  const thoughts = ({ messages }: Turn) =>
    messages
      .flatMap(({ parts }) => parts)
      .flatMap((part) => (part.type === 'reasoning' ? [part.text] : []))

  test('is left out; tool results and instructions do not end the last turn of the assistant', () => {
    expect(thoughts(withoutEarlierReasoning(turn))).toEqual(['b', 'c'])
  })

  test('counts if it is kept', async () => {
    const all = await count(turn)
    const last = await count(withoutEarlierReasoning(turn))
    expect(all.tokens - last.tokens).toBe(1 + (await tokensOf('a')))
  })

  test('a message of only reasoning is dropped; a turn without an assistant is unchanged', () => {
    const only: Turn = {
      ...emptyTurn,
      messages: [{ role: 'assistant', parts: [thinks('a')] }, ...turn.messages],
    }
    expect(withoutEarlierReasoning(only).messages).toHaveLength(turn.messages.length)
    expect(withoutEarlierReasoning(turnOf(text('x')))).toEqual(turnOf(text('x')))
  })
})

describe('long texts', () => {
  const long = 'All work and no play makes Jack a dull boy. '.repeat(100)

  test('up to 64 KB are counted on the event loop, more in a thread', async () => {
    const sent: string[] = []
    const counter = createTurnCounter({
      countInThread: async (encoding, texts) => {
        sent.push(...texts)
        return countTexts(encoding, texts, () => undefined)
      },
    })
    await counter.count(turnOf(text('a b '.repeat(16 * 1024))), own, asker)
    expect(sent).toEqual([])
    const { tokens } = await counter.count(turnOf(text('c d '.repeat(16 * 1024 + 1))), own, asker)
    expect(sent).toHaveLength(1)
    expect(tokens).toBe(4 + (await tokensOf('c d '.repeat(16 * 1024 + 1))))
  })

  test('a text is counted once per encoding and then cached', async () => {
    const sent: string[][] = []
    const counter = createTurnCounter({
      countInThread: async (encoding, texts) => {
        sent.push([...texts])
        return countTexts(encoding, texts, () => undefined)
      },
    })
    const [one, two] = [`one ${long.repeat(20)}`, `two ${long.repeat(20)}`]
    const first = await counter.count(turnOf(text(one)), own, asker)
    const second = await counter.count(turnOf(text(one), text(two)), own, asker)
    expect(sent).toEqual([[one], [two]])
    expect(second.tokens).toBe(first.tokens + 1 + (await tokensOf(two)))
    const again = await counter.count(turnOf(text(two), text(two)), own, asker)
    expect(again.tokens).toBe(3 + 2 * (1 + (await tokensOf(two))))
    const other = await counter.count(turnOf(text(one)), { ...own, encoding: 'cl100k' }, asker)
    expect(other.tokens).toBe(4 + ((await countTexts('cl100k', [one], () => undefined))[0] ?? 0))
    expect(sent).toHaveLength(3)
  })

  test('countText returns the tokens of the text alone', async () => {
    const counter = createTurnCounter({ countInThread: noThread })
    expect(await counter.countText('', 'o200k', asker)).toBe(0)
    expect(await counter.countText(long, 'o200k', asker)).toBe(await tokensOf(long))
  })

  test('a text that a turn contains twice counts twice', async () => {
    const once = await count(turnOf(text(long)))
    const twice = await count(turnOf(text(long), text(long)))
    expect(twice.tokens).toBe(once.tokens * 2 - 3)
  })

  test('more than 8 MB are refused before anything is counted', async () => {
    const parts = Array.from({ length: 9 }, () => text('漢'.repeat(350_000)))
    await expect(count(turnOf(...parts))).rejects.toMatchObject({ code: 'request_too_large' })
  })

  test('100,000 empty blocks cost about as much as ten times 10,000', async () => {
    const blocks = (length: number) => turnOf(...Array.from({ length }, () => text('')))
    const [many, few] = [blocks(100_000), blocks(10_000)]
    const tenTimes = async () => {
      for (let time = 0; time < 10; time++) await count(few)
    }
    const work = async () => expect((await count(many)).tokens).toBe(100_003)
    const comparison = { work, baseline: tenTimes, limit: 4 }
    expect(await durationRatio('100,000 empty blocks', comparison)).toBeLessThan(4)
  })

  test('an abort also ends a count on the event loop', async () => {
    const caller = new Cancellation()
    const counting = createTurnCounter({ countInThread: noThread }).count(
      turnOf(text('x'.repeat(60_000)), text('!'.repeat(4000))),
      own,
      { ...asker, cancellation: caller },
    )
    caller.cancel(new Error('Aborted.'))
    await expect(counting).rejects.toThrow('Aborted.')
  })

  test('counting a hostile text on the event loop lets timers run', async () => {
    const counter = createTurnCounter({ countInThread: noThread })
    await counter.warm(['o200k', 'cl100k'])
    let ticks = 0
    const timer = setInterval(() => ticks++, 1)
    await counter.count(
      turnOf(...Array.from({ length: 16 }, (_, i) => text(`${i}${'a'.repeat(4000)}`))),
      own,
      asker,
    )
    clearInterval(timer)
    expect(ticks).toBeGreaterThan(1)
  })
})
