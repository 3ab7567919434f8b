import type { Json } from '#formats/answer.ts'
import type { Random } from '#policies/guard/testing/random-case.ts'

import {
  type Block,
  type Call,
  cutBlock,
  inputOf,
  nameOf,
  type Part,
  type Said,
  wholeOf,
} from './random-answer.ts'
import { namedFrame, type WrittenAnswer, type WrittenFrame } from './written-frame.ts'

const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'their-model' }
const usage = { input_tokens: 10, output_tokens: 5 }

/** A content block in its two forms. */
type Written = {
  start: Json
  startSays: readonly Said[]
  deltas: readonly (Part & { delta: Json })[]
  full: Json
  says: readonly Said[]
}

export function writeMessages(blocks: readonly Block[], random: Random): WrittenAnswer {
  // An answer has one refusal, at its end.
  const refusal = blocks.find(({ kind }) => kind === 'refusal')
  const written = blocks
    .filter((block) => block !== refusal)
    .map((block) => writeBlock(block, random))
  const says = refusal ? wholeOf(refusal).says : []
  const end = {
    stop_reason: refusal ? 'refusal' : 'end_turn',
    stop_sequence: null,
    ...(refusal && { stop_details: { type: 'refusal', explanation: wholeOf(refusal).raw } }),
  }
  const started = { ...head, content: [], stop_reason: null, stop_sequence: null, usage }
  return {
    frames: [
      namedFrame('message_start', { message: started }),
      ...written.flatMap(toFrames),
      namedFrame('message_delta', { delta: end, usage }, says),
      namedFrame('message_stop', {}),
    ],
    body: { ...head, content: written.map(({ full }) => full), ...end, usage },
    bodySays: [...written.flatMap((one) => one.says), ...says],
  }
}

function toFrames({ start, startSays, deltas }: Written, index: number): WrittenFrame[] {
  return [
    namedFrame('content_block_start', { index, content_block: start }, startSays),
    ...deltas.map(({ delta, says }) => namedFrame('content_block_delta', { index, delta }, says)),
    namedFrame('content_block_stop', { index }),
  ]
}

function writeBlock(block: Block, random: Random): Written {
  switch (block.kind) {
    case 'text':
    case 'refusal':
      return writeProse(block, random, { type: 'text', member: 'text' })
    case 'reasoning': {
      const thinking = writeProse(block, random, { type: 'thinking', member: 'thinking' })
      const seal = { type: 'signature_delta', signature: 'c2lnbmF0dXJl' }
      return {
        ...thinking,
        deltas: [...thinking.deltas, { raw: '', says: [], delta: seal }],
        full: { ...thinking.full, signature: 'c2lnbmF0dXJl' },
      }
    }
    case 'call':
      return writeCall(block, random)
    case 'unknown':
      return random.isOneIn(2)
        ? writeProse(block, random, { type: 'new', member: 'words' })
        : writeWhole(block)
  }
}

/** Some servers put the first piece of a text into the start of its block. */
function writeProse(
  block: Block,
  random: Random,
  { type, member }: { type: string; member: string },
): Written {
  const parts = cutBlock(block, random)
  const { raw, says } = wholeOf(block)
  const first = type !== 'new' && random.isOneIn(5) ? parts.shift() : undefined
  return {
    start: type === 'new' ? { type } : { type, [member]: first?.raw ?? '' },
    startSays: first?.says ?? [],
    deltas: parts.map((part) => ({
      ...part,
      delta: { type: `${type}_delta`, [member]: part.raw },
    })),
    full: { type, [member]: raw },
    says,
  }
}

function writeWhole(block: Block): Written {
  const { raw, says } = wholeOf(block)
  const full = { type: 'new', words: { deep: [raw] } }
  return { start: full, startSays: says, deltas: [], full, says }
}

/** The input of a provider's own tool stands whole in the start of its block. */
function writeCall(block: Call, random: Random): Written {
  const named = [nameOf(block)]
  const { says } = wholeOf(block)
  const input = inputOf(block)
  const all = [...named, ...says]
  if (random.isOneIn(4)) {
    const full = { type: 'server_tool_use', id: `srv_${block.id}`, name: block.name, input }
    return { start: full, startSays: all, deltas: [], full, says: all }
  }
  const call = { type: 'tool_use', id: `toolu_${block.id}`, name: block.name }
  const parts = cutBlock(block, random)
  return {
    start: { ...call, input: {} },
    startSays: named,
    deltas: parts.map((part) => ({
      ...part,
      delta: { type: 'input_json_delta', partial_json: part.raw },
    })),
    full: { ...call, input },
    says: all,
  }
}
