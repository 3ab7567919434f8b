import type { Json } from '#inference/answer.ts'
import { invalidMember } from '#inference/request-member.ts'
import type { Part, TurnMessage } from '#inference/turn.ts'
import { asObject, asText, isObject, listOf, objectOf } from '#inference/untyped.ts'

import { type ContentPart, readContent } from './read-chat-content.ts'
import { readReasoning } from './reasoning-signature.ts'

type Conversation = { system: string[]; messages: TurnMessage[] }

/** Instructions before everything else are the system's; later ones stay where they are, as the user's. */
export function readMessages(messages: readonly unknown[]): Conversation {
  const conversation: Conversation = { system: [], messages: [] }
  for (const [position, message] of messages.entries()) {
    if (isObject(message)) readMessage(message, `body.messages[${position}]`, conversation)
  }
  return conversation
}

function readMessage(message: Json, path: string, { system, messages }: Conversation) {
  const parts = readContent(message['content'], `${path}.content`)
  switch (message['role']) {
    case 'system':
    case 'developer':
      if (messages.length > 0) messages.push({ role: 'user', parts: parts.filter(isUserPart) })
      else system.push(...parts.flatMap((part) => (part.type === 'text' ? part.text : [])))
      return
    case 'user':
      messages.push({ role: 'user', parts: parts.filter(isUserPart) })
      return
    case 'assistant':
      messages.push({ role: 'assistant', parts: readAssistant(message, parts, path) })
      return
    case 'tool':
      messages.push(toolResult(asText(message['tool_call_id']), parts, `${path}.tool_call_id`))
      return
    case 'function':
      messages.push(toolResult(legacyId(message['name']), parts, `${path}.name`))
  }
}

type UserPart = Exclude<ContentPart, { type: 'refusal' }>
const isUserPart = (part: ContentPart): part is UserPart => part.type !== 'refusal'

function toolResult(callId: string | undefined, parts: ContentPart[], path: string): TurnMessage {
  if (callId === undefined) throw invalidMember(path, 'is required')
  const result = parts.filter(isUserPart)
  return {
    role: 'user',
    parts: [{ type: 'tool_result', callId, parts: result, isError: false }],
  }
}

/** The old calls of functions had no ids: call and result are one by their name. */
const legacyId = (name: unknown) => (typeof name === 'string' ? `call_${name}` : undefined)

function readAssistant(message: Json, content: ContentPart[], path: string): Part[] {
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
  // What a custom tool takes is a text; elsewhere it becomes the only argument.
  const text = typeof input === 'string' ? JSON.stringify({ input }) : (asText(given) ?? '')
  return { type: 'tool_call', id, name, arguments: text }
}

function readLegacyCall(call: unknown): Part[] {
  const { name, arguments: given } = objectOf(call)
  const id = legacyId(name)
  if (id === undefined || typeof name !== 'string') return []
  return [{ type: 'tool_call', id, name, arguments: asText(given) ?? '' }]
}
