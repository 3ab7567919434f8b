import type { Json } from '#inference/answer.ts'
import type { OutputFormat, Reasoning, Tool, ToolChoice, Turn } from '#inference/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import { isObject, listOf, numberOf, objectOf, textOf } from './json-member.ts'
import { invalid } from './read-chat-content.ts'
import { readMessages } from './read-chat-messages.ts'

/** A caller's request as a turn. */
export function readChatTurn(request: Json): Turn {
  if ((request['n'] ?? 1) !== 1) {
    const message = "'body.n' must be 1: only one choice is offered."
    throw new ApiError('unsupported_parameter', message, { param: 'body.n' })
  }
  const { choice, allowed } = readToolChoice(request)
  const tools = readTools(request)
  return {
    ...readMessages(listOf(request['messages'])),
    tools: allowed ? tools.filter(({ name }) => allowed.includes(name)) : tools,
    toolChoice: choice,
    canCallToolsInParallel: booleanOf(request['parallel_tool_calls']),
    maxOutputTokens: numberOf(request['max_completion_tokens']) ?? numberOf(request['max_tokens']),
    temperature: numberOf(request['temperature']),
    topP: numberOf(request['top_p']),
    topK: null,
    presencePenalty: numberOf(request['presence_penalty']),
    frequencyPenalty: numberOf(request['frequency_penalty']),
    seed: numberOf(request['seed']),
    stopSequences: readStop(request['stop']),
    reasoning: readReasoningWish(request['reasoning_effort']),
    outputFormat: readOutputFormat(request['response_format']),
    user: textOf(request['user']) ?? textOf(request['safety_identifier']) ?? null,
  }
}

const booleanOf = (value: unknown): boolean | null => (typeof value === 'boolean' ? value : null)

const readStop = (stop: unknown): string[] =>
  (typeof stop === 'string' ? [stop] : listOf(stop)).filter((text) => typeof text === 'string')

/** Tools of other types live at the upstream and mean nothing elsewhere. */
function readTools(request: Json): Tool[] {
  const functions = listOf(request['tools']).map((tool, position) => {
    if (!isObject(tool) || tool['type'] !== 'function') return undefined
    const definition = objectOf(tool['function'])
    if (!definition) throw invalid(`body.tools[${position}].function`, 'is required')
    return definition
  })
  return [...functions, ...listOf(request['functions'])].filter(isObject).map(readFunction)
}

const readFunction = (definition: Json): Tool => ({
  name: textOf(definition['name']) ?? '',
  description: textOf(definition['description']) ?? null,
  parameters: objectOf(definition['parameters']) ?? { type: 'object', properties: {} },
  isStrict: booleanOf(definition['strict']),
})

type Choice = { choice: ToolChoice | null; /** Undefined: all tools. */ allowed?: unknown[] }

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
  // The old member is the function itself.
  const called = objectOf(choice['function']) ?? objectOf(choice['custom']) ?? choice
  const name = textOf(called['name'])
  if (name === undefined) throw invalid('body.tool_choice', 'names no tool')
  return { choice: { type: 'tool', name } }
}

function readAllowedTools(choice: Json): Choice {
  const { mode, tools } = objectOf(choice['allowed_tools']) ?? {}
  const names = listOf(tools).map((tool) => objectOf(objectOf(tool)?.['function'])?.['name'])
  return { choice: { type: mode === 'required' ? 'required' : 'auto' }, allowed: names }
}

function readReasoningWish(effort: unknown): Reasoning | null {
  if (typeof effort !== 'string') return null
  // Callers of this format cannot ask for a summary.
  return { effort: effort as Reasoning['effort'], budgetTokens: null, isSummaryWanted: false }
}

function readOutputFormat(format: unknown): OutputFormat | null {
  const { type, json_schema } = objectOf(format) ?? {}
  if (type === 'json_object') return { type }
  if (type !== 'json_schema') return null
  const wanted = objectOf(json_schema)
  if (!wanted) throw invalid('body.response_format.json_schema', 'is required')
  return {
    type,
    name: textOf(wanted['name']) ?? 'answer',
    schema: objectOf(wanted['schema']) ?? {},
    isStrict: booleanOf(wanted['strict']),
  }
}
