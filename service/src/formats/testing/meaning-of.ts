import type { AnswerEvent, Json, SourceFrame, StopReason, Usage } from '#formats/answer.ts'
import type { OpaqueState } from '#formats/turn.ts'

/** What an answer says in the end, whatever blocks and pieces it was cut into. */
export type Meaning = {
  id: string
  model: string
  text: string
  refusal: string
  reasoning: string
  opaque: OpaqueState[]
  calls: { id: string; name: string; arguments: unknown }[]
  reason: StopReason
  stopSequence: string | null
  usage: Usage
}

/** For tests: sums events up, and throws where they break the rules that stand above `AnswerEvent`. */
export function meaningOf(events: readonly AnswerEvent[]): Meaning {
  const [first, ...others] = events
  const last = others.pop()
  if (first?.type !== 'started' || last?.type !== 'finished') throw new Error('no start or no end')
  const texts = { text: '', refusal: '', reasoning: '' }
  const opaque: OpaqueState[] = []
  const blocks: { type: keyof typeof texts | 'tool_call'; call: number; isOpen: boolean }[] = []
  const calls: { id: string; name: string; json: string }[] = []
  for (const event of others) {
    if (event.type === 'started' || event.type === 'finished') throw new Error('twice')
    if (event.type === 'block_started') {
      const { block } = event
      if (event.index !== blocks.length) throw new Error('a block has the wrong number')
      blocks.push({ type: block.type, call: calls.length, isOpen: true })
      if (block.type === 'tool_call') calls.push({ id: block.id, name: block.name, json: '' })
      continue
    }
    const block = blocks[event.index]
    if (!block?.isOpen) throw new Error('a block is not open')
    if (event.type === 'block_ended') block.isOpen = false
    else if (event.type === 'block_sealed') opaque.push(event.opaque)
    else if (block.type === 'tool_call') calls[block.call]!.json += event.text
    else texts[block.type] += event.text
  }
  if (blocks.some(({ isOpen }) => isOpen)) throw new Error('a block never ends')
  return {
    id: first.id,
    model: first.model,
    ...texts,
    opaque,
    calls: calls.map(({ json, ...call }) => ({ ...call, arguments: parse(json) })),
    reason: last.reason,
    stopSequence: last.stopSequence,
    usage: last.usage,
  }
}

const parse = (json: string): unknown => {
  try {
    return JSON.parse(json === '' ? '{}' : json)
  } catch {
    return json
  }
}

/** For tests: a plain answer as it comes from an upstream. */
export function plainSource(body: Json | string): SourceFrame {
  const data = typeof body === 'string' ? body : JSON.stringify(body)
  return { event: '', data, bytes: Buffer.from(data), json: JSON.parse(data) as Json }
}
