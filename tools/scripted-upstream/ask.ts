import { isRecord, listOf, recordOf, textOf, type Json } from './json.ts'

export type Dialect = 'messages' | 'chat' | 'responses'

type Tool = { name: string; schema: unknown }

/** A request in one form for every protocol. */
export type Ask = {
  dialect: Dialect
  body: Json
  model: string
  isStream: boolean
  /** The text since the assistant's last message. */
  lastText: string
  promptCharacters: number
  tools: readonly Tool[]
  /** The tool that must be called, if any. */
  forcedTool?: string
  schema?: unknown
  hasThinking: boolean
  maxTokens?: number
  stopSequences: readonly string[]
}

const readers = { messages: readMessages, chat: readChat, responses: readResponses }

export function readAsk(dialect: Dialect, body: Json): Ask {
  const parsed = readers[dialect](body)
  const turns = parsed.turns.filter(({ role }) => role !== 'system' && role !== 'developer')
  const tools = listOf(body['tools']).flatMap(readTool)
  const forcedTool = readForcedTool(body['tool_choice'], tools)
  return {
    dialect,
    body,
    model: textOf(body['model']) ?? '',
    isStream: body['stream'] === true,
    lastText: readLastText(turns),
    promptCharacters: countCharacters(parsed, tools),
    tools,
    ...(forcedTool !== undefined && { forcedTool }),
    ...(parsed.schema !== undefined && { schema: parsed.schema }),
    hasThinking: parsed.hasThinking,
    ...(typeof parsed.maxTokens === 'number' && { maxTokens: parsed.maxTokens }),
    stopSequences: parsed.stopSequences.filter((one) => typeof one === 'string'),
  }
}

type Turn = { role: string; text: string }
type Parsed = {
  system: string
  turns: Turn[]
  schema: unknown
  hasThinking: boolean
  maxTokens: unknown
  stopSequences: readonly unknown[]
}

function readMessages(body: Json): Parsed {
  const { format } = recordOf(body['output_config'])
  return {
    system: textInside(body['system']),
    turns: listOf(body['messages']).map(readTurn),
    schema: recordOf(format ?? body['output_format'])['schema'],
    hasThinking: ['enabled', 'adaptive'].includes(String(recordOf(body['thinking'])['type'])),
    maxTokens: body['max_tokens'],
    stopSequences: listOf(body['stop_sequences']),
  }
}

function readChat(body: Json): Parsed {
  const format = recordOf(body['response_format'])
  const stop = body['stop']
  return {
    system: '',
    turns: listOf(body['messages']).map(readTurn),
    schema: format['type'] === 'json_object' ? {} : recordOf(format['json_schema'])['schema'],
    hasThinking: isEffort(body['reasoning_effort']),
    maxTokens: body['max_completion_tokens'] ?? body['max_tokens'],
    stopSequences: typeof stop === 'string' ? [stop] : listOf(stop),
  }
}

function readResponses(body: Json): Parsed {
  const { format } = recordOf(body['text'])
  const { effort, summary } = recordOf(body['reasoning'])
  const { input } = body
  return {
    system: textInside(body['instructions']),
    turns:
      typeof input === 'string' ? [{ role: 'user', text: input }] : listOf(input).map(readItem),
    schema: recordOf(format)['type'] === 'json_object' ? {} : recordOf(format)['schema'],
    hasThinking: isEffort(effort) || (effort !== 'none' && typeof summary === 'string'),
    maxTokens: body['max_output_tokens'],
    stopSequences: [],
  }
}

const isEffort = (value: unknown) => typeof value === 'string' && value !== 'none'

function readTurn(message: unknown): Turn {
  const { role, content } = recordOf(message)
  return { role: String(role), text: textInside(content) }
}

/** Items without a role are tool results, or the assistant's own tool calls and reasoning. */
function readItem(item: unknown): Turn {
  const { type, role, content, output } = recordOf(item)
  if (typeof role === 'string') return { role, text: textInside(content) }
  if (String(type).endsWith('_output')) return { role: 'tool', text: textInside(output) }
  return { role: 'assistant', text: '' }
}

function textInside(content: unknown): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .map((block) => textOf(recordOf(block)['text']) ?? textInside(recordOf(block)['content']))
    .filter(Boolean)
    .join('\n')
}

function readLastText(turns: readonly Turn[]): string {
  const end = turns.findLastIndex(({ role }) => role !== 'assistant') + 1
  const start = turns.slice(0, end).findLastIndex(({ role }) => role === 'assistant') + 1
  return turns
    .slice(start, end)
    .map(({ text }) => text)
    .join('\n')
}

function countCharacters({ system, turns }: Parsed, tools: readonly Tool[]): number {
  const characters = turns.reduce((sum, { text }) => sum + text.length, system.length)
  return tools.length === 0 ? characters : characters + JSON.stringify(tools).length
}

function readTool(tool: unknown): Tool[] {
  const { function: inner, ...flat } = recordOf(tool)
  const { name, input_schema, parameters } = isRecord(inner) ? inner : recordOf(flat)
  return typeof name === 'string' ? [{ name, schema: input_schema ?? parameters ?? {} }] : []
}

function readForcedTool(choice: unknown, tools: readonly Tool[]): string | undefined {
  if (choice === 'required') return tools[0]?.name
  const { type, name, function: inner, mode, tools: own, ...rest } = recordOf(choice)
  if (type === 'any') return tools[0]?.name
  if (type === 'tool' || type === 'function') return textOf(name ?? recordOf(inner)['name'])
  if (type !== 'allowed_tools') return undefined
  const allowed = isRecord(rest['allowed_tools']) ? rest['allowed_tools'] : { mode, tools: own }
  if (allowed['mode'] !== 'required') return undefined
  return listOf(allowed['tools']).flatMap(readTool)[0]?.name
}
