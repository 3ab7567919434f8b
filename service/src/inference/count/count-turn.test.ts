import { describe, expect, test } from 'vitest'

import type { Part, Turn } from '#inference/turn.ts'
import { countTexts } from '#tokens/count.ts'

import { type CountElsewhere, createTurnCounter } from './count-turn.ts'
import { withoutEarlierReasoning } from './last-turn.ts'

const emptyTurn: Turn = {
  ...{ system: [], messages: [], tools: [], toolChoice: null, canCallToolsInParallel: null },
  ...{ maxOutputTokens: null, temperature: null, topP: null, topK: null, presencePenalty: null },
  ...{ frequencyPenalty: null, seed: null, stopSequences: [], reasoning: null, user: null },
  outputFormat: null,
}
const own = { encoding: 'o200k', isOwnEncoding: true, factors: { ascii: 1, other: 1 } } as const
const forever = new AbortController().signal
const nowhere: CountElsewhere = () => Promise.reject(new Error('This was to be counted here.'))
const tokensOf = async (text: string) =>
  (await countTexts('o200k', [text], () => undefined))[0] ?? 0
const says = (...parts: Part[]): Turn => ({ ...emptyTurn, messages: [{ role: 'user', parts }] })
const text = (value: string): Part => ({ type: 'text', text: value })

async function count(turn: Turn) {
  return createTurnCounter({ countElsewhere: nowhere }).count(turn, own, forever)
}

