import type { Json } from '#formats/answer.ts'
import { addForeign, foreignMembers, foreignPart } from '#formats/foreign-part.ts'
import {
  asBoolean,
  asNumber,
  asObject,
  asText,
  isObject,
  listOf,
  objectOf,
} from '#formats/json-values.ts'
import { invalidMember } from '#formats/request-member.ts'
import { chatMembers, chatOthers } from '#formats/texts/chat-others.ts'
import { readOtherTexts } from '#formats/texts/other-texts.ts'
import type { ForeignPart, OutputFormat, Reasoning, Tool, ToolChoice, Turn } from '#formats/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import { readChatMessages } from './read-chat-messages.ts'

/** A caller's request as a turn. */
export function readChatTurn(request: Json): Turn {
  if ((request['n'] ?? 1) !== 1) {
    const message = "'body.n' must be 1: only one choice is offered."
    throw new ApiError('unsupported_parameter', message, { param: 'body.n' })
  }
  const { choice, allowed } = readToolChoice(request)
  const tools = readTools(request)
  const isAllowed = ({ name }: Tool) => !allowed || allowed.has(name)
  const { system, messages, foreign } = readChatMessages(listOf(request['messages']))
  const disallowed = tools.filter((tool) => !isAllowed(tool)).map(foreignPart)
  return {
    system,
    messages: addForeign(messages, [...foreign, ...readForeign(request), ...disallowed]),
    tools: tools.filter(isAllowed),
    toolChoice: choice,
    canCallToolsInParallel: asBoolean(request['parallel_tool_calls']) ?? null,
    maxOutputTokens:
      asNumber(request['max_completion_tokens']) ?? asNumber(request['max_tokens']) ?? null,
    temperature: asNumber(request['temperature']) ?? null,
    topP: asNumber(request['top_p']) ?? null,
    topK: null,
    presencePenalty: asNumber(request['presence_penalty']) ?? null,
    frequencyPenalty: asNumber(request['frequency_penalty']) ?? null,
    seed: asNumber(request['seed']) ?? null,
    stopSequences: readStop(request['stop']),
    reasoning: readEffort(request['reasoning_effort']),
    outputFormat: readOutputFormat(request['response_format']),
    user: asText(request['user']) ?? asText(request['safety_identifier']) ?? null,
    other: readOtherTexts(request, chatOthers),
  }
}

const readStop = (stop: unknown): string[] =>
  (typeof stop === 'string' ? [stop] : listOf(stop)).filter((text) => typeof text === 'string')

/** Functions only: tools of other types run at the upstream and have no meaning in other formats. */
function readTools(request: Json): Tool[] {
  const functions = listOf(request['tools']).map((tool, position) => {
    if (!isObject(tool) || tool['type'] !== 'function') return undefined
    const definition = asObject(tool['function'])
    if (!definition) throw invalidMember(`body.tools[${position}].function`, 'is required')
    return definition
  })
  return [...functions, ...listOf(request['functions'])].filter(isObject).map(readFunction)
}

const toolMembers: ReadonlySet<string> = new Set(['type', 'function'])
const functionMembers: ReadonlySet<string> = new Set([
  'name',
  'description',
  'parameters',
  'strict',
])
const formatMembers: ReadonlySet<string> = new Set(['type', 'json_schema'])
const schemaMembers: ReadonlySet<string> = new Set(['name', 'schema'])

/** Tools that are no functions, and unknown members: they are forwarded, so they count. */
function readForeign(request: Json): ForeignPart[] {
  const format = objectOf(request['response_format'])
  return [
    ...listOf(request['tools']).flatMap((tool) => readForeignTool(objectOf(tool))),
    ...listOf(request['functions']).flatMap((it) => foreignMembers(objectOf(it), functionMembers)),
    ...foreignMembers(format, formatMembers),
    ...foreignMembers(objectOf(format['json_schema']), schemaMembers),
    ...foreignMembers(request, chatMembers),
  ]
}

const readForeignTool = (tool: Json): ForeignPart[] =>
  tool['type'] === 'function'
    ? [
        ...foreignMembers(tool, toolMembers),
        ...foreignMembers(objectOf(tool['function']), functionMembers),
      ]
    : [foreignPart(tool)]

const readFunction = (definition: Json): Tool => ({
  name: asText(definition['name']) ?? '',
  description: asText(definition['description']) ?? null,
  parameters: asObject(definition['parameters']) ?? { type: 'object', properties: {} },
  isStrict: asBoolean(definition['strict']) ?? null,
})

type Choice = {
  choice: ToolChoice | null
  /** Undefined: all tools. */ allowed?: ReadonlySet<unknown>
}

function readToolChoice(request: Json): Choice {
  const choice = request['tool_choice'] ?? request['function_call']
  switch (choice) {
    case 'none':
    case 'auto':
    case 'required':
      return { choice: { type: choice } }
  }
  if (!isObject(choice)) return { choice: null }
  if (choice['type'] === 'allowed_tools') return readAllowedTools(choice)
  // The legacy member is the function itself.
  const called = asObject(choice['function']) ?? asObject(choice['custom']) ?? choice
  const name = asText(called['name'])
  if (name === undefined) throw invalidMember('body.tool_choice', 'names no tool')
  return { choice: { type: 'tool', name } }
}

function readAllowedTools(choice: Json): Choice {
  const { mode, tools } = objectOf(choice['allowed_tools'])
  const names = listOf(tools).map((tool) => asObject(asObject(tool)?.['function'])?.['name'])
  return { choice: { type: mode === 'required' ? 'required' : 'auto' }, allowed: new Set(names) }
}

function readEffort(effort: unknown): Reasoning | null {
  if (typeof effort !== 'string') return null
  // Callers of this format cannot ask for a summary.
  return { effort: effort as Reasoning['effort'], budgetTokens: null, isSummaryWanted: false }
}

function readOutputFormat(format: unknown): OutputFormat | null {
  const { type, json_schema } = objectOf(format)
  if (type === 'json_object') return { type }
  if (type !== 'json_schema') return null
  const wanted = asObject(json_schema)
  if (!wanted) throw invalidMember('body.response_format.json_schema', 'is required')
  return {
    type,
    name: asText(wanted['name']) ?? 'answer',
    schema: objectOf(wanted['schema']),
    isStrict: asBoolean(wanted['strict']) ?? null,
  }
}
