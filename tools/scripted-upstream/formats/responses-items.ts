import type { Answer } from '../answer.ts'
import type { Ask } from '../ask.ts'
import { listOf, type Json } from '../json.ts'

type Event = { type: string; data: Json; isPiece?: boolean }

/** One output item: its empty form, the events that fill it, and its full form. */
export type Item = { empty: Json; events: (outputIndex: number) => Event[]; full: Json }

export function itemsOf(ask: Ask, answer: Answer): Item[] {
  const calls = answer.toolCalls.map((call, index) => callItem(call, `${answer.number}${index}`))
  return [...reasoningItems(ask, answer), ...messageItems(answer), ...calls]
}

function reasoningItems({ body }: Ask, answer: Answer): Item[] {
  const { thinking, redacted, isThinkingScripted, number } = answer
  if (!thinking && redacted === undefined) return []
  const { summary } = (body['reasoning'] ?? {}) as Json
  const shown = isThinkingScripted || typeof summary === 'string' ? (thinking ?? []) : []
  const isSealed = listOf(body['include']).includes('reasoning.encrypted_content')
  const sealed = Buffer.from(`sealed scripted reasoning ${number}`).toString('base64')
  const encrypted = redacted ?? (isSealed ? sealed : undefined)
  const id = `rs_scripted${number}`
  const text = shown.join('')
  const hidden = encrypted !== undefined && { encrypted_content: encrypted }
  const part = (value: string) => ({ type: 'summary_text', text: value })
  return [
    {
      empty: { id, type: 'reasoning', summary: [], ...hidden },
      events: (output_index) =>
        text === '' ? [] : summaryEvents({ item_id: id, output_index, summary_index: 0 }, shown),
      full: { id, type: 'reasoning', summary: text === '' ? [] : [part(text)], ...hidden },
    },
  ]
}

function summaryEvents(position: Json, pieces: readonly string[]): Event[] {
  const text = pieces.join('')
  const part = (value: string) => ({ ...position, part: { type: 'summary_text', text: value } })
  return [
    { type: 'response.reasoning_summary_part.added', data: part('') },
    ...pieces.map((delta) => ({
      type: 'response.reasoning_summary_text.delta',
      data: { ...position, delta },
      isPiece: true,
    })),
    { type: 'response.reasoning_summary_text.done', data: { ...position, text } },
    { type: 'response.reasoning_summary_part.done', data: part(text) },
  ]
}

type Part = { pieces: readonly string[]; part: (text: string) => Json; isRefusal: boolean }

function messageItems({ text, refusal, number, stop }: Answer): Item[] {
  const parts: Part[] = []
  const output = (value: string) => ({
    type: 'output_text',
    annotations: [],
    logprobs: [],
    text: value,
  })
  if (text.length > 0) parts.push({ pieces: text, part: output, isRefusal: false })
  if (refusal) {
    const part = (value: string) => ({ type: 'refusal', refusal: value })
    parts.push({ pieces: refusal, part, isRefusal: true })
  }
  if (parts.length === 0) return []
  const id = `msg_scripted${number}`
  const isCut = stop === 'max_tokens' || stop === 'content_filter'
  const head = { id, type: 'message', role: 'assistant' }
  const content = parts.map(({ pieces, part }) => part(pieces.join('')))
  return [
    {
      empty: { ...head, status: 'in_progress', content: [] },
      events: (output_index) =>
        parts.flatMap((part, content_index) =>
          partEvents({ item_id: id, output_index, content_index }, part),
        ),
      full: { ...head, status: isCut ? 'incomplete' : 'completed', content },
    },
  ]
}

function partEvents(position: Json, { pieces, part, isRefusal }: Part): Event[] {
  const kind = isRefusal ? 'response.refusal' : 'response.output_text'
  const further = isRefusal ? {} : { logprobs: [] }
  const text = pieces.join('')
  const done = isRefusal ? { refusal: text } : { text }
  return [
    { type: 'response.content_part.added', data: { ...position, part: part('') } },
    ...pieces.map((delta) => ({
      type: `${kind}.delta`,
      data: { ...position, delta, ...further },
      isPiece: true,
    })),
    { type: `${kind}.done`, data: { ...position, ...done, ...further } },
    { type: 'response.content_part.done', data: { ...position, part: part(text) } },
  ]
}

function callItem({ name, pieces }: Answer['toolCalls'][number], number: string): Item {
  const id = `fc_scripted${number}`
  const head = { id, type: 'function_call', call_id: `call_scripted${number}`, name }
  const text = pieces.join('')
  return {
    empty: { ...head, status: 'in_progress', arguments: '' },
    events: (output_index) => {
      const position = { item_id: id, output_index }
      return [
        ...pieces.map((delta) => ({
          type: 'response.function_call_arguments.delta',
          data: { ...position, delta },
          isPiece: true,
        })),
        {
          type: 'response.function_call_arguments.done',
          data: { ...position, arguments: text, name },
        },
      ]
    },
    full: { ...head, status: 'completed', arguments: text },
  }
}
