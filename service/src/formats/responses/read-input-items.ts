import type { Json } from '#formats/answer.ts'
import { foreignPart } from '#formats/foreign-part.ts'
import { asObject, asText, listOf } from '#formats/json-values.ts'
import { unpackOpaqueState } from '#formats/opaque-state.ts'
import { invalidMember, needText } from '#formats/request-member.ts'
import type { ForeignPart, OpaqueState, Part, TurnMessage } from '#formats/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import { readForeignContent, readMessageContent, readToolOutput } from './read-input-parts.ts'

/** Mutable while items are read: a long conversation must not be copied for each of them. */
type Message = { role: TurnMessage['role']; parts: Part[] }
/** `foreign` holds the foreign parts before the first message. */
type Conversation = { system: string[]; messages: Message[]; foreign: ForeignPart[] }

/** A text, or a list of items, as a conversation. Items of unknown types are foreign. */
export function readInputItems(input: unknown, param: string): Conversation {
  const conversation: Conversation = { system: [], messages: [], foreign: [] }
  const text = asText(input)
  if (text !== undefined) {
    conversation.messages.push({ role: 'user', parts: [{ type: 'text', text }] })
    return conversation
  }
  for (const [index, item] of listOf(input).entries()) {
    const itemParam = `${param}[${index}]`
    const object = asObject(item)
    if (!object) throw invalidMember(itemParam, 'must be an object')
    readItem(conversation, object, itemParam)
  }
  return conversation
}

function readItem(conversation: Conversation, item: Json, param: string) {
  const { messages } = conversation
  switch (item['type'] ?? 'message') {
    case 'message':
      return readMessage(conversation, item, param)
    case 'function_call':
    case 'custom_tool_call':
      return addToAssistant(messages, [readCall(item, param)])
    case 'function_call_output':
    case 'custom_tool_call_output':
      addResult(messages, {
        type: 'tool_result',
        callId: needText(item, 'call_id', param),
        parts: readToolOutput(item['output'], `${param}.output`),
        isError: false,
      })
      return addForeign(conversation, readForeignContent(item['output']))
    case 'reasoning':
      addToAssistant(messages, readReasoning(item))
      // `readReasoning` reads only one of the two.
      if (joinTexts(item['summary']) === '' || joinTexts(item['content']) === '') return undefined
      return addForeign(conversation, [foreignPart({ content: item['content'] })])
    case 'item_reference':
      throw new ApiError(
        'unsupported_parameter',
        `'${param}' refers to a stored item: nothing is stored, so send the item itself (store: false).`,
        { param },
      )
    default:
      return addForeign(conversation, [foreignPart(item)])
  }
}

/** Adds to the message before, of either role: a message of its own would separate parts that belong together. */
function addForeign({ messages, foreign }: Conversation, parts: readonly ForeignPart[]) {
  const target: Part[] = messages.at(-1)?.parts ?? foreign
  for (const part of parts) target.push(part)
}

function readMessage(conversation: Conversation, item: Json, param: string) {
  addMessage(conversation, item, param)
  addForeign(conversation, readForeignContent(item['content']))
}

function addMessage({ system, messages }: Conversation, item: Json, param: string) {
  const parts = readMessageContent(item['content'], `${param}.content`)
  switch (item['role']) {
    case 'assistant':
      return addToAssistant(messages, parts)
    case 'user':
      return void messages.push({ role: 'user', parts })
    case 'system':
    case 'developer': {
      // Later instructions refer to the messages before them, so they stay in their place.
      const isSystem = messages.length === 0 && parts.every(({ type }) => type === 'text')
      if (!isSystem) return void messages.push({ role: 'user', parts })
      for (const part of parts) if (part.type === 'text') system.push(part.text)
      return undefined
    }
    default:
      throw invalidMember(`${param}.role`, 'must be one of user, assistant, system, developer')
  }
}

/** Items of one assistant turn are one message: reasoning, text and calls belong together. */
function addToAssistant(messages: Message[], parts: Part[]) {
  if (parts.length === 0) return
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return void messages.push({ role: 'assistant', parts })
  for (const part of parts) last.parts.push(part)
}

/** The results of parallel calls are one message. */
function addResult(messages: Message[], result: Part) {
  const last = messages.at(-1)
  const isAfterResult = last?.role === 'user' && last.parts.at(-1)?.type === 'tool_result'
  if (!isAfterResult) return void messages.push({ role: 'user', parts: [result] })
  last.parts.push(result)
}

function readCall(item: Json, param: string): Part {
  const call = { id: needText(item, 'call_id', param), name: needText(item, 'name', param) }
  if (item['type'] === 'custom_tool_call') {
    const input = needText(item, 'input', param)
    return { type: 'tool_call', ...call, arguments: JSON.stringify({ input }) }
  }
  // Clients may send '' for a call without arguments, which is not JSON.
  return { type: 'tool_call', ...call, arguments: needText(item, 'arguments', param) || '{}' }
}

function readReasoning(item: Json): Part[] {
  const text = joinTexts(item['summary']) || joinTexts(item['content'])
  const opaque = readOpaque(item)
  return text === '' && opaque === null ? [] : [{ type: 'reasoning', text, opaque }]
}

/** The texts of a summary, or of raw reasoning, as one. */
function joinTexts(parts: unknown): string {
  const texts = listOf(parts).map((part) => asText(asObject(part)?.['text']) ?? '')
  return texts.filter((text) => text !== '').join('\n\n')
}

function readOpaque(item: Json): OpaqueState | null {
  const data = asText(item['encrypted_content'])
  if (!data) return null
  const own: OpaqueState = {
    origin: 'responses',
    kind: 'encrypted',
    data,
    id: asText(item['id']) ?? null,
  }
  return unpackOpaqueState(data) ?? own
}