describe('the count of a turn', () => {
  test('has 3 for each message, 1 for each block, and the tokens of the texts', async () => {
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

  test('has 8 for each tool and its JSON, and the schema of the output', async () => {
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

  test('has what only its own format understands, by its JSON', async () => {
    const foreign = '{"type":"web_search_call","query":"gold"}'
    expect((await count(says({ type: 'foreign', text: foreign }))).tokens).toBe(
      3 + 1 + (await tokensOf(foreign)),
    )
  })

  test('has calls of tools and their results, with what is inside them', async () => {
    const turn = says(
      { type: 'tool_call', id: 'x', name: 'weather', arguments: '{"city":"Bern"}' },
      { type: 'tool_result', callId: 'x', parts: [{ type: 'text', text: 'Sun' }], isError: false },
    )
    const texts = await countTexts('o200k', ['weather', '{"city":"Bern"}', 'Sun'], () => undefined)
    const expected = texts.reduce((sum, tokens) => sum + tokens, 3 + 3)
    expect((await count(turn)).tokens).toBe(expected)
  })

  test('has images by their size, 1600 where it is unknown, and is an estimate then', async () => {
    const header = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
    const size = Buffer.from([0, 0, 4, 0, 0, 0, 3, 0])
    const data = Buffer.concat([header, size, Buffer.alloc(16)]).toString('base64')
    const known = { type: 'base64', mediaType: 'image/png', data } as const
    const unknown = { type: 'url', url: 'https://example.com/cat.png' } as const
    const withImage = (source: typeof known | typeof unknown) =>
      says({ type: 'image', source, detail: null })
    const expected = 4 + Math.ceil((1024 * 768) / 750)
    expect(await count(withImage(known))).toMatchObject({
      tokens: expected,
      origin: 'local-estimate',
    })
    expect((await count(withImage(unknown))).tokens).toBe(4 + 1600)
  })

  test('has documents by their text, and others by a constant', async () => {
    const words = 'A few words about it.'
    const data = Buffer.from(words).toString('base64')
    const document = (
      source: Extract<Part, { type: 'document' }>['source'],
      title: string | null,
    ) => says({ type: 'document', source, title })
    const expected = 4 + (await tokensOf(words))
    expect((await count(document({ type: 'text', text: words }, null))).tokens).toBe(expected)
    const plain = document({ type: 'base64', mediaType: 'text/plain', data }, null)
    expect((await count(plain)).tokens).toBe(expected)
    const titled = document({ type: 'text', text: words }, 'Title')
    expect((await count(titled)).tokens).toBe(expected + (await tokensOf('Title')))
    const pdf = document({ type: 'base64', mediaType: 'application/pdf', data }, null)
    expect(await count(pdf)).toMatchObject({ tokens: 4 + 3000, origin: 'local-estimate' })
  })

  test('has reasoning by its text, not by its signature; sealed reasoning by its length', async () => {
    const opaque = { origin: 'messages', data: 'A'.repeat(1600), id: null } as const
    const signed = says({
      type: 'reasoning',
      text: 'Hm.',
      opaque: { ...opaque, kind: 'signature' },
    })
    expect((await count(signed)).tokens).toBe(4 + (await tokensOf('Hm.')))
    const sealed = says({ type: 'reasoning', text: '', opaque: { ...opaque, kind: 'redacted' } })
    expect(await count(sealed)).toMatchObject({ tokens: 4 + 300, origin: 'local-estimate' })
  })

  test('is multiplied by the factor of its kind of text where the encoding is another', async () => {
    const { count: countTurn } = createTurnCounter({ countElsewhere: nowhere })
    const rule = { ...own, isOwnEncoding: false, factors: { ascii: 1.5, other: 1.25 } }
    const english = await countTurn(says(text('Good morning to all of you.')), rule, forever)
    expect(english).toMatchObject({ origin: 'local-estimate', script: 'ascii' })
    expect(english.tokens).toBe(Math.ceil(english.localTokens * 1.5))
    const chinese = await countTurn(says(text('早上好，各位。')), rule, forever)
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
      { role: 'assistant', parts: [thinks('c'), text('4')] },
      { role: 'user', parts: [text('5')] },
    ],
  }
  const thoughts = ({ messages }: Turn) =>
    messages
      .flatMap(({ parts }) => parts)
      .flatMap((part) => (part.type === 'reasoning' ? [part.text] : []))

  test('is left out; the last turn of the assistant reaches over the answers of tools', () => {
    expect(thoughts(withoutEarlierReasoning(turn))).toEqual(['b', 'c'])
  })

  test('counts where it is kept', async () => {
    const all = await count(turn)
    const last = await count(withoutEarlierReasoning(turn))
    expect(all.tokens - last.tokens).toBe(1 + (await tokensOf('a')))
  })

  test('a message of nothing else goes with it, and a turn without an assistant stays as it is', () => {
    const only: Turn = {
      ...emptyTurn,
      messages: [{ role: 'assistant', parts: [thinks('a')] }, ...turn.messages],
    }
    expect(withoutEarlierReasoning(only).messages).toHaveLength(turn.messages.length)
    expect(withoutEarlierReasoning(says(text('x')))).toEqual(says(text('x')))
  })
})

describe('long texts', () => {
  const long = 'All work and no play makes Jack a dull boy. '.repeat(100)

  test('up to 64 KB are counted here, more elsewhere', async () => {
    const sent: string[] = []
    const counter = createTurnCounter({
      countElsewhere: async (encoding, texts) => {
        sent.push(...texts)
        return countTexts(encoding, texts, () => undefined)
      },
    })
    await counter.count(says(text('a b '.repeat(16 * 1024))), own, forever)
    expect(sent).toEqual([])
    const { tokens } = await counter.count(says(text('c d '.repeat(16 * 1024 + 1))), own, forever)
    expect(sent).toHaveLength(1)
    expect(tokens).toBe(4 + (await tokensOf('c d '.repeat(16 * 1024 + 1))))
  })

  test('what was counted is not counted again, also when it is sent twice at once', async () => {
    const sent: string[][] = []
    const counter = createTurnCounter({
      countElsewhere: async (encoding, texts) => {
        sent.push([...texts])
        return countTexts(encoding, texts, () => undefined)
      },
    })
    const [one, two] = [`one ${long.repeat(20)}`, `two ${long.repeat(20)}`]
    const first = await counter.count(says(text(one)), own, forever)
    const second = await counter.count(says(text(one), text(two)), own, forever)
    expect(sent).toEqual([[one], [two]])
    expect(second.tokens).toBe(first.tokens + 1 + (await tokensOf(two)))
    const again = await counter.count(says(text(two), text(two)), own, forever)
    expect(again.tokens).toBe(3 + 2 * (1 + (await tokensOf(two))))
    const other = await counter.count(says(text(one)), { ...own, encoding: 'cl100k' }, forever)
    expect(other.tokens).toBe(4 + ((await countTexts('cl100k', [one], () => undefined))[0] ?? 0))
    expect(sent).toHaveLength(3)
  })

  test('one text by itself has just its own tokens', async () => {
    const counter = createTurnCounter({ countElsewhere: nowhere })
    expect(await counter.countText('', 'o200k')).toBe(0)
    expect(await counter.countText(long, 'o200k')).toBe(await tokensOf(long))
  })

  test('twice in one turn counts twice', async () => {
    const once = await count(says(text(long)))
    const twice = await count(says(text(long), text(long)))
    expect(twice.tokens).toBe(once.tokens * 2 - 3)
  })

  test('more than 8 MB are refused before anything is counted', async () => {
    const parts = Array.from({ length: 9 }, () => text('漢'.repeat(350_000)))
    await expect(count(says(...parts))).rejects.toMatchObject({ code: 'request_too_large' })
  })

  test('100,000 empty blocks cost a moment', async () => {
    const begin = performance.now()
    const { tokens } = await count(says(...Array.from({ length: 100_000 }, () => text(''))))
    expect(tokens).toBe(100_003)
    expect(performance.now() - begin).toBeLessThan(2000)
  })

  test('a caller who leaves ends the count, here too', async () => {
    const leaving = new AbortController()
    const counting = createTurnCounter({ countElsewhere: nowhere }).count(
      says(text('x'.repeat(60_000)), text('!'.repeat(4000))),
      own,
      leaving.signal,
    )
    leaving.abort(new Error('Left.'))
    await expect(counting).rejects.toThrow('Left.')
  })

  test('while a hostile text is counted here, others have their turn', async () => {
    const counter = createTurnCounter({ countElsewhere: nowhere })
    await counter.warm(['o200k', 'cl100k'])
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    await counter.count(
      says(...Array.from({ length: 16 }, (_, i) => text(`${i}${'a'.repeat(4000)}`))),
      own,
      forever,
    )
    clearInterval(timer)
    expect(turns).toBeGreaterThan(1)
  })
})
