import type { Json } from '#formats/answer.ts'
import type { Random } from '#policies/guard/testing/random-case.ts'

import {
  type Block,
  type Call,
  cutBlock,
  joinParts,
  nameOf,
  type Said,
  wholeOf,
} from './random-answer.ts'
import { mix, namedFrame, type WrittenAnswer } from './written-frame.ts'

const head = { id: 'resp_1', object: 'response', model: 'their-model', created_at: 1_700_000_000 }
const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 }

type Event = { type: string; data: Json; says: readonly Said[] }
/** An item of the output: what it is at first, what happens to it, and what it is in the end. */
type Item = {
  empty: Json
  emptySays: readonly Said[]
  events: Event[]
  full: Json
  fullSays: readonly Said[]
  says: readonly Said[]
}
type Writing = { index: number; random: Random }

export function writeResponses(blocks: readonly Block[], random: Random): WrittenAnswer {
  const items = groupMessages(blocks, random).map((group, index) =>
    writeItem(group, { index, random }),
  )
  const streams = items.map(
    ({ empty, emptySays, events, full, fullSays }, output_index): Event[] => [
      { type: 'response.output_item.added', data: { output_index, item: empty }, says: emptySays },
      ...events,
      { type: 'response.output_item.done', data: { output_index, item: full }, says: fullSays },
    ],
  )
  const output = items.map(({ full }) => full)
  const begun = { ...head, status: 'in_progress', output: [], usage: null }
  const body = { ...head, status: 'completed', output, usage }
  const all: Event[] = [
    { type: 'response.created', data: { response: begun }, says: [] },
    { type: 'response.in_progress', data: { response: begun }, says: [] },
    ...mix(streams, random),
    { type: 'response.completed', data: { response: body }, says: [] },
  ]
  return {
    frames: all.map(({ type, data, says }, sequence_number) =>
      namedFrame(type, { sequence_number, ...data }, says),
    ),
    body,
    bodySays: items.flatMap(({ says }) => says),
  }
}

/** Neighbouring texts and refusals may be parts of one message. */
function groupMessages(blocks: readonly Block[], random: Random): [Block, ...Block[]][] {
  const groups: [Block, ...Block[]][] = []
  for (const block of blocks) {
    const last = groups.at(-1)
    const isJoined = last && isPart(last[0]) && isPart(block) && random.isOneIn(2)
    if (isJoined) last.push(block)
    else groups.push([block])
  }
  return groups
}

const isPart = ({ kind }: Block) => kind === 'text' || kind === 'refusal'

function writeItem(group: readonly [Block, ...Block[]], writing: Writing): Item {
  const [block] = group
  switch (block.kind) {
    case 'text':
    case 'refusal':
      return writeMessage(group, writing)
    case 'reasoning':
      return writeReasoning(block, writing)
    case 'call':
      return writeCall(block, writing)
    case 'unknown':
      return writeUnknown(block, writing)
  }
}

function writeMessage(group: readonly Block[], writing: Writing): Item {
  const id = `msg_${writing.index}`
  const item = { id, type: 'message', role: 'assistant' }
  const parts = group.map((block, content_index) => {
    const isRefusal = block.kind === 'refusal'
    const toPart = (text: string) =>
      isRefusal
        ? { type: 'refusal', refusal: text }
        : { type: 'output_text', annotations: [], text }
    const events = writeText(block, writing, {
      kind: isRefusal ? 'refusal' : 'output_text',
      place: { item_id: id, output_index: writing.index, content_index },
      part: 'content_part',
      toPart,
    })
    return { events, full: toPart(wholeOf(block).raw), says: wholeOf(block).says }
  })
  return {
    empty: { ...item, status: 'in_progress', content: [] },
    emptySays: [],
    events: parts.flatMap(({ events }) => events),
    full: { ...item, status: 'completed', content: parts.map(({ full }) => full) },
    fullSays: [],
    says: parts.flatMap(({ says }) => says),
  }
}

function writeReasoning(block: Block, writing: Writing): Item {
  const { index, random } = writing
  const item = { id: `rs_${index}`, type: 'reasoning' }
  const isSummary = random.isOneIn(2)
  const type = isSummary ? 'summary_text' : 'reasoning_text'
  const toPart = (text: string) => ({ type, text })
  const { raw, says } = wholeOf(block)
  const place = { item_id: item.id, output_index: index }
  const events = writeText(block, writing, {
    kind: isSummary ? 'reasoning_summary_text' : 'reasoning_text',
    place: { ...place, [isSummary ? 'summary_index' : 'content_index']: 0 },
    part: isSummary ? 'reasoning_summary_part' : 'content_part',
    toPart,
  })
  const full = isSummary ? { summary: [toPart(raw)] } : { summary: [], content: [toPart(raw)] }
  return {
    empty: { ...item, summary: [] },
    emptySays: [],
    events,
    full: { ...item, ...full },
    fullSays: [],
    says,
  }
}

type Place = { kind: string; place: Json; part: string; toPart(text: string): Json }

function writeText(block: Block, writing: Writing, { kind, place, part, toPart }: Place): Event[] {
  const { deltas, rest } = writeDeltas(block, writing, { kind, place })
  const { raw } = wholeOf(block)
  const done = kind === 'refusal' ? { refusal: raw } : { text: raw }
  return [
    { type: `response.${part}.added`, data: { ...place, part: toPart('') }, says: [] },
    ...deltas,
    { type: `response.${kind}.done`, data: { ...place, ...done }, says: rest },
    { type: `response.${part}.done`, data: { ...place, part: toPart(raw) }, says: [] },
  ]
}

/** Sometimes the end of a text comes only with the whole text. */
function writeDeltas(
  block: Block,
  { random }: Writing,
  { kind, place }: { kind: string; place: Json },
) {
  const parts = cutBlock(block, random)
  const count = random.isOneIn(5) ? random.below(parts.length + 1) : parts.length
  const deltas = parts.slice(0, count).map(({ raw, says }): Event => ({
    type: `response.${kind}.delta`,
    data: { ...place, delta: raw },
    says,
  }))
  return { deltas, rest: joinParts(parts.slice(count)).says }
}

function writeCall(block: Call, writing: Writing): Item {
  const { index } = writing
  const item = {
    id: `fc_${index}`,
    type: 'function_call',
    call_id: `call_${index}`,
    name: block.name,
  }
  const kind = 'function_call_arguments'
  const place = { item_id: item.id, output_index: index }
  const { deltas, rest } = writeDeltas(block, writing, { kind, place })
  const { raw, says } = wholeOf(block)
  const named = [nameOf(block)]
  const done = { ...place, name: block.name, arguments: raw }
  return {
    empty: { ...item, status: 'in_progress', arguments: '' },
    emptySays: named,
    events: [...deltas, { type: `response.${kind}.done`, data: done, says: rest }],
    full: { ...item, status: 'completed', arguments: raw },
    fullSays: [],
    says: [...named, ...says],
  }
}

/** An item that the service does not know is complete when it is done. */
function writeUnknown(block: Block, { index }: Writing): Item {
  const item = { id: `new_${index}`, type: 'new_call' }
  const { raw, says } = wholeOf(block)
  return {
    empty: { ...item, status: 'in_progress' },
    emptySays: [],
    events: [],
    full: { ...item, status: 'completed', words: { deep: [raw] } },
    fullSays: says,
    says,
  }
}
