import { randomBytes } from 'node:crypto'

import type { FeatureId, FormatId } from '@gatehouse/tools/compatibility'
import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { expect } from 'vitest'

import { type Cell, modelOf } from './cell.ts'

const thinking = 'First this, then “that” — 然后呢?'
const ownThought = 'The caller wants a short answer, so I shall give one.'
const options = { isThinking: true, hasTools: true }
const weather = { name: 'weather', arguments: { city: 'Köln' } }

/** Reasoning, and the opaque state that only the model that produced it can read. */
export const thinkingFeatures = {
  thinking: expectThinking,
  signature: expectSignature,
  moved_conversation: expectMovedConversation,
  sealed_thoughts: expectSealedThoughts,
} satisfies Partial<Record<FeatureId, (cell: Cell) => Promise<void>>>

async function expectThinking(cell: Cell) {
  // The upstream returns reasoning on request; Chat Completions cannot request it, so the script does.
  const shown = cell.format === 'chat_completions' ? { thinking: ownThought } : {}
  const script = { ...shown, text: 'Thought about.', usage: { reasoning: 12, output: 20 } }
  const answer = await cell.open().sendMessage(cell.prompt(script), { isThinking: true })
  expect(answer.text).toBe('Thought about.')
  expect(answer.usage.reasoning).toBe(12)
  const isShown = cell.note !== 'thoughts_not_read' && cell.note !== 'thoughts_hidden'
  expect(answer.thinking).toBe(isShown ? ownThought : '')
}

async function expectSignature(cell: Cell) {
  const { id, thoughts } = await continueAfter(cell, { thinking, toolCalls: [weather] })
  if (isStateDropped(cell)) return expect(thoughts).toEqual([])
  const isShown = cell.format !== 'messages' || cell.caller !== 'openai_chat'
  const sealed = sealOf(cell.format, id)
  expect(thoughts).toEqual([{ text: isShown ? thinking : '', sealed }])
}

async function expectMovedConversation(cell: Cell) {
  const elsewhere = cell.format === 'messages' ? 'responses' : 'messages'
  const model = modelOf(elsewhere)
  const conversation = cell.open()
  const script = { thinking, toolCalls: [weather] }
  const { calls } = await conversation.sendMessage(cell.prompt(script), { ...options, model })
  const results = calls.map(({ id, name }) => ({ id, name, output: 'Sunny.' }))
  const moved = await conversation.sendToolResults(results, options)
  expect(moved.text).toBe('Hello from the scripted upstream.')
  const { body, thoughts, results: given } = await cell.seen()
  expect(given).toMatchObject([{ text: 'Sunny.' }])
  expect(thoughts).toEqual([])
  const text = JSON.stringify(body)
  expect(text).not.toMatch(/gatehouse\.1\.|reasoning_signature/)
  // The only occurrence is in the script of the prompt.
  expect(text.split('First this')).toHaveLength(2)
  await conversation.sendMessage('And back again.', { ...options, model })
  const seal = sealOf(elsewhere, calls[0]?.id ?? '')
  const returned = (await cell.seen(elsewhere)).thoughts.map(({ sealed }) => sealed)
  expect(returned).toEqual(cell.note === 'signature_not_kept' ? [] : [seal])
}

async function expectSealedThoughts(cell: Cell) {
  const redacted = randomBytes(300).toString('base64')
  const { thoughts } = await continueAfter(cell, { redacted, toolCalls: [weather] })
  if (isStateDropped(cell)) return expect(thoughts).toEqual([])
  expect(thoughts.map(({ sealed }) => sealed)).toContain(redacted)
}

const isStateDropped = ({ note }: Cell) => note === 'no_signature' || note === 'signature_not_kept'

/** Has the model reason and call a tool, and sends the result, which must carry the reasoning along. */
async function continueAfter(cell: Cell, script: Script) {
  const conversation = cell.open()
  const { calls } = await conversation.sendMessage(cell.prompt(script), options)
  const results = calls.map(({ id, name }) => ({ id, name, output: 'Sunny.' }))
  const last = await conversation.sendToolResults(results, options)
  expect(last.text).toBe('Hello from the scripted upstream.')
  const seen = await cell.seen()
  expect(seen.results).toMatchObject([{ text: 'Sunny.' }])
  return { id: calls[0]?.id ?? '', thoughts: seen.thoughts }
}

/** The opaque state of the scripted upstream contains the number that is also in the id of the tool call. */
function sealOf(format: FormatId, callId: string): string {
  const number = /(\d{8})\d$/.exec(callId)?.[1] ?? 'none'
  const words =
    format === 'messages' ? 'signature of scripted thinking' : 'sealed scripted reasoning'
  return Buffer.from(`${words} ${number}`).toString('base64')
}
