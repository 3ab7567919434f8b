import type { FeatureId } from '@gatehouse/tools/compatibility'
import { expect } from 'vitest'

import type { ToolChoice } from './caller.ts'
import type { Cell } from './cell.ts'
import { toolLoops } from './tool-loops.ts'
import { stopReasons } from './words.ts'

const weather = { name: 'weather', arguments: { city: 'Köln "am Rhein" 👋🏽' } }
const clock = { name: 'clock', arguments: { zone: 'Europe/Berlin' } }

/** Tool choice, tool calls and tool results. */
export const toolFeatures = {
  tool_call: expectToolCall,
  parallel_tool_calls: expectParallelToolCalls,
  streamed_arguments: expectStreamedArguments,
  tool_result: expectToolResult,
  tool_loop: expectToolLoop,
  tool_choice_auto: expectToolChoiceAuto,
  tool_choice_required: expectToolChoiceRequired,
  tool_choice_named: expectToolChoiceNamed,
  tool_choice_none: expectToolChoiceNone,
} satisfies Partial<Record<FeatureId, (cell: Cell) => Promise<void>>>

async function expectToolCall(cell: Cell) {
  const script = { text: 'Let me see.', toolCalls: [weather] }
  const answer = await cell.open().sendMessage(cell.prompt(script), { hasTools: true })
  expect(answer.text).toBe('Let me see.')
  expect(answer.calls).toMatchObject([{ name: 'weather', input: weather.arguments }])
  expect(answer.calls[0]?.id).toMatch(/\w/)
  expect(answer.stop).toBe(stopReasons[cell.caller].call)
  expect((await cell.seen()).tools).toEqual(['weather', 'clock'])
}

async function expectParallelToolCalls(cell: Cell) {
  const toolCalls = [weather, clock, { ...weather, arguments: { city: 'Bonn' } }]
  const answer = await cell.open().sendMessage(cell.prompt({ toolCalls }), { hasTools: true })
  expect(answer.calls.map(({ name, input }) => ({ name, arguments: input }))).toEqual(toolCalls)
  expect(new Set(answer.calls.map(({ id }) => id)).size).toBe(3)
  expect(answer.stop).toBe(stopReasons[cell.caller].call)
}

async function expectStreamedArguments(cell: Cell) {
  const script = { toolCalls: [weather], argumentPieces: 7 }
  const answer = await cell.open().sendMessage(cell.prompt(script), { hasTools: true })
  expect(answer.calls).toMatchObject([{ input: weather.arguments }])
  expect(answer.pieces.arguments).toBe(cell.note === 'whole_arguments' ? 0 : 7)
}

async function expectToolResult(cell: Cell) {
  const conversation = cell.open()
  const first = cell.prompt({ toolCalls: [weather, clock] })
  const { calls } = await conversation.sendMessage(first, { hasTools: true })
  const results = calls.map(({ id, name }) => ({ id, name, output: `The result of ${name}.` }))
  const last = await conversation.sendToolResults(results, { hasTools: true })
  expect(last.text).toBe('Hello from the scripted upstream.')
  expect(last.stop).toBe(stopReasons[cell.caller].end)
  expect((await cell.seen()).results).toEqual(
    results.map(({ id, output }) => ({ id, text: output })),
  )
}

async function expectToolLoop(cell: Cell) {
  const cities: string[] = []
  const script = { toolCalls: [weather, { ...weather, arguments: { city: 'Bonn' } }] }
  const text = await toolLoops[cell.caller](cell.connection, cell.prompt(script), (city) => {
    cities.push(city)
    return `Sunny in ${city}.`
  })
  expect(cities).toEqual([weather.arguments.city, 'Bonn'])
  expect(text).toBe('Hello from the scripted upstream.')
  const { results } = await cell.seen()
  expect(results).toMatchObject(cities.map((city) => ({ text: `Sunny in ${city}.` })))
}

async function expectToolChoiceAuto(cell: Cell) {
  const answer = await choose(cell, 'auto')
  expect(answer.calls).toEqual([])
}

async function expectToolChoiceRequired(cell: Cell) {
  const answer = await choose(cell, 'required')
  expect(answer.calls).toMatchObject([{ name: 'weather', input: { city: 'text' } }])
}

async function expectToolChoiceNamed(cell: Cell) {
  const answer = await choose(cell, { name: 'clock' })
  expect(answer.calls).toMatchObject([{ name: 'clock', input: { zone: 'text' } }])
}

async function expectToolChoiceNone(cell: Cell) {
  const answer = await choose(cell, 'none')
  expect(answer.calls).toEqual([])
}

/** Without a script the upstream calls a tool only if the tool choice requires it. */
async function choose(cell: Cell, toolChoice: ToolChoice) {
  const answer = await cell.open().sendMessage(cell.prompt(), { hasTools: true, toolChoice })
  const { choice, tools } = await cell.seen()
  expect(choice).toEqual(toolChoice)
  expect(tools).toEqual(['weather', 'clock'])
  return answer
}
