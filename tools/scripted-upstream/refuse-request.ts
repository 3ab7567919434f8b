import type { Ask, Dialect } from './ask.ts'
import { listOf, recordOf, type Json } from './json.ts'

/** Why the vendor would refuse this request, so that tests notice invalid requests; undefined if it is valid. */
export function whyRefused(ask: Ask): string | undefined {
  const { dialect, body, model, forcedTool, tools } = ask
  if (model === '') return 'model: Field required.'
  const reason = byDialect[dialect](body)
  if (reason !== undefined) return reason
  const hasChoice = body['tool_choice'] !== undefined && body['tool_choice'] !== null
  if (dialect !== 'responses' && hasChoice && tools.length === 0) {
    return 'tool_choice: only allowed when tools are specified.'
  }
  if (forcedTool !== undefined && !tools.some(({ name }) => name === forcedTool)) {
    return `tool_choice: the tool "${forcedTool}" is not among the tools.`
  }
  return undefined
}

const byDialect: Record<Dialect, (body: Json) => string | undefined> = {
  messages: refuseMessages,
  chat: refuseChat,
  responses: refuseResponses,
}

/** Also used for counting, which requires no max_tokens. */
export function whyMessagesRefused(body: Json): string | undefined {
  const messages = listOf(body['messages']).map(recordOf)
  if (messages.length === 0) return 'messages: at least one message is required.'
  const empty = messages.findIndex(({ content }) =>
    typeof content === 'string' ? content === '' : listOf(content).some(isEmptyText),
  )
  if (empty >= 0) return `messages.${empty}: text content blocks must be non-empty.`
  return refuseToolResults(messages)
}

function refuseMessages(body: Json): string | undefined {
  const maxTokens = body['max_tokens']
  if (!Number.isInteger(maxTokens) || Number(maxTokens) < 1) return 'max_tokens: Field required.'
  const { type, budget_tokens: budget } = recordOf(body['thinking'])
  if (type === 'enabled' && !(Number(budget) >= 1024 && Number(budget) < Number(maxTokens))) {
    return 'thinking.enabled.budget_tokens: must be at least 1024 and less than max_tokens.'
  }
  const { type: choice } = recordOf(body['tool_choice'])
  if (type === 'enabled' && (choice === 'any' || choice === 'tool')) {
    return 'Thinking may not be enabled when tool_choice forces tool use.'
  }
  return whyMessagesRefused(body)
}

const isEmptyText = (block: unknown) =>
  recordOf(block)['type'] === 'text' && recordOf(block)['text'] === ''

function idsIn(message: Json | undefined, type: string, member: string): string[] {
  const blocks = listOf(message?.['content']).map(recordOf)
  return blocks.filter((block) => block['type'] === type).map((block) => String(block[member]))
}

function refuseToolResults(messages: readonly Json[]): string | undefined {
  for (const [index, message] of messages.entries()) {
    const called = idsIn(messages[index - 1], 'tool_use', 'id')
    const answered = idsIn(message, 'tool_result', 'tool_use_id')
    const stray = answered.find((id) => !called.includes(id))
    if (stray !== undefined) return `messages.${index}: unexpected tool_use_id "${stray}".`
    const open = called.find((id) => !answered.includes(id))
    if (open !== undefined) return `messages.${index}: tool_use "${open}" has no tool_result.`
  }
  return undefined
}

function refuseChat(body: Json): string | undefined {
  const messages = listOf(body['messages']).map(recordOf)
  if (messages.length === 0) return 'messages: at least one message is required.'
  if (recordOf(body['stream_options'])['include_usage'] !== undefined && body['stream'] !== true) {
    return "The 'stream_options' parameter is only allowed when 'stream' is enabled."
  }
  let open = new Set<unknown>()
  for (const [index, message] of messages.entries()) {
    const { role, tool_call_id: id, tool_calls: calls } = message
    if (role === 'tool' && !open.delete(id)) {
      return `messages.${index}: a message with role 'tool' must answer a preceding tool call.`
    }
    if (role === 'tool') continue
    if (open.size > 0) return `messages.${index}: tool calls before it have no answer.`
    open = new Set(listOf(calls).map((call) => recordOf(call)['id']))
  }
  return open.size > 0 ? 'messages: the last tool calls have no answer.' : undefined
}

function refuseResponses(body: Json): string | undefined {
  const { input } = body
  if (typeof input === 'string' ? input === '' : listOf(input).length === 0) {
    return 'input: at least one item is required.'
  }
  if (body['previous_response_id']) return undefined
  const items = listOf(input).map(recordOf)
  const ids = (type: string) => items.filter((item) => item['type'] === type).map(callId)
  const called = ids('function_call')
  const answered = ids('function_call_output')
  const stray = answered.find((id) => !called.includes(id))
  if (stray !== undefined) return `No tool call found for function call output "${stray}".`
  const open = called.find((id) => !answered.includes(id))
  return open === undefined ? undefined : `No tool output found for function call "${open}".`
}

const callId = (item: Json) => String(item['call_id'])
