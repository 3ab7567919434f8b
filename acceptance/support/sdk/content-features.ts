import type { FeatureId } from '@gatehouse/tools/compatibility'
import { expect } from 'vitest'

import { imageUrl, pdf, png } from './caller.ts'
import type { Cell } from './cell.ts'
import { stopReasons } from './words.ts'

const greeting = 'Grüße aus Köln — 你好 👋🏽, "quoted" and\nbroken over lines.'

/** The content of requests and answers. */
export const contentFeatures = {
  text: expectText,
  system: expectSystem,
  conversation: expectConversation,
  image_data: expectImageData,
  image_url: expectImageUrl,
  pdf: expectPdf,
  text_document: expectTextDocument,
  max_tokens: expectMaxTokens,
  stop_sequence: expectStopSequence,
  json_schema: expectJsonSchema,
  usage: expectUsage,
  refusal: expectRefusal,
  credits: expectCredits,
} satisfies Partial<Record<FeatureId, (cell: Cell) => Promise<void>>>

async function expectText(cell: Cell) {
  const answer = await cell.open().sendMessage(cell.prompt({ text: greeting }))
  expect(answer.text).toBe(greeting)
  expect(answer.stop).toBe(stopReasons[cell.caller].end)
  expect(answer.calls).toEqual([])
  if (cell.mode === 'streamed') expect(answer.pieces.text).toBeGreaterThan(3)
}

async function expectSystem(cell: Cell) {
  await cell.open().sendMessage(cell.prompt(), { system: 'Answer like a pirate.' })
  expect((await cell.seen()).system).toBe('Answer like a pirate.')
}

async function expectConversation(cell: Cell) {
  const conversation = cell.open()
  const first = cell.prompt({ text: 'First answer.' })
  await conversation.sendMessage(first)
  await conversation.sendMessage('Go on.\n#script {"text":"Second answer."}')
  const last = await conversation.sendMessage('And?\n#script {"text":"Third answer."}')
  expect(last.text).toBe('Third answer.')
  expect((await cell.seen()).messages).toEqual([
    `user: ${first}`,
    'assistant: First answer.',
    'user: Go on.\n#script {"text":"Second answer."}',
    'assistant: Second answer.',
    'user: And?\n#script {"text":"Third answer."}',
  ])
}

async function expectImageData(cell: Cell) {
  const text = { type: 'text' as const, text: cell.prompt({ text: 'A dot.' }) }
  const answer = await cell.open().sendMessage([{ type: 'image', base64: png }, text])
  expect(answer.text).toBe('A dot.')
  expect((await cell.seen()).images).toEqual([`data:image/png;base64,${png}`])
}

async function expectImageUrl(cell: Cell) {
  const text = { type: 'text' as const, text: cell.prompt({ text: 'A cat.' }) }
  const answer = await cell.open().sendMessage([{ type: 'image', url: imageUrl }, text])
  expect(answer.text).toBe('A cat.')
  expect((await cell.seen()).images).toEqual([imageUrl])
}

async function expectPdf(cell: Cell) {
  const text = { type: 'text' as const, text: cell.prompt({ text: 'A page.' }) }
  const document = { type: 'pdf' as const, base64: pdf, title: 'page.pdf' }
  const answer = await cell.open().sendMessage([document, text])
  expect(answer.text).toBe('A page.')
  expect((await cell.seen()).pdfs).toEqual([`data:application/pdf;base64,${pdf}`])
}

async function expectTextDocument(cell: Cell) {
  const text = { type: 'text' as const, text: cell.prompt({ text: 'A note.' }) }
  const content = 'Über allen Gipfeln ist Ruh.'
  const document = { type: 'text_document' as const, text: content, title: 'note.txt' }
  if (cell.note === 'text_document_not_offered') {
    await expect(cell.open().sendMessage([document, text])).rejects.toThrow(/not supported/)
    await cell.open().sendMessage([{ type: 'text', text: `note.txt\n\n${content}` }, text])
  } else {
    const answer = await cell.open().sendMessage([document, text])
    expect(answer.text).toBe('A note.')
  }
  const seen = await cell.seen()
  if (cell.note === null) expect(seen.texts).toEqual([content])
  else expect(seen.messages.join()).toContain(`note.txt\n\n${content}`)
}

async function expectMaxTokens(cell: Cell) {
  const answer = await cell.open().sendMessage(cell.prompt(), { maxTokens: 3 })
  expect(answer.text).toBe('Hello from the')
  expect(answer.stop).toBe(stopReasons[cell.caller].length)
  expect((await cell.seen()).maxTokens).toBe(3)
}

async function expectStopSequence(cell: Cell) {
  const answer = await cell.open().sendMessage(cell.prompt(), { stop: ['scripted'] })
  const seen = await cell.seen()
  const { end, stop } = stopReasons[cell.caller]
  if (cell.note === 'stop_left_out' || cell.note === 'stop_not_offered') {
    expect(seen.stop).toBeUndefined()
    expect(answer.text).toBe('Hello from the scripted upstream.')
    expect(answer.stop).toBe(end)
    return
  }
  expect(seen.stop).toEqual(['scripted'])
  expect(answer.text.trimEnd()).toBe('Hello from the')
  expect(answer.stop).toBe(cell.note === 'stop_not_named' ? end : stop)
}

async function expectJsonSchema(cell: Cell) {
  const place = { name: 'Köln', people: 1_085_000, isCapital: false }
  const script = { text: JSON.stringify(place) }
  const answer = await cell.open().sendMessage(cell.prompt(script), { isStructured: true })
  expect(answer.parsed).toEqual(place)
  expect((await cell.seen()).schema).toMatchObject({
    type: 'object',
    properties: { name: {}, people: {}, isCapital: {} },
    required: ['name', 'people', 'isCapital'],
  })
}

async function expectUsage(cell: Cell) {
  // Messages reports cached tokens apart from the input; the other formats include them.
  const cached = 400
  const input = cell.format === 'messages' ? 600 : 1000
  const usage = { input, output: 70, cached, reasoning: 30 }
  const answer = await cell.open().sendMessage(cell.prompt({ text: 'Counted.', usage }))
  expect(answer.usage).toEqual({ input: 1000, output: 70, cached, reasoning: 30 })
}

async function expectRefusal(cell: Cell) {
  const words = 'I will not help with that.'
  const answer = await cell.open().sendMessage(cell.prompt({ refusal: words }))
  const { end, refusal } = stopReasons[cell.caller]
  const isInText = cell.note === 'refusal_by_reason'
  const isApart = cell.note === null
  expect(answer.text).toBe(isInText ? words : '')
  expect(answer.refusal).toBe(isApart ? words : '')
  // OpenAI's clients report the usual stop reason, because the refusal has its own member.
  expect(answer.stop).toBe(isApart && cell.caller !== 'anthropic' ? end : refusal)
}

async function expectCredits(cell: Cell) {
  const usage = { input: 1000, output: 100 }
  const { raw } = await cell.open().sendMessage(cell.prompt({ text: 'Paid.', usage }))
  const receipt = findReceipt(raw)
  expect(receipt).toMatchObject({ estimated_cost_usd: 0.0045 })
  expect(receipt).toHaveProperty('remaining_credits')
  expect(receipt?.['estimated_credits_used']).toBeGreaterThan(0)
}

/** Finds the object with the credit members, at any depth. */
function findReceipt(value: unknown): Record<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if ('estimated_cost_usd' in value) return value as Record<string, unknown>
  for (const inner of Object.values(value)) {
    const found = findReceipt(inner)
    if (found) return found
  }
  return undefined
}
