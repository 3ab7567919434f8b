import type { Json } from '#formats/answer.ts'
import { addForeign, foreignMembers, foreignPart } from '#formats/foreign-part.ts'
import { asBoolean, asNumber, asObject, asText, listOf } from '#formats/json-values.ts'
import { invalidMember, needText } from '#formats/request-member.ts'
import { readOtherTexts } from '#formats/texts/other-texts.ts'
import { responseMembers, responseOthers } from '#formats/texts/response-others.ts'
import type { ForeignPart, OutputFormat, Reasoning, Tool, ToolChoice, Turn } from '#formats/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import { readInputItems } from './read-input-items.ts'

/** A caller's request as a turn. */
export function readResponseTurn(request: Json): Turn {
  refuseState(request)
  const instructions = asText(request['instructions'])
  const isInputMissing = request['input'] === undefined || request['input'] === null
  if (isInputMissing && instructions === undefined) {
    throw new ApiError('missing_input', "Send 'input' or 'instructions'.", { param: 'body.input' })
  }
  const { system, messages, foreign } = readInputItems(request['input'], 'body.input')
  return {
    system: instructions === undefined ? system : [instructions, ...system],
    messages: addForeign(messages, [...foreign, ...readForeign(request)]),
    tools: readTools(request['tools']),
    toolChoice: readToolChoice(request['tool_choice']),
    canCallToolsInParallel: asBoolean(request['parallel_tool_calls']) ?? null,
    maxOutputTokens: asNumber(request['max_output_tokens']) ?? null,
    temperature: asNumber(request['temperature']) ?? null,
    topP: asNumber(request['top_p']) ?? null,
    topK: null,
    presencePenalty: null,
    frequencyPenalty: null,
    seed: null,
    stopSequences: [],
    reasoning: readReasoning(asObject(request['reasoning'])),
    outputFormat: readOutputFormat(asObject(asObject(request['text'])?.['format'])),
    user: asText(request['user']) ?? asText(request['safety_identifier']) ?? null,
    other: readOtherTexts(request, responseOthers),
  }
}

/** Nothing is stored between calls, so members that refer to an earlier call are refused. */
function refuseState(request: Json) {
  const isSent = (member: string) => request[member] !== undefined && request[member] !== null
  for (const member of ['previous_response_id', 'conversation']) {
    if (isSent(member)) throw unsupported(member, 'send the whole conversation in input')
  }
  if (request['background'] === true) throw unsupported('background', 'wait for the answer')
}

const unsupported = (member: string, instead: string) =>
  new ApiError('unsupported_parameter', `'body.${member}' is not supported: ${instead}.`, {
    param: `body.${member}`,
  })

/** Functions only: tools that a provider runs itself have no meaning in other formats. */
function readTools(tools: unknown): Tool[] {
  return listOf(tools).flatMap((item, index) => {
    const tool = asObject(item)
    return isFunction(tool) ? [readTool(tool, `body.tools[${index}]`)] : []
  })
}

const isFunction = (tool: Json | undefined): tool is Json => tool?.['type'] === 'function'

const toolMembers: ReadonlySet<string> = new Set([
  'type',
  'name',
  'description',
  'parameters',
  'strict',
])
const formatMembers: ReadonlySet<string> = new Set(['type', 'name', 'schema'])

/** Tools that are no functions, and unknown members: they are forwarded, so they count. */
function readForeign(request: Json): ForeignPart[] {
  const tools = listOf(request['tools']).flatMap((item) => {
    const tool = asObject(item)
    return isFunction(tool) ? foreignMembers(tool, toolMembers) : [foreignPart(item)]
  })
  const format = asObject(asObject(request['text'])?.['format']) ?? {}
  return [
    ...tools,
    ...foreignMembers(format, formatMembers),
    ...foreignMembers(request, responseMembers),
  ]
}

const readTool = (tool: Json, param: string): Tool => ({
  name: needText(tool, 'name', param),
  description: asText(tool['description']) ?? null,
  parameters: asObject(tool['parameters']) ?? { type: 'object', properties: {} },
  isStrict: asBoolean(tool['strict']) ?? null,
})

/** Null where the caller has no choice, or chose a tool that only its provider has. */
function readToolChoice(choice: unknown): ToolChoice | null {
  const mode = asText(choice)
  if (mode !== undefined) {
    if (mode === 'auto' || mode === 'required' || mode === 'none') return { type: mode }
    throw invalidMember('body.tool_choice', 'must be auto, required, none or an object')
  }
  const chosen = asObject(choice)
  if (chosen?.['type'] === 'function') {
    return { type: 'tool', name: needText(chosen, 'name', 'body.tool_choice') }
  }
  // A turn has no list of allowed tools, but it can require a call.
  return chosen?.['type'] === 'allowed_tools'
    ? { type: chosen['mode'] === 'required' ? 'required' : 'auto' }
    : null
}

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

function readReasoning(reasoning: Json | undefined): Reasoning | null {
  if (!reasoning) return null
  const effort = efforts.find((name) => name === reasoning['effort']) ?? null
  const summary = asText(reasoning['summary']) ?? asText(reasoning['generate_summary'])
  const isSummaryWanted = summary !== undefined && summary !== 'none'
  // Some clients send an object without any setting.
  return effort === null && !isSummaryWanted
    ? null
    : { effort, budgetTokens: null, isSummaryWanted }
}

function readOutputFormat(format: Json | undefined): OutputFormat | null {
  if (format?.['type'] === 'json_object') return { type: 'json_object' }
  if (format?.['type'] !== 'json_schema') return null
  const schema = asObject(format['schema'])
  if (!schema) throw invalidMember('body.text.format.schema', 'must be an object')
  return {
    type: 'json_schema',
    name: asText(format['name']) ?? 'answer',
    schema,
    isStrict: asBoolean(format['strict']) ?? null,
  }
}
