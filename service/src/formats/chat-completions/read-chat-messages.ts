import type { Json } from '#formats/answer.ts'
import { foreignMembers } from '#formats/foreign-part.ts'
import { asObject, asText, isObject, listOf, objectOf } from '#formats/json-values.ts'
import { invalidMember } from '#formats/request-member.ts'
import type { ContentPart, ForeignPart, Part, TextPart, TurnMessage } from '#formats/turn.ts'

import { type ChatPart, readContent } from './read-chat-content.ts'
import { readReasoning } from './reasoning-signature.ts'

/** `foreign` holds the unknown members of instructions. */
type Conversation = { system: string[]; messages: TurnMessage[]; foreign: ForeignPart[] }

/** Instructions at the beginning become the system prompt; later ones stay in place, as messages of the user. */
export function readChatMessages(messages: readonly unknown[]): Conversation {
  const conversation: Conversation = { system: [], messages: [], foreign: [] }
  for (const [position, message] of messages.entries()) {
    if (isObject(message)) readMessage(message, `body.messages[${position}]`, conversation)
  }
  return conversation
}

function readMessage(message: Json, path: string, conversation: Conversation) {
  const parts = readContent(message['content'], `${path}.content`)
  const said = parts.map(asContent)
  const foreign = [
    ...foreignMembers(message, membersOf(message)),
    ...listOf(message['content']).flatMap(foreignInContent),
    ...listOf(message['tool_calls']).flatMap(foreignInCall),
  ]
  const add = (role: TurnMessage['role'], read: readonly Part[]) =>
    conversation.messages.push({ role, parts: [...read, ...foreign] })
  switch (message['role']) {
    case 'system':
    case 'developer':
      if (conversation.messages.length > 0 || !isText(said)) add('user', said)
      else addInstructions(conversation, said, foreign)
      return
    case 'user':
      add('user', said)
      return
    case 'assistant':
      add('assistant', readAssistant(message, parts, path))
      return
    case 'tool':
      add('user', [toolResult(asText(message['tool_call_id']), said, `${path}.tool_call_id`)])
      return
    case 'function':
      add('user', [toolResult(legacyId(message['name']), said, `${path}.name`)])
  }
}

const isText = (parts: readonly ContentPart[]): parts is TextPart[] =>
  parts.every(({ type }) => type === 'text')

function addInstructions(
  conversation: Conversation,
  parts: readonly TextPart[],
  foreign: readonly ForeignPart[],
) {
  for (const { text } of parts) conversation.system.push(text)
  for (const part of foreign) conversation.foreign.push(part)
}

/** The members that are read, by role. Sets are made once: a conversation may have thousands of messages. */
const commonMembers = ['role', 'content']
const assistantMembers = [
  ...commonMembers,
  'refusal',
  'reasoning_content',
  'reasoning_signature',
  'tool_calls',
  'function_call',
]
const members = {
  common: new Set(commonMembers),
  assistant: new Set(assistantMembers),
  assistantAndReasoning: new Set([...assistantMembers, 'reasoning']),
  tool: new Set([...commonMembers, 'tool_call_id']),
  function: new Set([...commonMembers, 'name']),
} as const

/** What is read of a part of the content, besides its type, and of the object in it. */
const partMembers: ReadonlyMap<unknown, { part: Set<string>; media?: Set<string> }> = new Map([
  ['text', { part: new Set(['type', 'text', 'cache_control']) }],
  ['refusal', { part: new Set(['type', 'refusal']) }],
  ['image_url', { part: new Set(['type', 'image_url']), media: new Set(['url', 'detail']) }],
  [
    'file',
    { part: new Set(['type', 'file']), media: new Set(['filename', 'file_data', 'file_id']) },
  ],
  ['input_audio', { part: new Set(['type', 'input_audio']), media: new Set(['data', 'format']) }],
])
const callMembers = new Set(['id', 'type', 'function', 'custom'])
const calledMembers = new Set(['name', 'arguments', 'input'])

/** The unknown members of a part of the content. Parts of unknown types are refused. */
function foreignInContent(part: unknown): ForeignPart[] {
  const read = objectOf(part)
  const type = asText(read['type']) ?? ''
  const known = partMembers.get(type)
  if (!known) return []
  const inMedia = known.media ? foreignMembers(objectOf(read[type]), known.media) : []
  return [...foreignMembers(read, known.part), ...inMedia]
}

function foreignInCall(call: unknown): ForeignPart[] {
  const { function: called, custom, ...others } = objectOf(call)
  const inCalled = [called, custom].flatMap((it) => foreignMembers(objectOf(it), calledMembers))
  return [...foreignMembers(others, callMembers), ...inCalled]
}

/** Of the two names of reasoning, only one is read. */
function membersOf({ role, reasoning_content: reasoning }: Json): ReadonlySet<string> {
  if (role === 'tool' || role === 'function') return members[role]
  if (role !== 'assistant') return members.common
  return typeof reasoning === 'string' ? members.assistant : members.assistantAndReasoning
}

/** Only an assistant refuses; elsewhere the words are text like any other. */
const asContent = (part: ChatPart): ContentPart =>
  part.type === 'refusal' ? { type: 'text', text: part.text } : part

function toolResult(callId: string | undefined, parts: ContentPart[], path: string): Part {
  if (callId === undefined) throw invalidMember(path, 'is required')
  return { type: 'tool_result', callId, parts, isError: false }
}

/** Legacy function calls have no ids: the name connects call and result. */
const legacyId = (name: unknown) => (typeof name === 'string' ? `call_${name}` : undefined)

function readAssistant(message: Json, content: ChatPart[], path: string): Part[] {
  const reasoning = asText(message['reasoning_content']) ?? asText(message['reasoning']) ?? ''
  const signature = asText(message['reasoning_signature']) ?? ''
  const refusal = asText(message['refusal']) ?? ''
  const calls = listOf(message['tool_calls']).map((call, position) =>
    readCall(call, `${path}.tool_calls[${position}]`),
  )
  return [
    ...readReasoning(reasoning, signature),
    ...content.filter((part) => part.type !== 'text' || part.text !== ''),
    ...(refusal === '' ? [] : [{ type: 'refusal' as const, text: refusal }]),
    ...calls,
    ...readLegacyCall(message['function_call']),
  ]
}

function readCall(call: unknown, path: string): Part {
  const { id, function: called, custom } = objectOf(call)
  const { name, arguments: given, input } = asObject(called) ?? objectOf(custom)
  if (typeof id !== 'string') throw invalidMember(`${path}.id`, 'is required')
  if (typeof name !== 'string') throw invalidMember(`${path}.function`, 'is required')
  // The input of a custom tool is text; elsewhere it becomes the only argument.
  const text = typeof input === 'string' ? JSON.stringify({ input }) : (asText(given) ?? '')
  return { type: 'tool_call', id, name, arguments: text }
}

function readLegacyCall(call: unknown): Part[] {
  const { name, arguments: given } = objectOf(call)
  const id = legacyId(name)
  if (id === undefined || typeof name !== 'string') return []
  return [{ type: 'tool_call', id, name, arguments: asText(given) ?? '' }]
}
