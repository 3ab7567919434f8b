import { type CreateMessage, isCustomTool } from '@gatehouse/contract/message'

import type { Json } from '#formats/answer.ts'
import { addForeign, foreignMembers, foreignPart } from '#formats/foreign-part.ts'
import { invalidMember } from '#formats/request-member.ts'
import { messageMembers, messageOthers } from '#formats/texts/message-others.ts'
import { readOtherTexts } from '#formats/texts/other-texts.ts'
import type { ForeignPart, OutputFormat, Reasoning, Tool, ToolChoice, Turn } from '#formats/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import { readMessages } from './read-message-parts.ts'

/** A caller's request as a turn. Parts that only upstreams of this format understand become foreign parts. */
export function readMessageTurn(request: Json): Turn {
  refuseThread(request)
  // Its schema has been checked: see contract/src/message.ts.
  const body = request as CreateMessage
  const { system, messages, foreign } = readMessages(body.messages)
  return {
    system: [...readSystem(body.system), ...system],
    messages: addForeign(messages, [...foreign, ...readForeign(body)]),
    tools: readTools(body.tools),
    toolChoice: readToolChoice(body),
    canCallToolsInParallel: readParallel(body.tool_choice),
    maxOutputTokens: body.max_tokens ?? null,
    temperature: body.temperature ?? null,
    topP: body.top_p ?? null,
    topK: body.top_k ?? null,
    presencePenalty: null,
    frequencyPenalty: null,
    seed: null,
    stopSequences: body.stop_sequences ?? [],
    reasoning: readReasoning(body),
    outputFormat: readOutputFormat(body.output_config),
    user: body.metadata?.user_id ?? null,
    other: readOtherTexts(request, messageOthers),
  }
}

function readSystem(system: CreateMessage['system']): string[] {
  const texts = typeof system === 'string' ? [system] : (system ?? []).map(({ text }) => text)
  return texts.filter((text) => text !== '')
}

function readTools(tools: CreateMessage['tools']): Tool[] {
  return (tools ?? []).filter(isCustomTool).map((tool) => ({
    name: tool.name ?? '',
    description: tool.description ?? null,
    parameters: tool.input_schema ?? {},
    isStrict: tool.strict ?? null,
  }))
}

const toolMembers: ReadonlySet<string> = new Set([
  'type',
  'name',
  'description',
  'input_schema',
  'strict',
  'cache_control',
  'allowed_callers',
  'defer_loading',
])

const outputMembers: ReadonlySet<string> = new Set(['effort', 'format'])

/** Tools that the provider runs, and unknown members of other tools, of the output's settings and of the request. */
function readForeign(body: CreateMessage): ForeignPart[] {
  const { tools = [], output_config: output } = body
  const inTools = tools.flatMap((tool) =>
    isCustomTool(tool) ? foreignMembers(tool, toolMembers) : [foreignPart(tool)],
  )
  const inOutput = output ? foreignMembers(output as Json, outputMembers) : []
  return [...inTools, ...inOutput, ...foreignMembers(body as Json, messageMembers)]
}

function readToolChoice({ tools = [], tool_choice: choice }: CreateMessage): ToolChoice | null {
  if (!choice) return null
  if (choice.type === 'any') return { type: 'required' }
  if (choice.type !== 'tool') return { type: choice.type }
  const chosen = tools.find(({ name }) => name === choice.name)
  if (chosen && choice.name !== undefined) {
    return isCustomTool(chosen) ? { type: 'tool', name: choice.name } : null
  }
  // A tool set of the provider does not list the names of its tools.
  if (choice.name !== undefined && !tools.every(isCustomTool)) return null
  throw invalidMember('body.tool_choice.name', 'must name one of the tools')
}

function readParallel(choice: CreateMessage['tool_choice']): boolean | null {
  const isDisabled = choice?.disable_parallel_tool_use ?? null
  return isDisabled === null ? null : !isDisabled
}

const efforts: readonly unknown[] = ['low', 'medium', 'high', 'xhigh', 'max']

function readReasoning({ thinking, output_config: output }: CreateMessage): Reasoning | null {
  const effort = efforts.includes(output?.effort) ? (output?.effort as Reasoning['effort']) : null
  const isSummaryWanted = thinking?.display !== 'omitted'
  switch (thinking?.type) {
    case 'disabled':
      return { effort: 'none', budgetTokens: null, isSummaryWanted: false }
    case 'enabled':
      return { effort, budgetTokens: thinking.budget_tokens ?? null, isSummaryWanted }
    case 'adaptive':
      return { effort, budgetTokens: null, isSummaryWanted }
    default:
      return effort && { effort, budgetTokens: null, isSummaryWanted: false }
  }
}

/** Other formats need a name for the schema, and this one has none. */
function readOutputFormat(output: CreateMessage['output_config']): OutputFormat | null {
  const schema = output?.format?.schema
  return schema ? { type: 'json_schema', name: 'output', schema, isStrict: null } : null
}

const threadMessage =
  "'body.thread' is not supported: nothing is kept between calls, so send the whole conversation."

/**
 * Refuses conversations that the provider stores, because only what is sent can be judged and counted. The
 * details are those of the provider: its clients recognise them and continue without a thread.
 */
function refuseThread({ thread }: Json) {
  if (thread === undefined || thread === null) return
  throw new ApiError('unsupported_parameter', threadMessage, {
    param: 'body.thread',
    details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
  })
}
