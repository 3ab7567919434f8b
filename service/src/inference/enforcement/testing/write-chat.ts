import type { Json } from '#formats/answer.ts'
import type { Random } from '#policies/guard/testing/random-case.ts'

import { type Block, type Call, cutBlock, type Said, wholeOf } from './random-answer.ts'
import { dataFrame, mix, type WrittenAnswer, type WrittenFrame } from './written-frame.ts'

/** The name of a function is a text of each call. */
const nameIn = ({ id, name }: Call): Said => ({ channel: `name ${id}`, text: name })

const head = { id: 'chatcmpl-1', created: 1_700_000_000, model: 'their-model' }
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const members = { text: 'content', reasoning: 'reasoning_content', refusal: 'refusal' } as const

const chunk = (delta: Json, says: readonly Said[] = [], finish_reason: string | null = null) =>
  dataFrame(
    { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] },
    says,
  )

type Prose = Exclude<Block, Call>
/** The member of the message that a frame adds to. */
type Delta = WrittenFrame & { member: string }
const callsMember = 'tool_calls'

/**
 * A text of Chat Completions ends where the next one begins. One that goes on after all is judged with its end repeated, so
 * what may leave of it is not what these tests compute: prose of one kind stands together, and only calls overlap.
 */
const order: readonly Prose['kind'][] = ['unknown', 'reasoning', 'refusal', 'text']

export function writeChat(blocks: readonly Block[], random: Random): WrittenAnswer {
  const calls = blocks.filter((block) => block.kind === 'call')
  const prose = blocks
    .filter((block) => block.kind !== 'call')
    .toSorted((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind))
  const deltas = [
    ...prose.flatMap((block) => streamProse(block, random)),
    ...mix(
      calls.map((call, index) => streamCall(call, index, random)),
      random,
    ),
  ]
  const finish = calls.length > 0 ? 'tool_calls' : 'stop'
  const { message, says } = plainMessage(calls, deltas)
  return {
    frames: [
      chunk({ role: 'assistant', content: '' }),
      ...deltas,
      chunk({}, [], finish),
      dataFrame({ ...head, object: 'chat.completion.chunk', choices: [], usage }),
    ],
    rest: 'data: [DONE]\n\n',
    body: {
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: finish }],
      usage,
    },
    bodySays: says,
  }
}

/** All texts of one kind are one text here. What is unknown has a member of its own. */
const memberOf = ({ kind, id }: Prose) => (kind === 'unknown' ? `new_${id}` : members[kind])

function streamProse(block: Prose, random: Random): Delta[] {
  const member = memberOf(block)
  return cutBlock(block, random).map(({ raw }) => ({
    ...chunk({ [member]: raw }, [{ channel: member, text: raw }]),
    member,
  }))
}

function streamCall(block: Call, index: number, random: Random): Delta[] {
  const parts = cutBlock(block, random)
  const first = random.isOneIn(3) ? parts.shift() : undefined
  const called = { name: block.name, arguments: first?.raw ?? '' }
  const start = { index, id: `call_${index}`, type: 'function', function: called }
  return [
    chunk({ tool_calls: [start] }, [nameIn(block), ...(first?.says ?? [])]),
    ...parts.map(({ raw, says }) =>
      chunk({ tool_calls: [{ index, function: { arguments: raw } }] }, says),
    ),
  ].map((frame) => ({ ...frame, member: callsMember }))
}

/** The members of the message stand in the order in which the stream said the texts. */
function plainMessage(calls: readonly Call[], deltas: readonly Delta[]) {
  const spoken = deltas.flatMap(({ member, says }) => says.map((said) => ({ ...said, member })))
  const message: Json = { role: 'assistant' }
  const says: Said[] = []
  for (const member of new Set(spoken.map((said) => said.member))) {
    if (member === callsMember) {
      message[member] = calls.map(plainCall)
      says.push(...calls.flatMap((call) => [nameIn(call), ...wholeOf(call).says]))
    } else {
      const text = spoken.flatMap((said) => (said.member === member ? [said.text] : [])).join('')
      message[member] = text
      says.push({ channel: member, text })
    }
  }
  return { message: 'content' in message ? message : { ...message, content: null }, says }
}

const plainCall = (call: Call, index: number) => ({
  id: `call_${index}`,
  type: 'function',
  function: { name: call.name, arguments: wholeOf(call).raw },
})
