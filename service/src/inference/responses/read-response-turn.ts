import type { Json } from '#inference/answer.ts'
import type { OutputFormat, Reasoning, Turn } from '#inference/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import { readInput } from './read-input-items.ts'
import { unreadable } from './read-input-parts.ts'
import { readToolChoice, readTools } from './read-tools.ts'
import { asBoolean, asNumber, asObject, asText } from './untyped.ts'

/** A caller's request as a turn. */
export function readTurn(request: Json): Turn {
  refuseState(request)
  const instructions = asText(request['instructions'])
  const isInputMissing = request['input'] === undefined || request['input'] === null
  if (isInputMissing && instructions === undefined) {
    throw new ApiError('missing_input', "Send 'input' or 'instructions'.", { param: 'body.input' })
  }
  const { system, messages } = readInput(request['input'], 'body.input')
  return {
    system: instructions === undefined ? system : [instructions, ...system],
    messages,
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
    reasoning: readReasoningWish(asObject(request['reasoning'])),
    outputFormat: readOutputFormat(asObject(asObject(request['text'])?.['format'])),
    user: asText(request['user']) ?? asText(request['safety_identifier']) ?? null,
  }
}

/** Nothing is kept between calls (G4.58). */
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

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

function readReasoningWish(reasoning: Json | undefined): Reasoning | null {
  if (!reasoning) return null
  const effort = efforts.find((name) => name === reasoning['effort']) ?? null
  const summary = asText(reasoning['summary']) ?? asText(reasoning['generate_summary'])
  const isSummaryWanted = summary !== undefined && summary !== 'none'
  // An object that asks for nothing is how some clients say nothing.
  return effort === null && !isSummaryWanted
    ? null
    : { effort, budgetTokens: null, isSummaryWanted }
}

function readOutputFormat(format: Json | undefined): OutputFormat | null {
  if (format?.['type'] === 'json_object') return { type: 'json_object' }
  if (format?.['type'] !== 'json_schema') return null
  const schema = asObject(format['schema'])
  if (!schema) throw unreadable('body.text.format.schema', 'must be an object')
  return {
    type: 'json_schema',
    name: asText(format['name']) ?? 'answer',
    schema,
    isStrict: asBoolean(format['strict']) ?? null,
  }
}
