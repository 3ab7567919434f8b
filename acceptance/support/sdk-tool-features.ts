import type { FeatureId } from '@gatehouse/tools/compatibility'
import { expect } from 'vitest'

import type { ToolChoice } from './sdk-caller.ts'
import type { Cell } from './sdk-cell.ts'
import { toolLoops } from './sdk-tool-loops.ts'
import { endWords } from './sdk-words.ts'

const weather = { name: 'weather', arguments: { city: 'Köln "am Rhein" 👋🏽' } }
const clock = { name: 'clock', arguments: { zone: 'Europe/Berlin' } }

/** Tools, from their choice to their results. */
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
  const said = await cell.open().say(cell.prompt(script), { hasTools: true })
  expect(said.text).toBe('Let me see.')
  expect(said.calls).toMatchObject([{ name: 'weather', input: weather.arguments }])
  expect(said.calls[0]?.id).toMatch(/\w/)
  expect(said.stop).toBe(endWords[cell.caller].call)
  expect((await cell.seen()).tools).toEqual(['weather', 'clock'])
}

async function expectParallelToolCalls(cell: Cell) {
  const toolCalls = [weather, clock, { ...weather, arguments: { city: 'Bonn' } }]
  const said = await cell.open().say(cell.prompt({ toolCalls }), { hasTools: true })
  expect(said.calls.map(({ name, input }) => ({ name, arguments: input }))).toEqual(toolCalls)
  expect(new Set(said.calls.map(({ id }) => id)).size).toBe(3)
  expect(said.stop).toBe(endWords[cell.caller].call)
}

async function expectStreamedArguments(cell: Cell) {
  const script = { toolCalls: [weather], argumentPieces: 7 }
  const said = await cell.open().say(cell.prompt(script), { hasTools: true })
  expect(said.calls).toMatchObject([{ input: weather.arguments }])
  expect(said.pieces.arguments).toBe(cell.note === 'whole_arguments' ? 0 : 7)
}

async function expectToolResult(cell: Cell) {
  const conversation = cell.open()
  const first = cell.prompt({ toolCalls: [weather, clock] })
  const { calls } = await conversation.say(first, { hasTools: true })
  const results = calls.map(({ id, name }) => ({ id, name, output: `The result of ${name}.` }))
  const last = await conversation.giveResults(results, { hasTools: true })
  expect(last.text).toBe('Hello from the scripted upstream.')
  expect(last.stop).toBe(endWords[cell.caller].end)
  expect((await cell.seen()).results).toEqual(
    results.map(({ id, output }) => ({ id, text: output })),
  )
}

async function expectToolLoop(cell: Cell) {
  const asked: string[] = []
  const script = { toolCalls: [weather, { ...weather, arguments: { city: 'Bonn' } }] }
  const text = await toolLoops[cell.caller](cell.connection, cell.prompt(script), (city) => {
    asked.push(city)
    return `Sunny in ${city}.`
  })
  expect(asked).toEqual([weather.arguments.city, 'Bonn'])
  expect(text).toBe('Hello from the scripted upstream.')
  const { results } = await cell.seen()
  expect(results).toMatchObject(asked.map((city) => ({ text: `Sunny in ${city}.` })))
}

async function expectToolChoiceAuto(cell: Cell) {
  const said = await choose(cell, 'auto')
  expect(said.calls).toEqual([])
}

async function expectToolChoiceRequired(cell: Cell) {
  const said = await choose(cell, 'required')
  expect(said.calls).toMatchObject([{ name: 'weather', input: { city: 'text' } }])
}

async function expectToolChoiceNamed(cell: Cell) {
  const said = await choose(cell, { name: 'clock' })
  expect(said.calls).toMatchObject([{ name: 'clock', input: { zone: 'text' } }])
}

async function expectToolChoiceNone(cell: Cell) {
  const said = await choose(cell, 'none')
  expect(said.calls).toEqual([])
}

/** Without a script the upstream calls the tool that it has to call, and none otherwise. */
async function choose(cell: Cell, toolChoice: ToolChoice) {
  const said = await cell.open().say(cell.prompt(), { hasTools: true, toolChoice })
  const { choice, tools } = await cell.seen()
  expect(choice).toEqual(toolChoice)
  expect(tools).toEqual(['weather', 'clock'])
  return said
}
